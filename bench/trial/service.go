package trial

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // driver "pgx"
	_ "modernc.org/sqlite"             // driver "sqlite"

	"github.com/HdrHistogram/hdrhistogram-go"

	"queuelab/backends"
	"queuelab/bench/broker"
	"queuelab/bench/ledger"
	"queuelab/bench/node"
	"queuelab/bench/shop"
	"queuelab/queue"
)

// service is the real seckill process over one queue, with a database and an
// admission of its own.
type service struct {
	lab      *Lab
	trial    uint32
	broker   *broker.Broker
	gate     *broker.Broker // the Redis for admission; nil: in the service's process
	queueURL string
	argv     []string
	env      []string // holds what has passwords: arguments are for all to see
	driver   string   // of its database, to look into from outside
	dsn      string
	stockDSN string // of another database for the stock; "": there is none, or it is a file
	caps     queue.Capabilities
	process  *node.Guarded
	client   *shop.Client
}

// newService prepares a service over the setting's queue. The memory queue runs
// as it does without any install: SQLite, and admission in the process.
func (l *Lab) newService(ctx context.Context, s Setting, connections int) (*service, error) {
	return l.buildService(ctx, s, Way{}, s.Broker == "", connections)
}

// buildService is newService for one way of selling; zero: without any install.
func (l *Lab) buildService(ctx context.Context, s Setting, way Way, zero bool, connections int) (*service, error) {
	b, err := l.broker(ctx, s)
	if err != nil {
		return nil, err
	}
	trial := l.nextTrial()
	svc := &service{lab: l, trial: trial, broker: b}
	if !way.NoQueue {
		if err := svc.openQueue(ctx, s, way); err != nil {
			return nil, err
		}
	}
	port, err := broker.FreePort()
	if err != nil {
		return nil, err
	}
	listen := fmt.Sprintf("127.0.0.1:%d", port)
	token := randomToken()
	svc.client = shop.New("http://"+listen, token, connections)
	// What the user's shell sets for a service of theirs is not for this one.
	svc.env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "SECKILL_") })
	svc.env = append(svc.env, "SECKILL_OPERATOR_TOKEN="+token)
	if svc.queueURL != "" {
		svc.env = append(svc.env, "SECKILL_QUEUE="+svc.queueURL)
	}
	svc.argv = append([]string{l.Seckill, "--listen", listen,
		"--trust-user-header", "--allow-lossy", "--allow-unsafe", saleUnsafe, "--rescan", "2s", "--lanes", strconv.Itoa(saleLanes)}, way.Args...)
	if zero {
		path := filepath.Join(l.dir, fmt.Sprintf("trial-%d-sale.db", trial))
		svc.driver, svc.dsn = "sqlite", "file:"+path+"?mode=ro"
		svc.env = append(svc.env, "SECKILL_DB=sqlite:"+path)
		if way.TwoDatabases {
			svc.env = append(svc.env, "SECKILL_STOCK_DB=sqlite:"+path+"-stock")
		}
		return svc, nil
	}
	db, err := l.database(ctx, fmt.Sprintf("sale%d", trial))
	if err != nil {
		return nil, err
	}
	if way.TwoDatabases {
		if svc.stockDSN, err = l.database(ctx, fmt.Sprintf("sale%d_stock", trial)); err != nil {
			return nil, err
		}
		svc.env = append(svc.env, "SECKILL_STOCK_DB="+svc.stockDSN)
	}
	gate := b
	if !way.InScript {
		if gate, err = l.admission(ctx); err != nil {
			return nil, fmt.Errorf("the Redis for admission: %w", err)
		}
	}
	svc.driver, svc.dsn, svc.gate = "pgx", db, gate
	svc.env = append(svc.env, "SECKILL_DB="+db, "SECKILL_REDIS="+gate.URL())
	return svc, nil
}

// openQueue gives the service a queue of its own, and learns what it promises.
func (s *service) openQueue(ctx context.Context, of Setting, way Way) error {
	s.queueURL = s.lab.queueURL(s.broker, of, fmt.Sprintf("sale%d", s.trial), saleQuery(backendOf(of.Backend)))
	q, err := backends.Open(ctx, s.queueURL)
	if err != nil {
		return err
	}
	s.caps = q.Capabilities()
	_, scripted := q.(queue.ScriptEnqueuer)
	if err := q.Close(); err != nil {
		return fmt.Errorf("close the queue: %w", err)
	}
	if way.InScript && !scripted {
		return errNoScript
	}
	return nil
}

// saleUnsafe are the settings that the service would refuse: showing what they
// lose is what the lab is for.
const saleUnsafe = "redis-persistence,redis-eviction,redis-fsync,kafka-acks,rabbitmq-transient,rabbitmq-prefetch,postgres-fsync,postgres-synchronous-commit"

// saleLanes is how many batches of orders the service decides at once.
const saleLanes = 4

// saleQuery are the client's parameters in a sale: leases short enough for a
// dead service's orders to come back before the buyers' deadline.
func saleQuery(b backends.Backend) string {
	if b.Lease == "" {
		return ""
	}
	return url.Values{b.Lease: {"2s"}}.Encode()
}

// start runs the service and returns once it is ready.
func (s *service) start(ctx context.Context) error {
	p, err := node.StartGuarded(s.env, s.argv...)
	if err != nil {
		return err
	}
	s.process = p
	return waitFor(ctx, "the service to be ready", 40*time.Second, 20*time.Millisecond, func() (bool, error) {
		if p.Ended() {
			return false, fmt.Errorf("the service ended at once %s", p.Said())
		}
		return s.client.Ready(ctx), nil
	})
}

