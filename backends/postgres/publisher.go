package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"queuelab/backends/internal/driver"
	"queuelab/queue"
)

// closePatience bounds how long a Close waits for publishes in flight.
const closePatience = 5 * time.Second

type publisher struct {
	q       *table
	session *session
	shared  *driver.Coalescer[row, error]
	once    sync.Once
}

// row is a message as its columns.
type row struct {
	id, key, headers string
	body             []byte
}

// Publisher implements queue.Queue.
func (q *table) Publisher(ctx context.Context) (queue.Publisher, error) {
	p := &publisher{q: q, session: newSession(q.server, "")}
	if err := q.connected(ctx, p.session); err != nil {
		return nil, err
	}
	p.shared = driver.NewCoalescer(q.pipeline, row.size, p.send)
	if err := q.children.Keep(p); err != nil {
		return nil, err
	}
	return p, nil
}

// connected dials now, so that whoever opens learns of a server that is not there.
func (q *table) connected(ctx context.Context, s *session) error {
	within, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	err := s.do(within, func(*pgx.Conn) error { return nil })
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("postgres connect: %w", err)
}

// Publish implements queue.Publisher.
func (p *publisher) Publish(ctx context.Context, msgs ...queue.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	rows := make([]row, len(msgs))
	for i := range msgs {
		var err error
		if rows[i], err = rowOf(msgs[i]); err != nil {
			return queue.Reject(fmt.Errorf("postgres publish: message %d of %d: %w", i+1, len(msgs), err))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	_, err := driver.Publish(ctx, "postgres publish", p.shared, rows, outcomeOf)
	return err
}

func outcomeOf(err error) (queue.Outcome, error) {
	if errors.Is(err, queue.ErrRejected) {
		return queue.Rejected, err
	}
	return queue.Unknown, err
}

// rowOf makes a message's own copy of it: what Publish was given is the caller's
// again when it returns, however it returns.
func rowOf(m queue.Message) (row, error) {
	if m.ID == "" {
		return row{}, errors.New("it has no id")
	}
	r := row{id: strings.Clone(m.ID), key: strings.Clone(m.Key), body: append([]byte{}, m.Body...)}
	texts := []string{m.ID, m.Key}
	if len(m.Headers) > 0 {
		for name, value := range m.Headers {
			texts = append(texts, name, value)
		}
		var b bytes.Buffer
		if err := json.NewEncoder(&b).Encode(m.Headers); err != nil {
			return row{}, err
		}
		r.headers = b.String()
	}
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return row{}, fmt.Errorf("%q is no text for PostgreSQL, which wants UTF-8 without NUL", text)
		}
	}
	return r, nil
}

func (r row) size() int { return len(r.id) + len(r.key) + len(r.headers) + len(r.body) }

// send is one statement, and so one transaction, for all.
func (p *publisher) send(rows []row, results []error) {
	n := len(rows)
	ids, keys, headers, bodies := make([]string, n), make([]string, n), make([]string, n), make([][]byte, n)
	for i, r := range rows {
		ids[i], keys[i], headers[i], bodies[i] = r.id, r.key, r.headers, r.body
	}
	// No caller's context: the round trip is everybody's.
	ctx, cancel := context.WithTimeout(context.Background(), p.q.timeout)
	defer cancel()
	err := p.session.do(ctx, func(c *pgx.Conn) error {
		_, err := c.Exec(ctx, p.q.sql.insert, ids, keys, headers, bodies)
		return err
	})
	if err == nil {
		p.q.bell.ring()
		return
	}
	if rolledBack(err) {
		err = queue.Reject(err)
	}
	for i := range results {
		results[i] = err
	}
}

// Close implements queue.Publisher.
func (p *publisher) Close() error {
	p.once.Do(func() {
		p.shared.Close(closePatience)
		p.session.close()
		p.q.children.Remove(p)
	})
	return nil
}
