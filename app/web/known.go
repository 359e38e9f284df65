package web

import (
	"context"
	"errors"

	"github.com/gofiber/fiber/v2"

	"queuelab/app/door"
	"queuelab/app/sale"
)

// aboutLogin is what the riddle of a login is about: no voucher.
const aboutLogin sale.ID = 0

// nevertheless is nil for who may try although the limit of a name is used up,
// which anybody can do to anybody: an address from which that account logged in
// before, or, where there is a captcha, who solves it. Its other limits hold, and
// so does that of the work that passwords make.
func (s *Server) nevertheless(ctx context.Context, in loginRequest, address string, refused error) error {
	d := s.o.Door
	switch {
	case d.Known != nil && d.Known.Has(ctx, in.User, address):
		return nil
	case d.Captcha == nil:
		return refused
	case in.Ticket == "":
		return failure(fiber.StatusForbidden, "captcha_required", "many tried to log in by this name: solve a captcha first, GET /api/login/captcha?user=NAME, then POST its ticket with your answer")
	}
	err := d.Captcha.Check(ctx, in.Ticket, in.Answer, in.User, aboutLogin)
	if errors.Is(err, door.ErrAnswer) {
		return failure(fiber.StatusForbidden, "captcha_wrong", "the captcha was not solved: take another one")
	}
	return crowded(err)
}

// meet remembers from where somebody came in.
func (s *Server) meet(ctx context.Context, c *fiber.Ctx, a door.Account) {
	if known := s.o.Door.Known; known != nil {
		known.Add(ctx, a.User, s.address(c))
	}
}

// loginCaptcha asks who wants to log in a riddle.
func (s *Server) loginCaptcha(c *fiber.Ctx) error {
	user := c.Query("user")
	if err := sale.CheckUser(user); err != nil {
		return failure(fiber.StatusBadRequest, "invalid", "user: "+err.Error())
	}
	if err := limited(s.o.Door.Callers, "tries to log in", s.address(c)); err != nil {
		return err
	}
	return s.riddle(c, user, aboutLogin)
}
