package web

import (
	"context"
	"errors"
	"math"
	"net"
	"net/netip"
	"time"

	"github.com/gofiber/fiber/v2"

	"queuelab/app/door"
	"queuelab/app/sale"
)

// publicRoutes are those that cost nothing to answer, and are not counted.
func (s *Server) publicRoutes(api fiber.Router) {
	api.Get("/vouchers", s.listVouchers)
	api.Get("/vouchers/:id", s.voucher)
	api.Get("/time", func(c *fiber.Ctx) error { return c.JSON(fiber.Map{"unixMillis": time.Now().UnixMilli()}) })
}

// doorRoutes are the way to the sale.
func (s *Server) doorRoutes(api fiber.Router) {
	api.Post("/register", s.register)
	api.Post("/login", s.login)
	api.Post("/password", s.password)
	api.Get("/login/captcha", s.loginCaptcha)
	api.Get("/session", s.session)
	api.Get("/vouchers/:id/captcha", s.captcha)
	api.Get("/vouchers/:id/path", s.path)
	api.Post("/vouchers/:id/path", s.path)
}

// guarded sets what every answer says to browsers and caches; a page or a list
// that is for more than one reader says otherwise itself.
func guarded() fiber.Handler {
	says := [][2]string{
		{fiber.HeaderXContentTypeOptions, "nosniff"},
		{fiber.HeaderXFrameOptions, "DENY"},
		{fiber.HeaderReferrerPolicy, "same-origin"},
		{fiber.HeaderContentSecurityPolicy, "default-src 'none'; frame-ancestors 'none'"},
		{"Cross-Origin-Opener-Policy", "same-origin"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{fiber.HeaderCacheControl, "no-store"},
	}
	// As bytes, and in canonical form: fasthttp makes both of a text each time.
	names, values := make([][]byte, len(says)), make([][]byte, len(says))
	for i, s := range says {
		names[i], values[i] = []byte(s[0]), []byte(s[1])
	}
	return func(c *fiber.Ctx) error {
		h := &c.Response().Header
		for i := range names {
			h.SetCanonical(names[i], values[i])
		}
		return c.Next()
	}
}

// bounded turns away a body that is too large, or packed.
func bounded(c *fiber.Ctx) error {
	// The raw body everywhere: fiber's Body unpacks it first, however large it
	// gets, and half a megabyte of gzip holds gigabytes.
	if len(c.BodyRaw()) > maxBody {
		return fiber.ErrRequestEntityTooLarge
	}
	if e := c.Get(fiber.HeaderContentEncoding); e != "" && e != "identity" {
		return failure(fiber.StatusUnsupportedMediaType, "unsupported_media", "send the body without a Content-Encoding")
	}
	return c.Next()
}

// address is what a request's sender is counted as.
func (s *Server) address(c *fiber.Ctx) string {
	peer := netip.IPv4Unspecified()
	if tcp, ok := c.Context().RemoteAddr().(*net.TCPAddr); ok {
		peer = tcp.AddrPort().Addr()
	}
	var forwarded []string
	if len(s.o.Door.Proxies) > 0 {
		for _, v := range c.Request().Header.PeekAll(fiber.HeaderXForwardedFor) {
			forwarded = append(forwarded, string(v))
		}
	}
	return door.Caller(s.o.Door.Proxies.Client(peer, forwarded...))
}

// limit counts requests by address and by buyer. Operators are not counted:
// what they do is bounded by their number.
func (s *Server) limit(c *fiber.Ctx) error {
	d := s.o.Door
	if d.Addresses == nil && d.Users == nil {
		return c.Next()
	}
	w := s.caller(c)
	if w.role == door.Operator {
		return c.Next()
	}
	if d.Addresses != nil {
		if err := limited(d.Addresses, "requests from your address", s.address(c)); err != nil {
			return err
		}
	}
	if w.user != "" {
		if err := limited(d.Users, "requests of yours", w.user); err != nil {
			return err
		}
	}
	return c.Next()
}

// limited is a refusal where key is over a limit; by may be nil.
func limited(by door.Limiter, what, key string) error {
	if by == nil {
		return nil
	}
	wait := by.Take(context.Background(), key)
	if wait <= 0 {
		return nil
	}
	return &httpError{status: fiber.StatusTooManyRequests, code: "rate_limited", message: "too many " + what + ": wait a little", after: wait}
}

// crowded makes a refusal of door.ErrBusy, and leaves other errors alone.
func crowded(err error) error {
	if errors.Is(err, door.ErrBusy) {
		return &httpError{status: fiber.StatusServiceUnavailable, code: string(sale.CodeBusy), message: "too many ask at once, try again in a moment",
			after: time.Second}
	}
	return err
}

// retryAfter is a wait in whole seconds, at least one.
func retryAfter(wait time.Duration) int { return max(1, int(math.Ceil(wait.Seconds()))) }

// captcha asks a buyer a riddle; with ?form=text one that needs no eyes.
func (s *Server) captcha(c *fiber.Ctx) error {
	user, id, err := s.wanted(c)
	if err != nil {
		return err
	}
	return s.riddle(c, user, id)
}

// riddle asks somebody a riddle, about a voucher or 0: about logging in.
func (s *Server) riddle(c *fiber.Ctx, user string, about sale.ID) error {
	if s.o.Door.Captcha == nil {
		return sale.NotFound("there is no captcha here")
	}
	form := c.Query("form", "picture")
	if form != "picture" && form != "text" {
		return failure(fiber.StatusBadRequest, "invalid", "form must be picture or text")
	}
	r, err := s.o.Door.Captcha.Ask(user, about, form == "text")
	if err != nil {
		return err
	}
	return c.JSON(fiber.Map{"ticket": r.Ticket, "image": r.DataURL(), "question": r.Text, "expiresAt": r.Expires.UTC()})
}

// wanted is which buyer asks about which voucher.
func (s *Server) wanted(c *fiber.Ctx) (string, sale.ID, error) {
	user, err := s.buyer(c)
	if err != nil {
		return "", 0, err
	}
	id, err := sale.ParseID(c.Params("id"))
	if err != nil {
		return "", 0, sale.NoVoucher()
	}
	return user, id, nil
}

type pathRequest struct {
	Ticket string `json:"ticket"`
	Answer string `json:"answer"`
}

// path hands out a purchase token, once the sale is open.
func (s *Server) path(c *fiber.Ctx) error {
	user, id, err := s.wanted(c)
	if err != nil {
		return err
	}
	var in pathRequest
	if len(c.BodyRaw()) > 0 {
		if err := decode(c.BodyRaw(), &in); err != nil {
			return err
		}
	}
	d := s.o.Door
	if d.Paths == nil {
		return c.JSON(fiber.Map{"required": false, "token": ""})
	}
	ctx, cancel := timed(c)
	defer cancel()
	if err := s.open(ctx, s.address(c), id); err != nil {
		return err
	}
	if d.Captcha != nil && d.Captcha.Needed() {
		if in.Ticket == "" {
			return failure(fiber.StatusForbidden, "captcha_required", "solve a captcha first: GET /api/vouchers/{id}/captcha, then POST its ticket with your answer")
		}
		if err := d.Captcha.Check(ctx, in.Ticket, in.Answer, user, id); errors.Is(err, door.ErrAnswer) {
			return failure(fiber.StatusForbidden, "captcha_wrong", "the captcha was not solved: take another one")
		} else if err != nil {
			return crowded(err)
		}
	}
	token, expires := d.Paths.Issue(user, id)
	return c.JSON(fiber.Map{"required": true, "token": token, "expiresAt": expires.UTC()})
}

// open is nil during the sale of a voucher. The gate has the last word: its
// clock may differ by a little.
func (s *Server) open(ctx context.Context, address string, id sale.ID) error {
	v, err := s.shelf.find(ctx, address, id)
	now := time.Now()
	switch {
	case err != nil:
		return err
	case now.Before(s.o.Service.Board.Opens(v.Voucher)):
		return sale.NotYet(v.Voucher)
	case !now.Before(v.End):
		return sale.Over()
	}
	return nil
}

// passes is nil for a click that came the way it should. It takes nothing of
// the gate's: whoever passes is admitted there, or not.
func (s *Server) passes(c *fiber.Ctx, user string, voucher sale.ID) error {
	if s.o.Door.Paths == nil {
		return nil
	}
	err := s.o.Door.Paths.Check(c.Get("X-Purchase-Token"), user, voucher)
	if err != nil {
		return failure(fiber.StatusForbidden, "purchase_token", "buying needs a purchase token of this voucher, not older than a minute: GET /api/vouchers/{id}/path, then send X-Purchase-Token")
	}
	return nil
}
