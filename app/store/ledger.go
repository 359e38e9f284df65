package store

import (
	"context"
	"fmt"

	"queuelab/app/sale"
)

// Ledger implements sale.Ledgers: one statement, so that all numbers are of one
// moment, but for the other database's.
func (s *Store) Ledger(ctx context.Context, voucher sale.ID) (sale.Ledger, error) {
	l, err := s.ledger(ctx, voucher)
	if err != nil || s.stock == nil || l.Between > 0 {
		return l, err
	}
	// No moment is one of two databases. But where the orders' one is the same before
	// and after, with nothing in the outbox, nothing was on its way in between: every
	// way begins there with an entry, and ends with an order or another one.
	var left []int64
	if err := s.stock.read.WithContext(ctx).Model(&voucherRow{}).Where("id = ?", int64(voucher)).Pluck("stock_left", &left).Error; err != nil {
		return sale.Ledger{}, fmt.Errorf("read the stock of voucher %s: %w", voucher, err)
	}
	after, err := s.ledger(ctx, voucher)
	if err == nil && after == l && len(left) > 0 {
		after.StockLeft = &left[0]
	}
	return after, err
}

func (s *Store) ledger(ctx context.Context, voucher sale.ID) (sale.Ledger, error) {
	var r struct {
		Row                                          voucherRow `gorm:"embedded"`
		Confirmed, Paid, Failed, Cancelled, Refunded int64
		Buyers, GiveBack, Asked                      int64
	}
	res := s.read.WithContext(ctx).Raw("SELECT v.*, o.*, (SELECT COUNT(*) FROM outbox WHERE voucher_id = v.id) AS asked FROM vouchers v, (SELECT "+
		"COUNT(CASE WHEN status = 'confirmed' THEN 1 END) AS confirmed, COUNT(CASE WHEN status = 'paid' THEN 1 END) AS paid, "+
		"COUNT(CASE WHEN status = 'failed' THEN 1 END) AS failed, COUNT(CASE WHEN status = 'cancelled' THEN 1 END) AS cancelled, "+
		"COUNT(CASE WHEN status = 'refunded' THEN 1 END) AS refunded, COUNT(CASE WHEN give_back = 1 THEN 1 END) AS give_back, "+
		"COUNT(DISTINCT CASE WHEN status IN ('confirmed', 'paid') THEN user_id || '#' || nth END) AS buyers "+
		"FROM orders WHERE voucher_id = ?) o WHERE v.id = ?", int64(voucher), int64(voucher)).Scan(&r)
	if res.Error != nil {
		return sale.Ledger{}, fmt.Errorf("read the ledger of voucher %s: %w", voucher, res.Error)
	}
	if res.RowsAffected == 0 {
		return sale.Ledger{}, sale.NoVoucher()
	}
	return sale.Ledger{Voucher: r.Row.voucher(), Confirmed: r.Confirmed, Paid: r.Paid, Failed: r.Failed, Cancelled: r.Cancelled,
		Refunded: r.Refunded, Units: r.Buyers, GiveBack: r.GiveBack, Between: int(r.Asked)}, nil
}
