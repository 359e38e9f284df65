// Package web is the sale's HTTP API, its storefront and the operator's console. It parses, calls the
// service, and maps errors to answers; the rules are in package sale.
package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	recovery "github.com/gofiber/fiber/v2/middleware/recover"
	"github.com/prometheus/client_golang/prometheus"

	"queuelab/app/console"
	"queuelab/app/door"
	"queuelab/app/loop"
	"queuelab/app/reconcile"
	"queuelab/app/sale"
	"queuelab/app/trace"
)

const (
	maxBody = 64 << 10
	// maxHeader bounds the request line and all headers together.
	maxHeader = 8 << 10
	// readBody is what is read of a body that is too large, so that its sender
	// gets the answer; beyond it the connection is closed.
	readBody = 1 << 20
	maxWait  = 30 * time.Second
	// requestTimeout bounds what one request may wait for others.
	requestTimeout = 5 * time.Second
)

// Options are what a Server is made of. All fields are needed, unless they say
// otherwise.
type Options struct {
	Service         *sale.Service
	Door            *door.Door
	OperatorToken   string
	TrustUserHeader bool // X-User-ID names the buyer: for load tests on loopback only
	Metrics         *Metrics
	Streams         int                   // event streams at a time; 0: DefaultStreams
	Reconcile       *reconcile.Reconciler // nil: off
	// Ready are the parts that must answer for /readyz, by name.
	Ready map[string]func(context.Context) error
	// Spared are those of them without which clicks are taken for a while: while one
	// is away the instance is degraded, and ready.
	Spared []string
	// Unavailable tells an error of something that is away from one of ours.
	Unavailable func(error) bool
	Log         *slog.Logger
	Tracer      *trace.Tracer               // nil: nobody traces
	Console     *console.Reader             // nil: there is no page for the operator
	Kill        func() (pid int, err error) // ends a worker of the lab; nil: this is no lab
	HealthOnly  bool                        // for an instance that takes no clicks: /healthz, /readyz and /metrics are all
}

// Server serves the API.
type Server struct {
	o        Options
	app      *fiber.App
	stopping atomic.Bool
	mu       sync.Mutex
	ln       *silent
	outages  map[string]*loop.Outage // of the parts, by name

	ops        *fiber.App // nil: ServeOps was not called
	opsStopped bool

	busy    loop.Seldom
	shelf   shelf
	streams *streams
}

// New makes a Server; Serve starts it.
func New(o Options) *Server {
	s := &Server{o: o, shelf: shelf{list: o.Service.Vouchers, older: newOlder(o.Service.Store.Voucher)}}
	s.streams = newStreams(o.Streams)
	o.Metrics.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "seckill_streams",
		Help: "Event streams of buyers who wait."}, s.streams.count))
	s.app = fiber.New(fiber.Config{
		AppName:               "seckill",
		DisableStartupMessage: true,
		BodyLimit:             readBody,
		ReadBufferSize:        maxHeader,
		ReadTimeout:           5 * time.Second,
		WriteTimeout:          10 * time.Second,
		IdleTimeout:           30 * time.Second,
		ErrorHandler:          s.onError,
	})
	// The last answer of a connection says that it is the last: a balancer that
	// keeps its connections sends the next request elsewhere.
	s.app.Server().CloseOnShutdown = true
	s.app.Server().Handler = s.framed(s.app.Server().Handler)
	s.app.Use(recovery.New())
	if o.Tracer != nil {
		s.app.Use(traced(o.Tracer))
	}
	s.app.Use(s.o.Metrics.measure, guarded(), s.deeds)
	s.opsRoutes(s.app, true)
	if o.HealthOnly {
		if o.Reconcile != nil {
			o.Metrics.Registry.MustRegister(driftCollector{o.Reconcile})
		}
		return s
	}
	s.storefrontRoutes(s.app)
	api := s.app.Group("/api", bounded)
	s.publicRoutes(api)
	api.Use(s.limit)
	s.doorRoutes(api)
	api.Post("/vouchers", s.createVoucher)
	api.Post("/vouchers/:id/orders", s.buy)
	api.Get("/orders/:id", s.order)
	s.lifeRoutes(api)
	s.eventRoutes(api)
	s.reconcileRoutes(api)
	s.consoleRoutes(api)
	return s
}

// Serve serves until Stop; nil after a Stop, also one that came first. It
// closes ln.
func (s *Server) Serve(ln net.Listener) error {
	s.mu.Lock()
	s.ln = trackSilent(ln)
	stopped := s.stopping.Load()
	s.mu.Unlock()
	if stopped {
		return ln.Close()
	}
	if err := s.app.Listener(s.ln); err != nil && !s.stopping.Load() {
		return err
	}
	return nil
}

// Refuse makes /readyz fail, so that a load balancer looks elsewhere.
func (s *Server) Refuse() { s.stopping.Store(true) }

// Stop refuses new connections and waits for running requests, at most so long.
func (s *Server) Stop(timeout time.Duration) error {
	s.Refuse()
	s.o.Service.Results.Close() // long polls answer now
	s.streams.stop()
	s.mu.Lock()
	ln := s.ln
	s.mu.Unlock()
	if ln == nil {
		return nil // Serve will find that it is too late
	}
	// Closed here too: a server that had not quite begun to serve knows nothing
	// of its shutdown.
	_ = ln.Close()
	ln.closeSilent()
	if err := s.app.ShutdownWithTimeout(timeout); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
