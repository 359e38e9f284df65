package store

import (
	"context"
	"time"

	"queuelab/app/sale"
)

// Forget begins a transaction that has locked a voucher, and leaves it open until
// wake, which goes on with it.
func (s *Store) Forget(ctx context.Context, voucher sale.ID) (wake func() error, err error) {
	tx := s.write.WithContext(ctx).Begin()
	if tx.Error != nil {
		return nil, tx.Error
	}
	take := func() error {
		return tx.Exec("UPDATE vouchers SET stock_left = stock_left - 1 WHERE id = ?", int64(voucher)).Error
	}
	if err := take(); err != nil {
		tx.Rollback()
		return nil, err
	}
	return func() error {
		if err := take(); err != nil {
			tx.Rollback()
			return err
		}
		return tx.Commit().Error
	}, nil
}

// Session is a bound of a connection to PostgreSQL.
func (s *Store) Session(ctx context.Context, name string) (time.Duration, error) {
	var ms int64
	err := s.write.WithContext(ctx).Raw("SELECT setting FROM pg_settings WHERE name = ?", name).Row().Scan(&ms)
	return time.Duration(ms) * time.Millisecond, err
}
