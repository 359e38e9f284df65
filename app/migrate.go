package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"queuelab/app/store"
)

// errPending is exit 3: the schema is not that of this build.
var errPending = errors.New("migrations are to come")

// migrateCmd is seckill migrate.
type migrateCmd struct {
	Up     struct{} `cmd:"" default:"1" help:"Bring the schema up to date. Several may do so at once, and services may run meanwhile."`
	Status struct{} `cmd:"" help:"List the migrations and when each was applied, change none, and exit 3 if some are to come."`
}

// Help is what kong shows beneath the flags.
func (migrateCmd) Help() string {
	return `A service does the same at its start, unless it has --migrate=off: then an operator, or a job before a rollout, decides when.

Examples:

  seckill migrate --db postgres://shop@127.0.0.1/shop

  seckill migrate status --db sqlite:seckill.db`
}

// databases are those whose schema is ours.
func (f *flags) databases() []string {
	if f.StockDB != "" {
		return []string{f.DB, f.StockDB}
	}
	return []string{f.DB}
}

// migrations looks at a database without changing it.
func migrations(ctx context.Context, url string) (_ []store.Migration, err error) {
	st, err := store.OpenAsIs(ctx, url)
	if err != nil {
		return nil, away(err, "the database", "--db")
	}
	defer func() {
		if cerr := st.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("close the database: %w", cerr)
		}
	}()
	return st.Migrations(ctx)
}

func pending(ms []store.Migration) (names []string) {
	for _, m := range ms {
		if m.Applied.IsZero() {
			names = append(names, m.Name)
		}
	}
	return names
}

func migrateUp(ctx context.Context, f *flags, stdout io.Writer) error {
	for _, url := range f.databases() {
		ms, err := migrations(ctx, url)
		fresh := errors.Is(err, store.ErrNoFile)
		if err != nil && !fresh {
			return err
		}
		st, err := store.Open(ctx, url)
		if err != nil {
			return err
		}
		if err := st.Close(); err != nil {
			return fmt.Errorf("close the database: %w", err)
		}
		if fresh {
			if ms, err = migrations(ctx, url); err != nil {
				return err
			}
		}
		for _, m := range ms {
			if fresh || m.Applied.IsZero() {
				fmt.Fprintln(stdout, "applied "+m.Name)
			}
		}
		if _, err = fmt.Fprintf(stdout, "%s: the schema is up to date\n", store.Redact(url)); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

func migrateStatus(ctx context.Context, f *flags, stdout io.Writer) error {
	lacks := 0
	for _, url := range f.databases() {
		ms, err := migrations(ctx, url)
		if err != nil {
			return err
		}
		lacks += len(pending(ms))
		fmt.Fprintln(stdout, store.Redact(url))
		for _, m := range ms {
			when := "pending"
			if !m.Applied.IsZero() {
				when = m.Applied.UTC().Format(time.RFC3339)
			}
			if _, err := fmt.Fprintf(stdout, "  %-20s  %s\n", when, m.Name); err != nil {
				return fmt.Errorf("print: %w", err)
			}
		}
	}
	if lacks > 0 {
		return fmt.Errorf("%w: %d", errPending, lacks)
	}
	return nil
}

// checkSchema is for who does not migrate: it refuses a database whose schema is
// older than this build.
func checkSchema(ctx context.Context, f *flags) error {
	for _, url := range f.databases() {
		ms, err := migrations(ctx, url)
		if err != nil {
			return err
		}
		if names := pending(ms); len(names) > 0 {
			return fmt.Errorf("database %s lacks %s: run seckill migrate, or start the service with --migrate=auto", store.Redact(url), strings.Join(names, ", "))
		}
	}
	return nil
}
