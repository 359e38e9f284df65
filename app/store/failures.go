package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"
)

// again repeats what lost against another transaction.
func again(do func() error) (err error) {
	for range 3 {
		if err = do(); err == nil || !conflict(err) {
			break
		}
	}
	return err
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
