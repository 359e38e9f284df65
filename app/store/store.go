// Package store keeps vouchers and orders in PostgreSQL, or in SQLite for
// running without anything installed. It is the truth of the sale: its stock
// never goes below zero, and an order takes effect once, however often its
// message comes.
package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/libtnb/sqlite"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// Store is open until Close. All methods are safe for concurrent use.
type Store struct {
	write *gorm.DB
	read  *gorm.DB // the same as write on PostgreSQL
	name  string
	path  string // of a SQLite file

	stock   *Store // where the stock is; nil: beside the orders
	soldOut soldOut
	begun   underWay
}

// pool is far below PostgreSQL's 100 connections, so that several instances
// fit.
const pool = 16

// Open connects to postgres://… or sqlite:PATH (also file:PATH), and brings
// the schema up to date. Several instances may do so at once.
func Open(ctx context.Context, rawURL string) (*Store, error) { return open(ctx, rawURL, true) }

// ErrNoFile: there is no SQLite database of that name.
var ErrNoFile = errors.New("there is no such file")

// OpenAsIs is Open that leaves the schema as it is; see Migrations. It makes no
// SQLite database: ErrNoFile where there is none.
func OpenAsIs(ctx context.Context, rawURL string) (*Store, error) { return open(ctx, rawURL, false) }

func open(ctx context.Context, rawURL string, migrate bool) (*Store, error) {
	scheme, rest, _ := strings.Cut(rawURL, ":")
	switch scheme {
	case "postgres", "postgresql":
		return openPostgres(ctx, rawURL, migrate)
	case "sqlite", "file":
		return openSQLite(ctx, strings.TrimPrefix(rest, "//"), migrate)
	}
	return nil, fmt.Errorf("database %s: want a URL such as postgres://USER@HOST/NAME or sqlite:PATH", Redact(rawURL))
}

// config leaves PrepareStmt off: pgx prepares by itself, and gorm's way ends in a
// deadlock where a transaction that has the last connection meets a statement for
// the first time while others wait with one of theirs.
func config() *gorm.Config {
	return &gorm.Config{TranslateError: true, SkipDefaultTransaction: true, Logger: logger.Discard}
}

func openPostgres(ctx context.Context, rawURL string, migrate bool) (*Store, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		// The error of url.Parse quotes the whole URL, password and all.
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, fmt.Errorf("the database URL: %w", err)
	}
	if migrate {
		// A migration may work on a large table for longer than any statement of ours.
		m, err := connect(ctx, u, rawURL, map[string]string{"statement_timeout": "0", "lock_timeout": "0"})
		if err != nil {
			return nil, err
		}
		if err := errors.Join(m.migrate(ctx), m.Close()); err != nil {
			return nil, err
		}
	}
	return connect(ctx, u, rawURL, nil)
}

// limits are what PostgreSQL bounds our sessions with, since whoever froze, or
// lost its network, cannot be asked to let go of what it has locked. A wait for a
// lock is longer than a forgotten transaction lasts, so that who waits for one
// gets on. A parameter of the URL comes before these.
func limits() map[string]string {
	return map[string]string{
		"connect_timeout":                     "5", // seconds; the client's own
		"idle_in_transaction_session_timeout": "5s",
		"lock_timeout":                        "10s",
		"statement_timeout":                   "30s",
	}
}

// connect opens a PostgreSQL with limits, other than those that are given instead.
func connect(ctx context.Context, u *url.URL, rawURL string, instead map[string]string) (*Store, error) {
	set := limits()
	maps.Copy(set, instead)
	q := u.Query()
	for name, value := range set {
		if !q.Has(name) {
			q.Set(name, value)
		}
	}
	dsn := *u
	dsn.RawQuery = q.Encode()
	db, err := gorm.Open(postgres.Open(dsn.String()), config())
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", Redact(rawURL), plain(err))
	}
	s := &Store{write: db, read: db, name: "postgres"}
	if err := errors.Join(keepCurrent(db), s.prepare(ctx, db, pool)); err != nil {
		return nil, errors.Join(fmt.Errorf("database %s: %w", Redact(rawURL), err), s.Close())
	}
	return s, nil
}

