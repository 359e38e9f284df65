package web

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"queuelab/app/sale"
)

// httpError is an answer that is no success.
type httpError struct {
	status  int
	code    string
	message string
	after   time.Duration // when to come again; 0: not told
}

func (e *httpError) Error() string { return fmt.Sprintf("%d %s: %s", e.status, e.code, e.message) }

func failure(status int, code, message string) error {
	return &httpError{status: status, code: code, message: message}
}

// statusOf is 500 for a code that it does not know.
func statusOf(code sale.Code) int {
	switch code {
	case sale.CodeSoldOut, sale.CodeAlreadyBought, sale.CodeTooLate, sale.CodeAlreadyPaid, sale.CodeWrongState:
		return fiber.StatusConflict
	case sale.CodeNotStarted:
		return fiber.StatusForbidden
	case sale.CodeEnded:
		return fiber.StatusGone
	case sale.CodeNotFound:
		return fiber.StatusNotFound
	case sale.CodeBusy:
		return fiber.StatusServiceUnavailable
	case sale.CodeInvalid:
		return fiber.StatusBadRequest
	}
	return fiber.StatusInternalServerError
}

type errorBody struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// logBusy writes one line a second: a busy sale refuses thousands.
func (s *Server) logBusy(err error) {
	if s.busy.Now() {
		s.o.Log.Warn("buyers are told to come again", "error", err)
	}
}

// framed answers what fiber would not, or not as JSON, and hands on the rest:
// unknown methods, and requests of which a proxy could see another end than we do,
// since their length is given twice.
func (s *Server) framed(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		h := &ctx.Request.Header
		var err error
		if !slices.Contains(fiber.DefaultMethods, string(h.Method())) {
			ctx.Response.Header.Set(fiber.HeaderAllow, "GET, HEAD, POST, DELETE")
			err = fiber.ErrMethodNotAllowed
		} else if lengths(h.RawHeaders()) > 1 {
			ctx.SetConnectionClose() // nobody knows where the next request begins
			err = failure(fiber.StatusBadRequest, "invalid", "the length of the body is given more than once: send one Content-Length, or Transfer-Encoding without it")
		}
		if err == nil {
			next(ctx)
			return
		}
		c := s.app.AcquireCtx(ctx)
		defer s.app.ReleaseCtx(c)
		if err := s.onError(c, err); err != nil {
			s.o.Log.Error("an error could not be answered", "error", err)
		}
	}
}

// lengths counts the headers that say how long the body is.
func lengths(headers []byte) (n int) {
	for len(headers) > 0 {
		var line []byte
		line, headers, _ = bytes.Cut(headers, []byte("\n"))
		// Most lines end here, as this is for every click.
		if len(line) < len("Content-Length:") || line[0]|0x20 != 'c' && line[0]|0x20 != 't' {
			continue
		}
		name, _, _ := bytes.Cut(line, []byte(":"))
		if name = bytes.TrimSpace(name); bytes.EqualFold(name, []byte("Content-Length")) || bytes.EqualFold(name, []byte("Transfer-Encoding")) {
			n++
		}
	}
	return n
}

// onError turns every error into the one shape of an error answer.
func (s *Server) onError(c *fiber.Ctx, err error) error {
	var b errorBody
	status := fiber.StatusInternalServerError
	b.Error.Code, b.Error.Message = "internal", "something went wrong here, not with your request"
	var se *sale.Error
	var he *httpError
	var fe *fiber.Error
	switch {
	case errors.As(err, &se):
		status, b.Error.Code, b.Error.Message = statusOf(se.Code), string(se.Code), se.Message
		if se.RetryAfter > 0 {
			c.Set(fiber.HeaderRetryAfter, strconv.Itoa(retryAfter(se.RetryAfter)))
			s.logBusy(err)
		}
		if se.OrderID != 0 {
			c.Set(fiber.HeaderLocation, "/api/orders/"+se.OrderID.String())
		}
	case errors.As(err, &he):
		status, b.Error.Code, b.Error.Message = he.status, he.code, he.message
		if status == fiber.StatusUnauthorized {
			c.Set(fiber.HeaderWWWAuthenticate, "Bearer")
		}
		if he.after > 0 {
			c.Set(fiber.HeaderRetryAfter, strconv.Itoa(retryAfter(he.after)))
		}
	case errors.As(err, &fe):
		status = fe.Code
		switch fe.Code {
		case fiber.StatusNotFound:
			b.Error.Code, b.Error.Message = "not_found", "there is nothing at this address: vouchers are at /api/vouchers, your orders at /api/orders"
		case fiber.StatusMethodNotAllowed:
			b.Error.Code, b.Error.Message = "method_not_allowed", "this address does not take that method: the header Allow names those that it takes"
		case fiber.StatusRequestTimeout:
			b.Error.Code, b.Error.Message = "timeout", "the request did not come to its end in time: send it again"
		case fiber.StatusRequestEntityTooLarge:
			b.Error.Code, b.Error.Message = "too_large", "the body is larger than 64 KiB"
		case fiber.StatusRequestHeaderFieldsTooLarge:
			b.Error.Code, b.Error.Message = "too_large", "the headers are larger than 8 KiB"
		default:
			// What fasthttp has to say repeats the request.
			b.Error.Code, b.Error.Message = "invalid", "this is no HTTP request that can be read: look at its first line, its headers and the length of its body"
		}
	case s.o.Unavailable(err):
		status, b.Error.Code, b.Error.Message = fiber.StatusServiceUnavailable, string(sale.CodeBusy), "the service cannot answer at the moment, try again soon"
		c.Set(fiber.HeaderRetryAfter, "1")
		s.logBusy(err)
	default:
		s.o.Log.Error("request failed", "method", c.Method(), "path", c.Path(), "error", err)
	}
	s.o.Metrics.refusals.of(b.Error.Code).Inc()
	return c.Status(status).JSON(b)
}
