package web

import (
	"context"
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"

	"queuelab/app/door"
	"queuelab/app/sale"
)

// loginPause is how long a wrong login takes at the least, whatever is wrong
// with it.
const loginPause = 300 * time.Millisecond

func bearer(c *fiber.Ctx) string {
	h := c.Get(fiber.HeaderAuthorization)
	const prefix = "bearer "
	if len(h) > len(prefix) && utils.EqualFold(h[:len(prefix)], prefix) {
		return utils.Trim(h[len(prefix):], ' ')
	}
	return ""
}

// caller is who sends a request.
type caller struct {
	user    string // "": nobody by name
	role    door.Role
	expires time.Time // of a token
	err     error     // why there is no name
}

// callerKey is where a request's caller is kept once it is known.
type callerKey struct{}

// caller finds out who asks, once for each request. The name is a copy: fiber's
// strings point into a buffer that the next request overwrites, and this one
// goes into queue and gate.
func (s *Server) caller(c *fiber.Ctx) *caller {
	if w, ok := c.Locals(callerKey{}).(*caller); ok {
		return w
	}
	w := s.identify(c)
	c.Locals(callerKey{}, w)
	return w
}

func (s *Server) identify(c *fiber.Ctx) *caller {
	refuse := func(why string) *caller { return &caller{err: failure(fiber.StatusUnauthorized, "unauthorized", why)} }
	if b := bearer(c); b != "" {
		if s.o.OperatorToken != "" && door.Same(b, s.o.OperatorToken) {
			return &caller{role: door.Operator, err: failure(fiber.StatusForbidden, "forbidden", "the operator token is nobody's by name: log in as the buyer")}
		}
		n, err := s.o.Door.Sessions.Read(b)
		if err != nil {
			return refuse(err.Error() + ": log in again")
		}
		return &caller{user: n.User, role: n.Role, expires: n.Expires}
	}
	if u := c.Get("X-User-ID"); u != "" && s.o.TrustUserHeader {
		if err := sale.CheckUser(u); err != nil {
			return &caller{err: failure(fiber.StatusBadRequest, "invalid", "X-User-ID: "+err.Error())}
		}
		return &caller{user: utils.CopyString(u), role: door.Buyer}
	}
	return refuse("log in first: POST /api/login, then send Authorization: Bearer TOKEN")
}

func (s *Server) operator(c *fiber.Ctx) bool { return s.caller(c).role == door.Operator }

// user is the name of who asks, or a refusal.
func (s *Server) user(c *fiber.Ctx) (string, error) {
	w := s.caller(c)
	return w.user, w.err
}

// buyer is user for those who buy: an operator knows too much to be one.
func (s *Server) buyer(c *fiber.Ctx) (string, error) {
	w := s.caller(c)
	if w.err == nil && w.role != door.Buyer {
		return "", failure(fiber.StatusForbidden, "forbidden", "an operator's account does not buy: log in as a buyer")
	}
	return w.user, w.err
}

type loginRequest struct {
	User     string `json:"user"`
	Password string `json:"password"`
	// Ticket and Answer are those of a captcha, where one was asked for.
	Ticket string `json:"ticket,omitempty"`
	Answer string `json:"answer,omitempty"`
}