func openSQLite(ctx context.Context, path string, migrate bool) (*Store, error) {
	if path == "" || strings.ContainsAny(path, "?#") {
		return nil, errors.New("the database URL must look like sqlite:seckill.db, without parameters")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("database file: %w", err)
	}
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("database file %s: there is no folder %s: make it, or correct the path", path, filepath.Dir(path))
	}
	if _, err := os.Stat(path); !migrate && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("database file %s: %w: correct the path, or have seckill migrate make it", path, ErrNoFile)
	}
	unlock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("database file: %w", err)
	}
	defer unlock()
	// immediate: a transaction that reads before it writes would otherwise fail
	// whenever another one wrote in between, whatever the busy time-out.
	dsn := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}).String() + "?_txlock=immediate&_pragma=journal_mode(WAL)" +
		"&_pragma=busy_timeout(5000)&_pragma=synchronous(NORMAL)&_pragma=foreign_keys(1)"
	// One writer, because SQLite's lock is unfair; readers do not wait for it.
	s := &Store{name: "sqlite", path: path}
	if s.write, err = gorm.Open(sqlite.Open(dsn), config()); err != nil {
		return nil, fmt.Errorf("database file %s: %w", path, err)
	}
	if err := s.prepare(ctx, s.write, 1); err != nil {
		return nil, errors.Join(fmt.Errorf("database file %s: %w", path, err), s.Close())
	}
	if migrate {
		if err := s.migrate(ctx); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if s.read, err = gorm.Open(sqlite.Open(dsn), config()); err != nil {
		return nil, errors.Join(fmt.Errorf("database file %s: %w", path, err), s.Close())
	}
	if err := s.prepare(ctx, s.read, 4); err != nil {
		return nil, errors.Join(fmt.Errorf("database file %s: %w", path, err), s.Close())
	}
	return s, nil
}

// Redact hides the secrets of a URL that a user gave: its password, also as a
// parameter, and all of what is no URL, such as PostgreSQL's "password=…".
func Redact(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme == "" && strings.ContainsAny(rawURL, "@=") {
		return "(not a URL)"
	}
	if q := u.Query(); q.Has("password") || q.Has("sslpassword") {
		for _, name := range []string{"password", "sslpassword"} {
			if q.Has(name) {
				q.Set(name, "xxxxx")
			}
		}
		u.RawQuery = q.Encode()
	}
	return u.Redacted()
}

// plain takes the reason out of pgx's account of every address that it tried.
func plain(err error) error {
	var refused *pgconn.PgError
	var unreachable *net.OpError
	var unread *pgconn.ParseConfigError
	switch {
	case errors.As(err, &unread) && unread.Unwrap() != nil:
		return unread.Unwrap() // the rest quotes the URL
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &unreachable):
		return unreachable
	}
	return err
}

func (s *Store) prepare(ctx context.Context, db *gorm.DB, conns int) error {
	raw, err := db.DB()
	if err != nil {
		return err
	}
	raw.SetMaxOpenConns(conns)
	raw.SetMaxIdleConns(conns)
	raw.SetConnMaxLifetime(30 * time.Minute)
	return raw.PingContext(ctx)
}

// Name is "postgres" or "sqlite".
func (s *Store) Name() string { return s.name }

// Ping fails when the database does not answer.
func (s *Store) Ping(ctx context.Context) error {
	raw, err := s.read.DB()
	if err == nil {
		err = raw.PingContext(ctx)
	}
	if err == nil && s.stock != nil {
		err = s.stock.Ping(ctx)
	}
	return err
}

// Close closes every connection.
func (s *Store) Close() error {
	var errs error
	if s.stock != nil {
		errs = s.stock.Close()
	}
	for i, db := range []*gorm.DB{s.write, s.read} {
		if db == nil || i == 1 && db == s.write {
			continue
		}
		if raw, err := db.DB(); err == nil {
			errs = errors.Join(errs, raw.Close())
		}
	}
	return errs
}
