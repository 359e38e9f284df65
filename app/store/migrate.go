package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"gorm.io/gorm"
)

//go:embed migrations/*.sql
var migrations embed.FS

func migratePostgres(ctx context.Context, db *gorm.DB) error {
	// Instances that start together: one migrates, the others wait for it.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 60))
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return migrate(ctx, db, goose.DialectPostgres, goose.WithSessionLocker(locker))
}

// migrateSQLite expects the caller to hold the file's lock: goose has none for
// SQLite.
func migrateSQLite(ctx context.Context, db *gorm.DB) error {
	return migrate(ctx, db, goose.DialectSQLite3)
}

func migrate(ctx context.Context, db *gorm.DB, dialect goose.Dialect, opts ...goose.ProviderOption) error {
	raw, err := db.DB()
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	p, err := goose.NewProvider(dialect, raw, files, append(opts, goose.WithDisableGlobalRegistry(true))...)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}
