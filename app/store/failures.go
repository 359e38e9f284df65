package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
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

// conflict reports that a transaction lost against another one, or began before a
// change of the schema, and may simply be tried again.
func conflict(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40P01" || pg.Code == "40001") || outdated(err)
}

// Misfit reports that the database answers, and that its schema, or what we may do
// there, is not what this version of the service counts on: everybody's order meets
// that alike, until somebody puts the database right.
func Misfit(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code[:2] == "42" || pg.Code[:2] == "28" || outdated(err)
	}
	if errors.Is(err, gorm.ErrInvalidField) { // 42703, as gorm says it
		return true
	}
	return err != nil && contains(err.Error(), "no such table", "no such column", "has no column named")
}

// Transient reports that err says something about the database being away,
// overloaded or a Misfit, and nothing about what it was asked to do.
func Transient(err error) bool {
	if err == nil {
		return false
	}
	if Misfit(err) {
		return true
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
	return contains(err.Error(), "database is locked", "disk I/O error", "database or disk is full", "database is closed", "conn closed")
}

func contains(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}
