package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"
)

// outdated reports that a statement was prepared before the schema changed. Its
// connection forgets it then, so that it works there the next time.
func outdated(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "0A000"
}

// current is a pool that repeats a statement which is outdated: nothing was done
// yet. Each try mends one connection, so there is one for each and one more. In a
// transaction, which is over then, that is up to whoever began it: see again.
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
		if rows, err = c.DB.QueryContext(ctx, query, args...); !outdated(err) {
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
