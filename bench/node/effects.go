package node

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // driver "pgx"
	_ "modernc.org/sqlite"             // driver "sqlite"

	"queuelab/bench/ledger"
	"queuelab/queue"
)

// Effects is the business database of a trial: one row for each time that a
// message took effect, and no unique key, so that the second time shows. Without
// a database nothing is committed: latency and throughput are the queue's alone.
type Effects struct {
	db       *sql.DB
	postgres bool
	unique   bool
	timeout  time.Duration // how long a commit is waited for
}

const (
	createEffects       = `CREATE TABLE IF NOT EXISTS effects (message text NOT NULL, process int NOT NULL, attempt int NOT NULL)`
	createUniqueEffects = `CREATE TABLE IF NOT EXISTS unique_effects (message text PRIMARY KEY, process int NOT NULL, attempt int NOT NULL)`
)

// OpenEffects opens the database of a URL; the empty one is none.
func OpenEffects(ctx context.Context, url string) (*Effects, error) {
	return openEffects(ctx, url, false)
}

// OpenUniqueEffects is OpenEffects for handlers that are idempotent: an effect is
// unique by message id, and the second one of a message leaves no row.
func OpenUniqueEffects(ctx context.Context, url string) (*Effects, error) {
	return openEffects(ctx, url, true)
}

func openEffects(ctx context.Context, url string, unique bool) (*Effects, error) {
	if url == "" {
		return &Effects{}, nil
	}
	e := &Effects{unique: unique, timeout: 10 * time.Second}
	var err error
	if e.db, e.postgres, err = openDatabase(url); err != nil {
		return nil, fmt.Errorf("open the effects database: %w", err)
	}
	create := createEffects
	if unique {
		create = createUniqueEffects
	}
	if _, err := e.db.ExecContext(ctx, create); err != nil && !e.raced(ctx) {
		e.db.Close()
		return nil, fmt.Errorf("create the effects table: %w", err)
	}
	return e, nil
}

func openDatabase(url string) (db *sql.DB, postgres bool, err error) {
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		db, err = sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=synchronous(NORMAL)")
	} else {
		postgres = true
		db, err = sql.Open("pgx", url)
	}
	if err == nil {
		db.SetMaxOpenConns(4)
	}
	return db, postgres, err
}

func (e *Effects) table() string {
	if e.unique {
		return "unique_effects"
	}
	return "effects"
}

// raced reports whether the table is there although creating it failed, which
// is how PostgreSQL answers the slower of two that create it at once.
func (e *Effects) raced(ctx context.Context) bool {
	_, err := e.db.ExecContext(ctx, `SELECT 1 FROM `+e.table()+` LIMIT 1`)
	return err == nil
}

// Commit makes the effects of a batch in one transaction, and then records
// them: a record without a row would invent an effect, a row without a record
// is still found in the table. Where it fails and nobody knows whether the
// database did it all the same, that is recorded instead.
func (e *Effects) Commit(ctx context.Context, w *ledger.Writer, process uint16, ds []*queue.Delivery) error {
	if e.db == nil {
		return nil
	}
	// A stop is no reason to leave a transaction in doubt.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.timeout)
	defer cancel()
	rows := make([]string, len(ds))
	args := make([]any, 0, 3*len(ds))
	for i, d := range ds {
		rows[i] = "(?, ?, ?)"
		if e.postgres {
			rows[i] = fmt.Sprintf("($%d, $%d, $%d)", 3*i+1, 3*i+2, 3*i+3)
		}
		args = append(args, d.ID, int(process), d.Attempt)
	}
	made, err := e.insert(ctx, ds, `INSERT INTO `+e.table()+` (message, process, attempt) VALUES `+strings.Join(rows, ", "), args)
	if err != nil {
		if e.doubtful(err) {
			for _, d := range ds {
				ledger.RecordEffectUnknown(w, d)
			}
		}
		return fmt.Errorf("commit %d effects: %w", len(ds), err)
	}
	for _, d := range made {
		ledger.RecordEffect(w, d)
	}
	return nil
}

// insert returns the deliveries of which there is a row now that was not before.
func (e *Effects) insert(ctx context.Context, ds []*queue.Delivery, insert string, args []any) (made []*queue.Delivery, err error) {
	if !e.unique {
		_, err := e.db.ExecContext(ctx, insert, args...)
		return ds, err
	}
	rows, err := e.db.QueryContext(ctx, insert+` ON CONFLICT DO NOTHING RETURNING message`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	for _, d := range ds {
		if i := slices.Index(ids, d.ID); i >= 0 {
			ids = slices.Delete(ids, i, i+1)
			made = append(made, d)
		}
	}
	return made, rows.Err()
}

// doubtful reports whether a commit that failed so may have been done: the
// database did not say no, and it had been asked.
func (e *Effects) doubtful(err error) bool {
	var no *pgconn.PgError
	var unreached *pgconn.ConnectError
	return e.postgres && !errors.As(err, &no) && !errors.As(err, &unreached) && !pgconn.SafeToRetry(err)
}

// Count returns how often each message of a trial took effect.
func (e *Effects) Count(ctx context.Context, trial uint32) (map[string]int, error) {
	return e.counts(ctx, fmt.Sprintf(`SELECT message, count(*) FROM %s WHERE message LIKE '%d-%%' GROUP BY message`, e.table(), trial))
}

func (e *Effects) counts(ctx context.Context, query string) (map[string]int, error) {
	rows, err := e.db.QueryContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("read the effects: %w", err)
	}
	defer rows.Close()
	counts := map[string]int{}
	for rows.Next() {
		var id string
		var n int
		if err := rows.Scan(&id, &n); err != nil {
			return nil, fmt.Errorf("read the effects: %w", err)
		}
		counts[id] = n
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the effects: %w", err)
	}
	return counts, nil
}

// Of returns how often each of some messages took effect; those that did not are
// not in it.
func (e *Effects) Of(ctx context.Context, ids []ledger.ID) (map[string]int, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = "'" + id.String() + "'" // numbers and dashes
	}
	return e.counts(ctx, `SELECT message, count(*) FROM `+e.table()+` WHERE message IN (`+strings.Join(names, ", ")+`) GROUP BY message`)
}

// Close closes the connections.
func (e *Effects) Close() {
	if e.db != nil {
		e.db.Close()
	}
}
