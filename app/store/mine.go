package store

import (
	"context"
	"database/sql"
	"fmt"

	"queuelab/app/sale"
)

// OrdersOf implements sale.Mine. The index that keeps a buyer from having a unit
// twice finds those that have one, and an index of their own the others.
func (s *Store) OrdersOf(ctx context.Context, user string, vouchers []sale.ID, limit int) ([]sale.Order, error) {
	var rows []orderRow
	// The statuses are written out, as they are in the indexes.
	err := s.read.WithContext(ctx).Raw("SELECT * FROM ("+
		"SELECT * FROM orders WHERE voucher_id IN @vouchers AND user_id = @user AND status IN ('confirmed', 'paid') UNION ALL "+
		"SELECT * FROM orders WHERE voucher_id IN @vouchers AND user_id = @user AND status IN ('failed', 'cancelled', 'refunded')"+
		") AS own ORDER BY id DESC LIMIT @limit", sql.Named("vouchers", numbers(vouchers)), sql.Named("user", user), sql.Named("limit", limit)).Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("list orders of %s: %w", user, err)
	}
	return orders(rows), nil
}
