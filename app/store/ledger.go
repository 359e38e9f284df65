package store

import (
	"context"
	"fmt"

	"queuelab/app/sale"
)

// Ledger implements sale.Ledgers: one statement, so that all numbers are of one
// moment.
func (s *Store) Ledger(ctx context.Context, voucher sale.ID) (sale.Ledger, error) {
	var r struct {
		Row                                          voucherRow `gorm:"embedded"`
		Confirmed, Paid, Failed, Cancelled, Refunded int64
		Buyers, GiveBack                             int64
	}
	res := s.read.WithContext(ctx).Raw("SELECT v.*, o.* FROM vouchers v, (SELECT "+
		"COUNT(CASE WHEN status = 'confirmed' THEN 1 END) AS confirmed, COUNT(CASE WHEN status = 'paid' THEN 1 END) AS paid, "+
		"COUNT(CASE WHEN status = 'failed' THEN 1 END) AS failed, COUNT(CASE WHEN status = 'cancelled' THEN 1 END) AS cancelled, "+
		"COUNT(CASE WHEN status = 'refunded' THEN 1 END) AS refunded, COUNT(CASE WHEN give_back = 1 THEN 1 END) AS give_back, "+
		"COUNT(DISTINCT CASE WHEN status IN ('confirmed', 'paid') THEN user_id || '#' || nth END) AS buyers "+
		"FROM orders WHERE voucher_id = ?) o WHERE v.id = ?", int64(voucher), int64(voucher)).Scan(&r)
	if res.Error != nil {
		return sale.Ledger{}, fmt.Errorf("read the ledger of voucher %s: %w", voucher, res.Error)
	}
	if res.RowsAffected == 0 {
		return sale.Ledger{}, sale.NotFound("no such voucher")
	}
	return sale.Ledger{Voucher: r.Row.voucher(), Confirmed: r.Confirmed, Paid: r.Paid, Failed: r.Failed, Cancelled: r.Cancelled,
		Refunded: r.Refunded, Units: r.Buyers, GiveBack: r.GiveBack}, nil
}
