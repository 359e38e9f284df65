package web

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"queuelab/app/door"
)

type passwordRequest struct {
	Old string `json:"old"`
	New string `json:"new"`
}

// password gives whoever is logged in another password. The tokens of before end,
// and the answer has a new one.
func (s *Server) password(c *fiber.Ctx) error {
	d := s.o.Door
	if d.Accounts == nil {
		return failure(fiber.StatusConflict, "invalid", "there are no passwords here: POST /api/login takes any name")
	}
	user, err := s.user(c)
	if err != nil {
		return err
	}
	var in passwordRequest
	if err := decode(c.BodyRaw(), &in); err != nil {
		return err
	}
	if in.Old == "" || len(in.Old) > door.MaxPassword {
		return failure(fiber.StatusBadRequest, "invalid", "old is missing, or longer than 128 bytes")
	}
	if err := door.CheckPassword(user, in.New); err != nil {
		return failure(fiber.StatusBadRequest, "invalid", "new: "+err.Error())
	}
	// Whoever stole a token must not find the password out with it.
	if err := limited(d.Guesses, "tries to change the password", user+"|"+s.address(c)); err != nil {
		return err
	}
	began := time.Now()
	ctx, cancel := timed(c)
	defer cancel()
	a, ok, err := s.prove(ctx, loginRequest{User: user, Password: in.Old})
	if err != nil {
		return err
	}
	if !ok {
		time.Sleep(loginPause - time.Since(began))
		return failure(fiber.StatusForbidden, "wrong_login", "old is not the password: try again, or ask an operator")
	}
	if a.Hash, err = d.Passwords.Hash(ctx, in.New); err != nil {
		return crowded(err)
	}
	if err := d.Accounts.PutAccount(ctx, a); err != nil {
		return err
	}
	return s.welcome(c, fiber.StatusOK, a)
}
