package node

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"time"

	"queuelab/queue"
)

// orders is the shop that a producer stands for: it commits an order for each
// message. Without an outbox the order is committed first and the message is
// published then, and whatever comes in between leaves one without the other.
// With an outbox both are committed at once, and a relay publishes what the
// outbox has: again, where it does not know whether it did.
type orders struct {
	queue.Publisher // as ledger.RecordPublisher returns it
	db              *sql.DB
	trial           uint32
	outbox          bool
	gap             time.Duration
	arg             func(n int) string // a placeholder
}

const (
	relayBatch = 64
	relayPause = 20 * time.Millisecond
	relayAgain = 300 * time.Millisecond
)

func openOrders(ctx context.Context, p queue.Publisher, cfg Config) (*orders, error) {
	db, postgres, err := openDatabase(cfg.Produce.Orders)
	if err != nil {
		return nil, fmt.Errorf("open the orders database: %w", err)
	}
	o := &orders{Publisher: p, db: db, trial: cfg.Trial, outbox: cfg.Produce.Outbox, gap: cfg.Produce.Gap}
	number, body := "INTEGER PRIMARY KEY AUTOINCREMENT", "blob"
	o.arg = func(int) string { return "?" }
	if postgres {
		number, body = "bigserial PRIMARY KEY", "bytea"
		o.arg = func(n int) string { return fmt.Sprintf("$%d", n) }
	}
	for _, create := range []string{
		`CREATE TABLE IF NOT EXISTS orders (message text PRIMARY KEY, trial bigint NOT NULL)`,
		`CREATE TABLE IF NOT EXISTS outbox (n ` + number + `, trial bigint NOT NULL, message text NOT NULL, ordering text NOT NULL, body ` + body + `)`,
	} {
		if _, err := db.ExecContext(ctx, create); err != nil && !there(ctx, db) {
			db.Close()
			return nil, fmt.Errorf("create the tables of orders: %w", err)
		}
	}
	return o, nil
}

// there reports whether both tables are: see Effects.raced.
func there(ctx context.Context, db *sql.DB) bool {
	_, err := db.ExecContext(ctx, `SELECT 1 FROM orders, outbox LIMIT 1`)
	return err == nil
}

// OrdersOf returns the messages of the orders that the producers of a trial have
// committed to a database. It is an error where none was opened there.
func OrdersOf(ctx context.Context, url string, trial uint32) ([]string, error) {
	db, _, err := openDatabase(url)
	if err != nil {
		return nil, fmt.Errorf("open the orders database: %w", err)
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, fmt.Sprintf(`SELECT message FROM orders WHERE trial = %d`, trial))
	if err != nil {
		return nil, fmt.Errorf("read the orders: %w", err)
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("read the orders: %w", err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the orders: %w", err)
	}
	return ids, nil
}

// Publish implements queue.Publisher. With an outbox nil means that the order is
// committed, and its message will be published.
func (o *orders) Publish(ctx context.Context, msgs ...queue.Message) error {
	if err := o.commit(ctx, msgs); err != nil {
		return fmt.Errorf("commit %d orders: %w", len(msgs), err)
	}
	if o.outbox {
		return nil
	}
	sleep(ctx, o.gap)
	return o.Publisher.Publish(ctx, msgs...)
}

func (o *orders) commit(ctx context.Context, msgs []queue.Message) error {
	tx, err := o.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, m := range msgs {
		if _, err := tx.ExecContext(ctx, `INSERT INTO orders (message, trial) VALUES (`+o.arg(1)+`, `+o.arg(2)+`)`, m.ID, int64(o.trial)); err != nil {
			return err
		}
		if !o.outbox {
			continue
		}
		insert := fmt.Sprintf(`INSERT INTO outbox (trial, message, ordering, body) VALUES (%s, %s, %s, %s)`, o.arg(1), o.arg(2), o.arg(3), o.arg(4))
		if _, err := tx.ExecContext(ctx, insert, int64(o.trial), m.ID, m.Key, m.Body); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// relay publishes what the outbox has, also what another producer left there.
func (o *orders) relay(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := o.relayOnce(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			fmt.Fprintln(os.Stderr, "node: relay:", err)
			sleep(ctx, relayAgain)
		case n == 0:
			sleep(ctx, relayPause)
		}
	}
}

func (o *orders) relayOnce(ctx context.Context) (int, error) {
	rows, err := o.db.QueryContext(ctx, fmt.Sprintf(`SELECT n, message, ordering, body FROM outbox WHERE trial = %d ORDER BY n LIMIT %d`, o.trial, relayBatch))
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var numbers []int64
	var msgs []queue.Message
	for rows.Next() {
		var n int64
		var m queue.Message
		if err := rows.Scan(&n, &m.ID, &m.Key, &m.Body); err != nil {
			return 0, err
		}
		numbers, msgs = append(numbers, n), append(msgs, m)
	}
	if err := rows.Err(); err != nil || len(msgs) == 0 {
		return 0, err
	}
	published := o.Publisher.Publish(ctx, msgs...)
	// A stop is no reason to forget what was accepted: it would come twice.
	done, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for i, n := range numbers {
		if queue.OutcomeOf(published, i) != queue.Accepted {
			continue
		}
		if _, err := o.db.ExecContext(done, fmt.Sprintf(`DELETE FROM outbox WHERE n = %d`, n)); err != nil {
			return 0, err
		}
	}
	return len(msgs), published
}

// awaitRelayed waits until the outbox is empty.
func (o *orders) awaitRelayed(ctx context.Context) {
	for left := 1; o.outbox && left > 0 && ctx.Err() == nil; {
		if err := o.db.QueryRowContext(ctx, fmt.Sprintf(`SELECT count(*) FROM outbox WHERE trial = %d`, o.trial)).Scan(&left); err != nil {
			left = 1
		}
		if left > 0 {
			sleep(ctx, relayPause)
		}
	}
}

func (o *orders) close() { o.db.Close() }
