package web

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"path"

	"github.com/gofiber/fiber/v2"
)

//go:embed pages/console.html pages/console.js pages/console-words.js pages/console.css
var consoleFiles embed.FS

// consoleRoutes are the operator's page and what only that asks for.
func (s *Server) consoleRoutes(api fiber.Router) {
	if s.o.Console == nil {
		return
	}
	s.app.Get("/operator", embedded(consoleFiles, "pages/console.html"))
	for _, name := range []string{"console.js", "console-words.js", "console.css"} {
		s.app.Get("/operator/"+name, embedded(consoleFiles, "pages/"+name))
	}
	api.Get("/operator/state", s.state)
	api.Post("/operator/kill", s.killWorker)
}

// pagePolicy lets a page load nothing but what this server has, and run nothing
// that stands in it.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// embedded serves a file of ours. A page is asked for again each time, and sent
// only when it is another one.
func embedded(files embed.FS, name string) fiber.Handler {
	body, err := files.ReadFile(name)
	if err != nil {
		return func(*fiber.Ctx) error { return err }
	}
	sum := sha256.Sum256(body)
	etag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	return func(c *fiber.Ctx) error {
		c.Type(path.Ext(name), "utf-8")
		c.Set(fiber.HeaderContentSecurityPolicy, pagePolicy)
		c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
		c.Set(fiber.HeaderReferrerPolicy, "no-referrer")
		c.Set(fiber.HeaderCacheControl, "no-cache")
		c.Set(fiber.HeaderETag, etag)
		if c.Get(fiber.HeaderIfNoneMatch) == etag {
			return c.SendStatus(fiber.StatusNotModified)
		}
		return c.Send(body)
	}
}

// state is what the operator's page shows.
func (s *Server) state(c *fiber.Ctx) error {
	if _, err := s.onlyOperator(c); err != nil {
		return err
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.JSON(s.o.Console.State())
}

// killWorker ends a worker of the lab the hard way, so that one can watch what a
// sale makes of it.
func (s *Server) killWorker(c *fiber.Ctx) error {
	by, err := s.onlyOperator(c)
	if err != nil {
		return err
	}
	if s.o.Kill == nil {
		return failure(fiber.StatusForbidden, "forbidden", "no worker of this instance can be killed: it was not started with --lab")
	}
	pid, err := s.o.Kill()
	if err != nil {
		return failure(fiber.StatusConflict, "wrong_state", err.Error())
	}
	s.o.Log.Warn("a worker was killed", "pid", pid, "by", by)
	return c.JSON(fiber.Map{"pid": pid})
}
