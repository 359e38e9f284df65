package web

import (
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"queuelab/app/trace"
)

// traced is a middleware that begins the trace of a request. What a client says of
// a trace is not believed: it could have everything sampled.
func traced(t *trace.Tracer) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if !strings.HasPrefix(c.Path(), "/api/") {
			return c.Next()
		}
		ctx, span := t.Start(c.UserContext(), knownMethod(c.Method()), trace.Server)
		c.SetUserContext(ctx)
		err := c.Next()
		if span.Traced() {
			// Copies: fiber's strings change with the next request.
			method, route := knownMethod(c.Method()), strings.Clone(c.Route().Path)
			span.Name(method + " " + route)
			span.Set("http.request.method", method, "http.route", route, "http.response.status_code", strconv.Itoa(c.Response().StatusCode()))
		}
		span.End(err)
		return err
	}
}
