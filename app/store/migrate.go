package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// provider knows the migrations of this build, and those that the database has.
// On SQLite the caller of Up holds the lock beside the file: goose has none.
func (s *Store) provider() (*goose.Provider, error) {
	raw, err := s.write.DB()
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	dialect := goose.DialectSQLite3
	opts := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
	if s.name == "postgres" {
		dialect = goose.DialectPostgres
		// Instances that start together: one migrates, the others wait for it.
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 60))
		if err != nil {
			return nil, fmt.Errorf("migrations: %w", err)
		}
		opts = append(opts, goose.WithSessionLocker(locker))
	}
	p, err := goose.NewProvider(dialect, raw, files, opts...)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	return p, nil
}

func (s *Store) migrate(ctx context.Context) error {
	p, err := s.provider()
	if err != nil {
		return err
	}
	if err := s.checkNewest(ctx, p); err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// ErrNewer: the database has migrations that this build does not know.
var ErrNewer = errors.New("the schema is newer than this build")

// checkNewest is ErrNewer for a schema of which this build knows only a part: it
// may hold rows that this build would read wrongly.
func (s *Store) checkNewest(ctx context.Context, p *goose.Provider) error {
	var newest int64
	// An error is an empty database, or one that whoever asks next finds away.
	_ = s.write.WithContext(ctx).Raw("SELECT max(version_id) FROM goose_db_version WHERE is_applied").Row().Scan(&newest)
	all := p.ListSources()
	if known := all[len(all)-1].Version; newest > known {
		return fmt.Errorf("%w: it has migration %d, and the last one here is %d: run the newer build", ErrNewer, newest, known)
	}
	return nil
}

// Migration is one step of the schema.
type Migration struct {
	Name    string
	Applied time.Time // zero: not yet
}

// Migrations lists those of this build, the first one first.
func (s *Store) Migrations(ctx context.Context) ([]Migration, error) {
	p, err := s.provider()
	if err != nil {
		return nil, err
	}
	if err := s.checkNewest(ctx, p); err != nil {
		return nil, err
	}
	status, err := p.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	ms := make([]Migration, len(status))
	for i, m := range status {
		ms[i] = Migration{Name: path.Base(m.Source.Path), Applied: m.AppliedAt}
	}
	return ms, nil
}