type loginAnswer struct {
	Token     string    `json:"token"`
	User      string    `json:"user"`
	Role      door.Role `json:"role"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// welcome answers with a token.
func (s *Server) welcome(c *fiber.Ctx, status int, a door.Account) error {
	token, n := s.o.Door.Sessions.Issue(a)
	return c.Status(status).JSON(loginAnswer{Token: token, User: a.User, Role: a.Role, ExpiresAt: n.Expires.UTC()})
}

// credentials reads who wants to come in.
func credentials(c *fiber.Ctx) (loginRequest, error) {
	var in loginRequest
	if err := decode(c.BodyRaw(), &in); err != nil {
		return in, err
	}
	if err := sale.CheckUser(in.User); err != nil {
		return in, failure(fiber.StatusBadRequest, "invalid", "user: "+err.Error())
	}
	return in, nil
}

// register makes a buyer's account. It is here that one can ask whether a name
// is taken, and no faster than the address may ask.
func (s *Server) register(c *fiber.Ctx) error {
	d := s.o.Door
	if d.Accounts == nil {
		return failure(fiber.StatusConflict, "invalid", "there are no accounts here: POST /api/login takes any name")
	}
	in, err := credentials(c)
	if err != nil {
		return err
	}
	if err := door.CheckPassword(in.User, in.Password); err != nil {
		return failure(fiber.StatusBadRequest, "invalid", "password: "+err.Error())
	}
	if err := limited(d.Callers, "tries to register", s.address(c)); err != nil {
		return err
	}
	ctx, cancel := timed(c)
	defer cancel()
	hash, err := d.Passwords.Hash(ctx, in.Password)
	if err != nil {
		return crowded(err)
	}
	a := door.Account{User: in.User, Hash: hash, Role: door.Buyer, Created: time.Now()}
	err = d.Accounts.AddAccount(ctx, a)
	if errors.Is(err, door.ErrTaken) {
		return failure(fiber.StatusConflict, "name_taken", "the name is taken: choose another one, or log in")
	}
	if err != nil {
		return err
	}
	s.meet(ctx, c, a)
	return s.welcome(c, fiber.StatusCreated, a)
}

// login never tells whether a name is anybody's: the limits, the work and the
// answer are the same.
func (s *Server) login(c *fiber.Ctx) error {
	d := s.o.Door
	in, err := credentials(c)
	if err != nil {
		return err
	}
	if d.Accounts == nil {
		return s.welcome(c, fiber.StatusOK, door.Account{User: in.User, Role: door.Buyer})
	}
	if in.Password == "" || len(in.Password) > door.MaxPassword {
		return failure(fiber.StatusBadRequest, "invalid", "password is missing, or longer than 128 bytes")
	}
	address := s.address(c)
	for _, l := range []struct {
		by  door.Limiter
		key string
	}{{d.Callers, address}, {d.Guesses, in.User + "|" + address}} {
		if err := limited(l.by, "tries to log in", l.key); err != nil {
			return err
		}
	}
	began := time.Now()
	ctx, cancel := timed(c)
	defer cancel()
	if err := limited(d.Names, "tries to log in", in.User); err != nil {
		if err = s.nevertheless(ctx, in, address, err); err != nil {
			return err
		}
	}
	a, ok, err := s.prove(ctx, in)
	if err != nil {
		return err
	}
	if !ok {
		time.Sleep(loginPause - time.Since(began))
		return failure(fiber.StatusUnauthorized, "wrong_login", "the name or the password is wrong")
	}
	s.meet(ctx, c, a)
	return s.welcome(c, fiber.StatusOK, a)
}

func (s *Server) prove(ctx context.Context, in loginRequest) (door.Account, bool, error) {
	a, err := s.o.Door.Accounts.Account(ctx, in.User)
	if err != nil && !errors.Is(err, door.ErrNoAccount) {
		return a, false, err
	}
	ok, err := s.o.Door.Passwords.Verify(ctx, a.Hash, in.Password)
	return a, ok, crowded(err)
}

type sessionAnswer struct {
	Login         string     `json:"login"`         // password, or open: any name will do
	PurchaseToken bool       `json:"purchaseToken"` // buying needs one of /api/vouchers/{id}/path
	Captcha       string     `json:"captcha"`       // off, on or auto
	Payments      string     `json:"payments"`      // signed, or stand-in: POST /api/orders/{id}/checkout pays, and no money moves
	User          string     `json:"user"`          // "": not logged in
	Role          door.Role  `json:"role"`
	ExpiresAt     *time.Time `json:"expiresAt"`
}

// session tells a page what the door wants, and whom it knows.
func (s *Server) session(c *fiber.Ctx) error {
	d, w := s.o.Door, s.caller(c)
	a := sessionAnswer{Login: "open", PurchaseToken: d.Paths != nil, Captcha: "off", Payments: "signed", User: w.user, Role: w.role}
	if d.Accounts != nil {
		a.Login = "password"
	}
	if d.Captcha != nil {
		a.Captcha = string(d.Captcha.When)
	}
	if d.Provider != nil && d.Provider.StandIn {
		a.Payments = "stand-in"
	}
	if !w.expires.IsZero() {
		at := w.expires.UTC()
		a.ExpiresAt = &at
	}
	return c.JSON(a)
}
