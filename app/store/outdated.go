package store

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"
)

// outdated reports that a statement was prepared before the schema changed. Its
// connection forgets it then, so that it works there the next time.
func outdated(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "0A000"
}

// gone reports that a connection turned out to have ended, as all of a pool do
// when the server was restarted; not that the server cannot be reached.
func gone(err error) bool {
	var pg *pgconn.PgError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.As(err, &pg) && pg.Code == "57P01"
}

// current is a pool that repeats a statement which is outdated, because nothing was
// done yet, and one that only reads where its connection is gone. Each try mends one
// connection, so there is one for each and one more. In a transaction, which is over
// then, that is up to whoever began it: see again.
type current struct{ *sql.DB }

func keepCurrent(db *gorm.DB) error {
	raw, err := db.DB()
	if err == nil {
		db.ConnPool = current{raw}
		db.Statement.ConnPool = db.ConnPool
	}
	return err
}

// GetDBConn implements gorm.GetDBConnector.
func (c current) GetDBConn() (*sql.DB, error) { return c.DB, nil }

// QueryContext implements gorm.ConnPool.
func (c current) QueryContext(ctx context.Context, query string, args ...any) (rows *sql.Rows, err error) {
	for range pool + 1 {
		rows, err = c.DB.QueryContext(ctx, query, args...)
		if !outdated(err) && !(gone(err) && strings.HasPrefix(query, "SELECT ")) {
			break
		}
	}
	return rows, err
}

// ExecContext implements gorm.ConnPool.
func (c current) ExecContext(ctx context.Context, query string, args ...any) (res sql.Result, err error) {
	for range pool + 1 {
		if res, err = c.DB.ExecContext(ctx, query, args...); !outdated(err) {
			break
		}
	}
	return res, err
}
