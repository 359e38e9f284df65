package store

import (
	"context"
	"testing/fstest"

	"github.com/pressly/goose/v3"
)

// Down undoes every migration, each of them twice: what it leaves behind is in the
// way of doing it again.
func (s *Store) Down(ctx context.Context) error {
	p, err := s.provider()
	if err != nil {
		return err
	}
	for {
		switch version, err := p.GetDBVersion(ctx); {
		case err != nil:
			return err
		case version == 0:
			return nil
		}
		if _, err := p.Down(ctx); err != nil {
			return err
		}
		if _, err := p.UpByOne(ctx); err != nil {
			return err
		}
		if _, err := p.Down(ctx); err != nil {
			return err
		}
	}
}

// Up does every migration.
func (s *Store) Up(ctx context.Context) error { return s.migrate(ctx) }

// UpWith is Up with one more migration, by its file name.
func (s *Store) UpWith(ctx context.Context, name string) error {
	raw, err := s.write.DB()
	if err != nil {
		return err
	}
	files := fstest.MapFS{name: {Data: []byte("-- +goose Up\nCREATE TABLE late (id BIGINT);\n")}}
	entries, err := migrations.ReadDir("migrations")
	if err != nil {
		return err
	}
	for _, e := range entries {
		body, err := migrations.ReadFile("migrations/" + e.Name())
		if err != nil {
			return err
		}
		files[e.Name()] = &fstest.MapFile{Data: body}
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, raw, files, goose.WithDisableGlobalRegistry(true))
	if err == nil {
		_, err = p.Up(ctx)
	}
	return err
}
