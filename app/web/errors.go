package web

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"

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
		status, b.Error.Message = fe.Code, fe.Message
		switch fe.Code {
		case fiber.StatusNotFound:
			b.Error.Code, b.Error.Message = "not_found", "there is nothing at this address"
		case fiber.StatusMethodNotAllowed:
			b.Error.Code, b.Error.Message = "invalid", "this address does not take that method"
		case fiber.StatusRequestEntityTooLarge:
			b.Error.Code, b.Error.Message = "too_large", "the body is larger than 64 KiB"
		case fiber.StatusRequestHeaderFieldsTooLarge:
			b.Error.Code, b.Error.Message = "too_large", "the headers are larger than 8 KiB"
		default:
			b.Error.Code = "invalid"
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
