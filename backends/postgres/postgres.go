package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"queuelab/backends/internal/driver"
	"queuelab/backends/internal/params"
	"queuelab/queue"
)

// longestName leaves room for what stands before and behind it in the names of
// the table and its index: PostgreSQL cuts names off at 63 bytes.
const longestName = 50

type table struct {
	lease, poll, timeout time.Duration
	notify, byKey        bool
	batch, pipeline      int

	name     string
	sql      statements
	server   *pgx.ConnConfig
	caps     queue.Capabilities
	control  *session
	bell     *bell
	children driver.Children
}

// Open opens the queue that u names. It creates the table where there is none,
// and reads how the server commits.
func Open(ctx context.Context, u *url.URL) (queue.Queue, error) {
	p := params.New(u)
	p.Preset(map[string]map[string]string{
		"latency":    {"poll": "100ms"},
		"throughput": {"batch": "1000", "pipeline": "2000"},
	})
	q := &table{
		lease:    p.Duration("lease", 30*time.Second, 100*time.Millisecond, time.Hour),
		poll:     p.Duration("poll", time.Second, time.Millisecond, time.Minute),
		timeout:  p.Duration("timeout", 5*time.Second, 10*time.Millisecond, 10*time.Minute),
		notify:   p.Bool("notify", true),
		byKey:    p.OneOf("order", "consumer", "key") == "key",
		batch:    p.Int("batch", 100, 1, 10000),
		pipeline: p.Int("pipeline", 512, 1, 10000),
	}
	name := p.Name("queue", "")
	ssl := p.OneOf("sslmode", "prefer", "disable", "allow", "require", "verify-ca", "verify-full")
	if err := p.Err(); err != nil {
		return nil, err
	}
	switch {
	case name == "":
		return nil, errors.New("the parameter queue=NAME is missing")
	case len(name) > longestName:
		return nil, fmt.Errorf("parameter queue=%q: %d bytes, and a table's name has room for %d", name, len(name), longestName)
	}
	q.name = "queue_" + name
	q.sql = statementsFor(q.name, q.byKey)
	plain := *u
	plain.RawQuery, plain.Fragment = url.Values{"sslmode": {ssl}}.Encode(), ""
	var err error
	if q.server, err = pgx.ParseConfig(plain.String()); err != nil {
		// The library's error may quote the URL, password and all.
		return nil, errors.New("want postgres://user:password@host:port/database, with special characters percent-encoded")
	}
	q.server.ConnectTimeout = q.timeout
	q.server.RuntimeParams["application_name"] = "queuelab " + q.name

	q.control = newSession(q.server, "")
	if err := q.prepare(ctx); err != nil {
		q.control.close()
		return nil, err
	}
	q.bell = newBell(q)
	return q, nil
}

// prepare makes the table and learns what a commit means.
func (q *table) prepare(ctx context.Context) error {
	return q.administer(ctx, "open", func(ctx context.Context, c *pgx.Conn) error {
		var commit, sync, standbys string
		err := c.QueryRow(ctx, `SELECT current_setting('synchronous_commit'), current_setting('fsync'), current_setting('synchronous_standby_names')`).
			Scan(&commit, &sync, &standbys)
		if err != nil {
			return err
		}
		err = pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			// CREATE ... IF NOT EXISTS fails where two do it at the same time.
			if _, err := tx.Exec(ctx, lock, "create "+q.name); err != nil {
				return err
			}
			for _, create := range q.sql.create {
				if _, err := tx.Exec(ctx, create); err != nil {
					return fmt.Errorf("create the table: %w", err)
				}
			}
			return nil
		})
		q.caps = capabilities(commit, sync, standbys)
		return err
	})
}

// capabilities claims for a server with those settings.
func capabilities(commit, sync, standbys string) queue.Capabilities {
	caps := queue.Capabilities{
		Guarantee:     queue.AtLeastOnce,
		Confirm:       queue.ConfirmDisk,
		AckConfirmed:  true,
		Attempts:      queue.CountedByBroker,
		Nack:          true,
		OrderedPerKey: true,
		Stored:        true,
		Durable:       true,
		Shared:        true,
		LeaseFenced:   true,
	}
	switch {
	case commit == "off":
		caps.Confirm, caps.Durable = queue.ConfirmMemory, false
	case sync == "off":
		caps.Confirm = queue.ConfirmOS
	case standbys != "" && commit != "local":
		caps.Confirm = queue.ConfirmReplicas
	}
	return caps
}

// administer runs do on the handle's own connection, within the time for an
// answer, and again where the connection turns out to be dead.
func (q *table) administer(ctx context.Context, op string, do func(context.Context, *pgx.Conn) error) error {
	within, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	try := func() error { return q.control.do(within, func(c *pgx.Conn) error { return do(within, c) }) }
	err := try()
	if err != nil && q.control.dead() && within.Err() == nil {
		err = try() // the connection was dead before; all that is done here may be done twice
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, queue.ErrClosed):
		return queue.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("postgres %s %s: %w", op, q.name, err)
}

// Capabilities implements queue.Queue.
func (q *table) Capabilities() queue.Capabilities { return q.caps }

// Backlog implements queue.Backlogger. It counts rows, so that it takes as long
// as the queue is full. There is no dead-letter table.
func (q *table) Backlog(ctx context.Context) (b queue.Backlog, err error) {
	err = q.administer(ctx, "backlog", func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, q.sql.backlog).Scan(&b.Ready, &b.InFlight)
	})
	return b, err
}

// Delete implements queue.Queue.
func (q *table) Delete(ctx context.Context) error {
	return q.administer(ctx, "delete", func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, q.sql.drop)
		return err
	})
}

// Close implements queue.Queue.
func (q *table) Close() error {
	first, err := q.children.CloseAll()
	if !first {
		return nil
	}
	q.bell.close()
	q.control.close()
	return err
}

var _ queue.Backlogger = (*table)(nil)

// rolledBack reports whether an error proves that a statement, which was sent by
// itself, has done nothing: it was not sent, or the server answered that it
// failed. When the server ends the connection it says so as well, perhaps after
// the commit.
func rolledBack(err error) bool {
	var dial *dialError
	var pg *pgconn.PgError
	return errors.Is(err, queue.ErrClosed) || errors.As(err, &dial) || pgconn.SafeToRetry(err) ||
		errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR"
}
