package store

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gorm.io/gorm"

	"queuelab/app/sale"
)

// soldOut remembers the vouchers that had too few units the last time. It is
// only a reason to look: who has none left is what the database says.
type soldOut struct {
	mu       sync.Mutex
	vouchers map[sale.ID]bool
}

func (s *soldOut) note(v sale.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.vouchers == nil {
		s.vouchers = map[sale.ID]bool{}
	}
	s.vouchers[v] = true
}

// among returns those of the vouchers that are remembered.
func (s *soldOut) among(rs []sale.Reservation) (ids []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.vouchers) == 0 {
		return nil
	}
	last := sale.ID(0)
	for _, r := range rs { // they are in order
		if r.VoucherID != last && s.vouchers[r.VoucherID] {
			ids = append(ids, int64(r.VoucherID))
		}
		last = r.VoucherID
	}
	return ids
}

func (s *soldOut) forget(v int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.vouchers, sale.ID(v))
}

// failSoldOut fails in bulk those of a batch, in the order of inOrder, whose
// voucher is sold out: at the end of a sale whose buyers queued up first, nearly
// all who are still in the queue. It returns those decisions; what was decided
// before is not among them.
func (s *Store) failSoldOut(ctx context.Context, todo []sale.Reservation) (map[int64]decision, error) {
	ask := s.soldOut.among(todo)
	if len(ask) == 0 {
		return nil, nil
	}
	decided := map[int64]decision{}
	err := s.write.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		var gone []int64
		if err := tx.Model(&voucherRow{}).Where("id IN ? AND stock_left = 0", ask).Pluck("id", &gone).Error; err != nil {
			return fmt.Errorf("look for vouchers that are sold out: %w", err)
		}
		out := make(map[int64]bool, len(gone))
		for _, v := range gone {
			out[v] = true
		}
		for _, v := range ask {
			if !out[v] {
				s.soldOut.forget(v)
			}
		}
		now := time.Now()
		var rows []orderRow
		for _, r := range todo {
			if out[int64(r.VoucherID)] {
				rows = append(rows, row(r, sale.Failed, sale.ReasonSoldOut, now))
			}
		}
		if len(rows) == 0 {
			return nil
		}
		fresh, err := insert(tx, rows)
		for _, w := range rows {
			if fresh[w.ID] {
				decided[w.ID] = decision{orderRow: w}
			}
		}
		return err
	})
	return decided, err
}
