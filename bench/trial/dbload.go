package trial

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"time"

	"queuelab/bench/broker"
)

// DatabaseLoad is what a sale cost PostgreSQL, from the moment at which the
// service was ready until it was stopped: the orders, and the buyers who asked
// for the answer.
type DatabaseLoad struct {
	Transactions int64   `json:"transactions"` // committed
	Rollbacks    int64   `json:"rollbacks"`
	RowsWritten  int64   `json:"rowsWritten"` // inserted, updated or deleted
	PerOrder     float64 `json:"transactionsPerOrder"`
	PerSecond    float64 `json:"transactionsPerSecond"` // until everybody had the final answer
	// CPUSeconds is of all its processes; 0: not known, as it is not ours.
	CPUSeconds float64 `json:"cpuSeconds"`
}

// counting counts what the sale's databases do.
type counting struct {
	db     *sql.DB // of the server, and no database of the sale; nil: nothing to count
	names  []string
	server *broker.Broker
	before DatabaseLoad
}

// startCounted makes the service's tables, starts it and counts from then on.
func (s *service) startCounted(ctx context.Context) (*counting, error) {
	c := &counting{}
	if s.driver != "pgx" {
		return c, s.start(ctx)
	}
	migrate := exec.CommandContext(ctx, s.lab.Seckill, "migrate", "up")
	migrate.Env = s.env
	if said, err := migrate.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make the service's tables: %w: %s", err, said)
	}
	pg, err := s.lab.start(ctx, "postgres", "", "")
	if err != nil {
		return nil, err
	}
	c.server = pg
	for _, dsn := range []string{s.dsn, s.stockDSN} {
		if u, err := url.Parse(dsn); err == nil && dsn != "" {
			c.names = append(c.names, strings.TrimPrefix(u.Path, "/"))
		}
	}
	if c.db, err = sql.Open("pgx", pg.URL()); err != nil {
		return nil, fmt.Errorf("count the database's work: %w", err)
	}
	if c.before, err = c.read(ctx); err == nil {
		err = s.start(ctx)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// read waits until nobody is connected to the sale's databases, as PostgreSQL
// counts what a connection did when that ends, and reads the counters.
func (c *counting) read(ctx context.Context) (l DatabaseLoad, err error) {
	err = waitFor(ctx, "the service's connections to PostgreSQL to end", 10*time.Second, 20*time.Millisecond, func() (bool, error) {
		var connected int
		err := c.db.QueryRowContext(ctx, `SELECT coalesce(sum(numbackends), 0), coalesce(sum(xact_commit), 0), coalesce(sum(xact_rollback), 0),
			coalesce(sum(tup_inserted + tup_updated + tup_deleted), 0) FROM pg_stat_database WHERE datname = ANY($1)`, c.names).
			Scan(&connected, &l.Transactions, &l.Rollbacks, &l.RowsWritten)
		return connected == 0, err
	})
	if err != nil {
		return l, fmt.Errorf("count the database's work: %w", err)
	}
	u, err := c.server.Usage(ctx)
	if err == nil && u.Known {
		l.CPUSeconds = u.CPU.Seconds()
	}
	return l, err
}

// stop is to be called once the service has ended, of a sale that took so long;
// nil: there is nothing to tell.
func (c *counting) stop(ctx context.Context, took time.Duration, sold int) (*DatabaseLoad, error) {
	if c.db == nil {
		return nil, nil
	}
	l, err := c.read(ctx)
	if err != nil {
		return nil, err
	}
	l = l.since(c.before, took, sold)
	return &l, nil
}

// since is what was done after before, in a sale that took so long.
func (l DatabaseLoad) since(before DatabaseLoad, took time.Duration, sold int) DatabaseLoad {
	l.Transactions -= before.Transactions
	l.Rollbacks -= before.Rollbacks
	l.RowsWritten -= before.RowsWritten
	l.PerSecond = float64(l.Transactions) / took.Seconds()
	if sold > 0 {
		l.PerOrder = float64(l.Transactions) / float64(sold)
	}
	if l.CPUSeconds -= before.CPUSeconds; before.CPUSeconds == 0 {
		l.CPUSeconds = 0
	}
	return l
}

func (c *counting) close() {
	if c.db != nil {
		c.db.Close()
	}
}