// killMidSale kills the service once so many orders have been admitted, and
// starts it again. It notes how far the sale was, and for how long the service
// was not there.
func (s *service) killMidSale(ctx context.Context, door *clicks, admitted int64, out *saleOutcome) error {
	err := waitFor(ctx, fmt.Sprintf("%d admitted orders", admitted), 30*time.Second, 200*time.Microsecond, func() (bool, error) {
		return door.queued.Load() >= admitted, nil
	})
	if err != nil {
		return err
	}
	killed := ledger.Now()
	if err := s.process.Kill(); err != nil {
		return err
	}
	out.QueuedAtKill = door.queued.Load()
	if err := s.start(ctx); err != nil {
		return fmt.Errorf("restart the service: %w", err)
	}
	out.RecoveryMillis = (ledger.Now() - killed) / 1e6
	return nil
}

// audit counts what is in the database, not what the service says. Orders whose
// buyers got no answer may still be on their way, so it gives them the time
// until the deadline to arrive.
func (s *service) audit(ctx context.Context, voucher string, orders map[int]string, deadline time.Time, out *Sale) error {
	if _, err := strconv.ParseInt(voucher, 10, 64); err != nil { // it goes into the queries below
		return fmt.Errorf("the service's id of the voucher: %w", err)
	}
	db, err := sql.Open(s.driver, s.dsn)
	if err != nil {
		return fmt.Errorf("open the sale's database: %w", err)
	}
	defer db.Close()
	want := min(out.Stock, out.Buyers)
	for {
		var buyers int
		err := db.QueryRowContext(ctx, `SELECT count(*), count(DISTINCT user_id) FROM orders WHERE voucher_id = `+voucher+` AND status IN ('confirmed', 'paid')`).Scan(&out.Sold, &buyers)
		if err != nil {
			return fmt.Errorf("count the orders: %w", err)
		}
		out.Double = out.Sold - buyers
		if out.Sold >= want || time.Now().After(deadline) {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	out.Oversold, out.Undersold = max(0, out.Sold-out.Stock), max(0, want-out.Sold)
	// An order that a buyer was told of is lost when the database has none of it.
	rows, err := db.QueryContext(ctx, `SELECT id FROM orders WHERE voucher_id = `+voucher)
	if err != nil {
		return fmt.Errorf("list the orders: %w", err)
	}
	defer rows.Close()
	known := map[string]bool{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return fmt.Errorf("list the orders: %w", err)
		}
		known[id] = true
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("list the orders: %w", err)
	}
	out.LostOrders = 0
	for _, id := range orders {
		if !known[id] {
			out.LostOrders++
		}
	}
	return nil
}

// committed is the time from each buyer's first click to the commit of its row,
// as PostgreSQL stamped it, and when the last one was committed; nil where the
// database keeps no such stamps.
func (s *service) committed(ctx context.Context, voucher string, first map[int]time.Time) (h *hdrhistogram.Histogram, last time.Time, err error) {
	// A PostgreSQL that was given by URL may have another clock.
	if s.driver != "pgx" || s.lab.External["postgres"] != "" {
		return nil, last, nil
	}
	db, err := sql.Open(s.driver, s.dsn)
	if err != nil {
		return nil, last, fmt.Errorf("open the sale's database: %w", err)
	}
	defer db.Close()
	var tracked string
	if err := db.QueryRowContext(ctx, `SHOW track_commit_timestamp`).Scan(&tracked); err != nil || tracked != "on" {
		return nil, last, err
	}
	rows, err := db.QueryContext(ctx, `SELECT user_id, pg_xact_commit_timestamp(xmin) FROM orders WHERE voucher_id = `+voucher+` AND status IN ('confirmed', 'paid')`)
	if err != nil {
		return nil, last, fmt.Errorf("read when the orders were committed: %w", err)
	}
	defer rows.Close()
	h = newHistogram()
	for rows.Next() {
		var user int
		var at sql.NullTime
		if err := rows.Scan(&user, &at); err != nil {
			return nil, last, fmt.Errorf("read when the orders were committed: %w", err)
		}
		if at.Time.After(last) {
			last = at.Time
		}
		if clicked, ok := first[user]; ok && at.Valid {
			_ = h.RecordValue(at.Time.Sub(clicked).Nanoseconds()) // below 0 only where the clock was set: it shows in N
		}
	}
	return h, last, rows.Err()
}

// settings are what the service ran with, secrets left out.
func (s *service) settings(ctx context.Context) (map[string]string, error) {
	m, err := s.lab.effectiveSettings(ctx, s.broker, s.queueURL)
	if err != nil {
		return nil, err
	}
	db := "sqlite"
	if s.driver == "pgx" {
		if u, err := url.Parse(s.dsn); err == nil {
			db = u.Scheme
		}
	}
	m["database"] = db
	m["admission"] = "in the service's process"
	switch {
	case s.gate == nil:
	case s.gate == s.broker:
		m["admission"] = "redis, the queue's own"
	case s.gate.External():
		m["admission"] = "redis, given by URL"
	default:
		m["admission"] = "redis, aof-everysec"
	}
	m["rescan"] = "2s"
	return m, nil
}

// Close ends the service and removes what was its own.
func (s *service) Close() {
	if s.process != nil {
		s.process.Stop()
	}
	s.client.Close()
	s.lab.deleteQueue(context.Background(), s.broker, s.queueURL)
	s.lab.removeLedgers(s.trial)
}
