package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"queuelab/app/sale"
)

const claimWorker = "INSERT INTO workers (worker_id, holder, expires_ms) VALUES (?, ?, ?) " +
	"ON CONFLICT (worker_id) DO UPDATE SET holder = excluded.holder, expires_ms = excluded.expires_ms WHERE workers.expires_ms < ?"

// AcquireWorker implements sale.LeaseStore.
func (s *Store) AcquireWorker(ctx context.Context, number int, holder string, now, until time.Time) (int, error) {
	claim := func(n int) (bool, error) {
		res := s.write.WithContext(ctx).Exec(claimWorker, n, holder, until.UnixMilli(), now.UnixMilli())
		return res.RowsAffected == 1, res.Error
	}
	if number >= 0 {
		ok, err := claim(number)
		if err == nil && !ok {
			err = fmt.Errorf("%w: number %d, until its lease of %v ends", sale.ErrTaken, number, sale.LeaseTTL)
		}
		return number, err
	}
	var held []int
	if err := s.read.WithContext(ctx).Table("workers").Where("expires_ms >= ?", now.UnixMilli()).Pluck("worker_id", &held).Error; err != nil {
		return 0, fmt.Errorf("list worker numbers: %w", err)
	}
	taken := make(map[int]bool, len(held))
	for _, n := range held {
		taken[n] = true
	}
	// At random, so that processes that start together seldom want the same one.
	for _, n := range rand.Perm(sale.MaxWorker + 1) {
		if taken[n] {
			continue
		}
		if ok, err := claim(n); err != nil || ok {
			return n, err
		}
	}
	return 0, fmt.Errorf("%w: all %d are", sale.ErrTaken, sale.MaxWorker+1)
}

// RenewWorker implements sale.LeaseStore.
func (s *Store) RenewWorker(ctx context.Context, number int, holder string, until time.Time) error {
	res := s.write.WithContext(ctx).Exec("UPDATE workers SET expires_ms = ? WHERE worker_id = ? AND holder = ?", until.UnixMilli(), number, holder)
	if res.Error == nil && res.RowsAffected != 1 {
		return fmt.Errorf("%w by another process", sale.ErrTaken)
	}
	return res.Error
}

var _ interface {
	sale.Store
	sale.LeaseStore
} = (*Store)(nil)
