package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"
)

// CountAttempt notes that a message is about to be handled, and returns how
// often that was noted, this time included.
func (s *Store) CountAttempt(ctx context.Context, message string) (int, error) {
	var n int
	err := s.write.WithContext(ctx).Raw("INSERT INTO attempts (message_id, attempts, last_ms) VALUES (?, 1, ?) "+
		"ON CONFLICT (message_id) DO UPDATE SET attempts = attempts.attempts + 1, last_ms = excluded.last_ms RETURNING attempts",
		message, time.Now().UnixMilli()).Scan(&n).Error
	if err != nil {
		return 0, fmt.Errorf("count attempt of %s: %w", message, err)
	}
	return n, nil
}

// ForgetAttempts removes what CountAttempt noted of messages that are done.
func (s *Store) ForgetAttempts(ctx context.Context, messages ...string) error {
	if len(messages) == 0 {
		return nil
	}
	if err := s.write.WithContext(ctx).Exec("DELETE FROM attempts WHERE message_id IN ?", messages).Error; err != nil {
		return fmt.Errorf("forget attempts: %w", err)
	}
	return nil
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
		return pg.Code == "25006" // read only: a standby, or a disk that is full
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
