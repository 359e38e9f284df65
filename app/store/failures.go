package store

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"
)

// CountAttempts notes that messages are about to be handled, and returns how
// often that was noted of each, this time included. It outlives this process,
// which is what a message may kill. A PostgreSQL that is killed may forget the
// last moment, so that nobody waits for its disk before he begins.
func (s *Store) CountAttempts(ctx context.Context, messages ...string) (map[string]int, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	ids := texts(messages)
	slices.Sort(ids) // two batches with the same messages then do not wait for each other
	ids = slices.Compact(ids)
	rows := "SELECT value, 1, ? FROM json_each(?) WHERE true"
	if s.name == "postgres" {
		rows = "SELECT value, 1, CAST(? AS BIGINT) FROM json_array_elements_text(CAST(? AS json)), " + unhurried
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, fmt.Errorf("count attempts: %w", err)
	}
	var counted []struct {
		MessageID string
		Attempts  int
	}
	err = again(func() error {
		return s.write.WithContext(ctx).Raw("INSERT INTO attempts (message_id, attempts, last_ms) "+rows+
			" ON CONFLICT (message_id) DO UPDATE SET attempts = attempts.attempts + 1, last_ms = excluded.last_ms RETURNING message_id, attempts",
			time.Now().UnixMilli(), string(list)).Scan(&counted).Error
	})
	if err != nil {
		return nil, fmt.Errorf("count attempts at %d messages: %w", len(ids), err)
	}
	kept := make(map[string]int, len(ids))
	for _, c := range counted {
		kept[c.MessageID] = c.Attempts
	}
	n := make(map[string]int, len(ids))
	for _, m := range messages {
		n[m] = kept[text(m, maxLetterID)]
	}
	return n, nil
}

// unhurried, in the list of a statement's tables, has its transaction not wait for
// the disk.
const unhurried = "(SELECT set_config('synchronous_commit', 'off', true)) AS unhurried"

// texts are the names under which messages are kept.
func texts(messages []string) []string {
	ids := make([]string, len(messages))
	for i, m := range messages {
		ids[i] = text(m, maxLetterID)
	}
	return ids
}

// again repeats what lost against another transaction.
func again(do func() error) (err error) {
	for range 3 {
		if err = do(); err == nil || !conflict(err) {
			break
		}
	}
	return err
}

// ForgetAttempts removes what CountAttempts noted of messages that are done.
func (s *Store) ForgetAttempts(ctx context.Context, messages ...string) error {
	if len(messages) == 0 {
		return nil
	}
	list, err := json.Marshal(texts(messages))
	if err != nil {
		return wrap("forget attempts", err)
	}
	query := "DELETE FROM attempts WHERE message_id IN (SELECT value FROM json_each(?))"
	if s.name == "postgres" {
		query = "DELETE FROM attempts USING json_array_elements_text(CAST(? AS json)) AS done (id), " + unhurried + " WHERE message_id = done.id"
	}
	err = again(func() error { return s.write.WithContext(ctx).Exec(query, string(list)).Error })
	return wrap("forget attempts", err)
}

// conflict reports that a transaction lost against another one and may simply
// be tried again.
func conflict(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40P01" || pg.Code == "40001")
}

// Transient reports that err says something about the database being away or
// overloaded, and nothing about what it was asked to do.
func Transient(err error) bool {
	if err == nil {
		return false
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code[:2] {
		case "08", "40", "53", "55", "57", "58", "XX":
			return true
		}
		// Read only: a standby, or a disk that is full; and a transaction that stood
		// still for too long.
		return pg.Code == "25006" || pg.Code == "25P03"
	}
	var ne net.Error
	var ce *pgconn.ConnectError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, driver.ErrBadConn), errors.Is(err, gorm.ErrInvalidTransaction),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.As(err, &ne), errors.As(err, &ce), pgconn.SafeToRetry(err):
		return true
	}
	text := err.Error()
	for _, part := range []string{"database is locked", "disk I/O error", "database or disk is full", "database is closed", "conn closed"} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}
