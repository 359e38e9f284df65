package store

import (
	"context"
	"fmt"

	"queuelab/app/sale"
)

// OrdersOf implements sale.Mine. The index that keeps a buyer from having a unit
// twice finds them.
func (s *Store) OrdersOf(ctx context.Context, user string, vouchers []sale.ID, limit int) ([]sale.Order, error) {
	var rows []orderRow
	err := s.read.WithContext(ctx).Where("voucher_id IN ? AND user_id = ? AND status IN ('confirmed', 'paid')", numbers(vouchers), user).
		Order("id DESC").Limit(limit).Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("list orders of %s: %w", user, err)
	}
	return orders(rows), nil
}
