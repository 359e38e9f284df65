package store

import (
	"context"
	"time"

	"queuelab/app/sale"
)

// The steps of an order over two databases, for tests that stop between them.

// Ask is the first step.
func (s *Store) Ask(ctx context.Context, rs ...sale.Reservation) error { return s.ask(ctx, rs) }

// Answer is the second step, for all that is in the outbox.
func (s *Store) Answer(ctx context.Context) error {
	asked, err := s.outbox(ctx)
	if err == nil {
		_, err = s.answer(ctx, asked)
	}
	return err
}

// Outbox counts what is in it.
func (s *Store) Outbox(ctx context.Context) (int, error) {
	asked, err := s.outbox(ctx)
	return len(asked), err
}

func (s *Store) outbox(ctx context.Context) (asked []request, err error) {
	return asked, s.write.WithContext(ctx).Find(&asked).Error
}

// Overdue makes all that is in the outbox due.
func (s *Store) Overdue(ctx context.Context) error {
	return s.write.WithContext(ctx).Exec("UPDATE outbox SET due_ms = ?", time.Now().Add(-time.Hour).UnixMilli()).Error
}

// Stock is the other database.
func (s *Store) Stock() *Store { return s.stock }

// Add changes what is left of a voucher, as somebody does by hand.
func (s *Store) Add(ctx context.Context, voucher sale.ID, units int64) error {
	return s.write.WithContext(ctx).Exec("UPDATE vouchers SET stock_left = stock_left + ? WHERE id = ?", units, int64(voucher)).Error
}
