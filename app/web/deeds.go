package web

import (
	"encoding/json"

	"github.com/gofiber/fiber/v2"

	"queuelab/app/door"
)

// deeds writes down what operators do, and who of them: afterwards somebody asks
// who made a voucher, or discarded a message.
func (s *Server) deeds(c *fiber.Ctx) error {
	err := c.Next()
	if m := c.Method(); m == fiber.MethodGet || m == fiber.MethodHead || err != nil || c.Response().StatusCode() >= fiber.StatusBadRequest {
		return err
	}
	w, known := c.Locals(callerKey{}).(*caller)
	if !known || w.role != door.Operator {
		return nil
	}
	by := w.user
	if by == "" {
		by = "operator" // the token of the command line is nobody's by name
	}
	args := []any{"deed", c.Method() + " " + c.Path(), "by", by}
	var made struct{ ID string }
	if c.Response().StatusCode() == fiber.StatusCreated && json.Unmarshal(c.Response().Body(), &made) == nil && made.ID != "" {
		args = append(args, "made", made.ID)
	}
	s.o.Log.InfoContext(c.UserContext(), "an operator's deed", args...)
	return nil
}
