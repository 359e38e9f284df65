package store

import (
	"context"
	"database/sql"
	"fmt"
)

// Settings tells what a commit means on this PostgreSQL, for our connections:
// fsync and synchronous_commit. On SQLite, whose settings are ours, it is empty.
func (s *Store) Settings(ctx context.Context) (map[string]string, error) {
	if s.name != "postgres" {
		return nil, nil
	}
	var fsync, commit string
	err := s.read.WithContext(ctx).Raw("SELECT current_setting('fsync'), current_setting('synchronous_commit')").Row().Scan(&fsync, &commit)
	if err != nil {
		return nil, fmt.Errorf("read the database's settings: %w", err)
	}
	return map[string]string{"fsync": fsync, "synchronous_commit": commit}, nil
}

// Pools are the connections to the database by what they are for, as of now.
func (s *Store) Pools() map[string]sql.DBStats {
	pools := map[string]sql.DBStats{}
	if raw, err := s.write.DB(); err == nil {
		pools["database"] = raw.Stats()
	}
	if s.stock != nil {
		if raw, err := s.stock.write.DB(); err == nil {
			pools["database_stock"] = raw.Stats()
		}
	}
	if s.read == s.write {
		return pools
	}
	if raw, err := s.read.DB(); err == nil {
		pools["database_read"] = raw.Stats()
	}
	return pools
}

// OpenLetters counts the dead letters that nobody has cared for yet.
func (s *Store) OpenLetters(ctx context.Context) (int64, error) {
	var n int64
	err := s.read.WithContext(ctx).Raw("SELECT count(*) FROM dead_letters WHERE state = ?", "open").Row().Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count the dead letters: %w", err)
	}
	return n, nil
}
