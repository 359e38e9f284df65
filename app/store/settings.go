package store

import (
	"context"
	"database/sql"
	"fmt"
)

// Settings are what a commit means on one PostgreSQL, for our connections.
type Settings struct {
	Of                string // "the database", or "the database of the stock"
	Fsync             string
	SynchronousCommit string
}

// Settings tells them of each database of ours, but for SQLite, whose settings
// are ours.
func (s *Store) Settings(ctx context.Context) (all []Settings, err error) {
	for of, db := range map[string]*Store{"the database": s, "the database of the stock": s.stock} {
		if db == nil || db.name != "postgres" {
			continue
		}
		set := Settings{Of: of}
		err := db.read.WithContext(ctx).Raw("SELECT current_setting('fsync'), current_setting('synchronous_commit')").Row().Scan(&set.Fsync, &set.SynchronousCommit)
		if err != nil {
			return nil, fmt.Errorf("read the settings of %s: %w", of, err)
		}
		all = append(all, set)
	}
	return all, nil
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
