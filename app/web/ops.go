package web

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	recovery "github.com/gofiber/fiber/v2/middleware/recover"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"queuelab/app/loop"
)

// opsRoutes are for whoever runs the service.
func (s *Server) opsRoutes(app *fiber.App, public bool) {
	app.Get("/healthz", func(c *fiber.Ctx) error { return c.JSON(fiber.Map{"status": "ok"}) })
	app.Get("/readyz", s.ready)
	if metrics := adaptor.HTTPHandler(promhttp.HandlerFor(s.o.Metrics.Registry, promhttp.HandlerOpts{})); public {
		app.Get("/metrics", s.insiders, metrics)
	} else {
		app.Get("/metrics", metrics)
	}
}

// insiders are programs of this machine, and operators: what a sale sells by the
// second, and how the service is built, is for nobody else. What a proxy of this
// machine passes on is from elsewhere.
func (s *Server) insiders(c *fiber.Ctx) error {
	peer, ok := c.Context().RemoteAddr().(*net.TCPAddr)
	passedOn := len(c.Request().Header.Peek(fiber.HeaderXForwardedFor)) > 0 || len(c.Request().Header.Peek("Forwarded")) > 0
	if ok && peer.IP.IsLoopback() && !passedOn || s.operator(c) {
		return c.Next()
	}
	if w := s.caller(c); w.user == "" && w.err != nil {
		return failure(fiber.StatusUnauthorized, "unauthorized", "metrics are for operators: send an operator's token, ask from this machine, or ask the listener of --ops-listen")
	}
	return failure(fiber.StatusForbidden, "forbidden", "metrics are for operators")
}

// ServeOps serves metrics and probes to whoever reaches ln, until Stop; nil after
// a Stop. It closes ln.
func (s *Server) ServeOps(ln net.Listener) error {
	app := fiber.New(fiber.Config{DisableStartupMessage: true, ReadBufferSize: maxHeader, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second,
		IdleTimeout: 30 * time.Second, ErrorHandler: s.onError})
	app.Use(recovery.New())
	s.opsRoutes(app, false)
	s.mu.Lock()
	s.ops = app
	stopped := s.opsStopped
	s.mu.Unlock()
	if stopped {
		return ln.Close()
	}
	err := app.Listener(ln)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opsStopped {
		return nil
	}
	return err
}

// StopOps ends ServeOps: after Stop, since operators watch that too.
func (s *Server) StopOps(timeout time.Duration) error {
	s.mu.Lock()
	s.opsStopped = true
	app := s.ops
	s.mu.Unlock()
	if app == nil {
		return nil // ServeOps will find that it is too late
	}
	if err := app.ShutdownWithTimeout(timeout); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// ready asks every part at once; the answer names those that fail.
func (s *Server) ready(c *fiber.Ctx) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	type result struct {
		name string
		err  error
	}
	results := make(chan result, len(s.o.Ready))
	for name, check := range s.o.Ready {
		go func() { results <- result{name, check(ctx)} }()
	}
	status := fiber.StatusOK
	parts := map[string]string{}
	for range s.o.Ready {
		r := <-results
		switch {
		case r.err == nil:
			parts[r.name] = "ok"
		case slices.Contains(s.o.Spared, r.name):
			parts[r.name] = "degraded"
		default:
			parts[r.name] = "failed"
			status = fiber.StatusServiceUnavailable
		}
		s.note(r.name, r.err)
	}
	if s.stopping.Load() {
		status, parts["service"] = fiber.StatusServiceUnavailable, "stopping"
	}
	return c.Status(status).JSON(parts)
}

// note tells the log when a part begins to fail, and when that is over: its cause
// may hold addresses, and is for nobody else.
func (s *Server) note(part string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outages == nil {
		s.outages = map[string]*loop.Outage{}
	}
	o := s.outages[part]
	if o == nil {
		o = &loop.Outage{Tell: loop.Say(s.o.Log, "a part is not ready", "part", part)}
		s.outages[part] = o
	}
	o.Note(err)
}
