package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"queuelab/app/sale"
)

// Why a transaction of SellNow is undone.
var (
	errNoneLeft = errors.New("no unit is left")
	errRaced    = errors.New("another click of the same buyer was faster")
)

// sellTries bounds how often a click is decided anew, each time because another
// click of its buyer was faster.
const sellTries = 2 * sale.MaxPerUser

// SellNow implements sale.SyncStore.
func (s *Store) SellNow(ctx context.Context, c sale.Click) (a sale.Answer, err error) {
	for range sellTries {
		err = s.transaction(ctx, func(tx *gorm.DB) (err error) {
			a, err = s.sellNow(tx, c)
			return err
		})
		if !errors.Is(err, errRaced) {
			break
		}
	}
	switch {
	case errors.Is(err, errNoneLeft):
		return sale.Answer{Verdict: sale.SoldOut}, nil
	case err != nil && sale.CodeOf(err) == "":
		return sale.Answer{}, fmt.Errorf("sell order %s: %w", c.OrderID, err)
	}
	return a, err
}

func (s *Store) sellNow(tx *gorm.DB, c sale.Click) (sale.Answer, error) {
	var v struct {
		Voucher voucherRow `gorm:"embedded"`
		NowMS   int64      `gorm:"column:now_ms"`
	}
	res := tx.Raw("SELECT *, "+s.now()+" AS now_ms FROM vouchers WHERE id = ?", int64(c.VoucherID)).Scan(&v)
	if res.Error != nil {
		return sale.Answer{}, res.Error
	}
	if res.RowsAffected == 0 {
		return sale.Answer{}, sale.NoVoucher()
	}
	offer, now := v.Voucher.voucher(), time.UnixMilli(v.NowMS)
	var held []heldUnit
	// The statuses are written out, as they are in the index.
	err := tx.Raw("SELECT id, nth, click_key FROM orders WHERE voucher_id = ? AND user_id = ? AND status IN ('confirmed', 'paid') ORDER BY nth",
		int64(c.VoucherID), c.UserID).Scan(&held).Error
	if err != nil {
		return sale.Answer{}, err
	}
	free, taken := 0, map[int]bool{}
	for _, h := range held {
		if sale.ID(h.ID) == c.OrderID || c.Key != "" && h.ClickKey == c.Key {
			return sale.Answer{Verdict: sale.Admitted, Order: sale.ID(h.ID), Nth: h.Nth}, nil
		}
		taken[h.Nth] = true
	}
	if c.Key != "" {
		// What is over stays the key's order: a late copy of the click buys nothing.
		var over []int64
		err := tx.Raw("SELECT id FROM orders WHERE voucher_id = ? AND user_id = ? AND status IN ('failed', 'cancelled', 'refunded') AND click_key = ? LIMIT 1",
			int64(c.VoucherID), c.UserID, c.Key).Scan(&over).Error
		if err != nil {
			return sale.Answer{}, err
		}
		if len(over) > 0 {
			return sale.Answer{Verdict: sale.Admitted, Order: sale.ID(over[0])}, nil
		}
	}
	for taken[free] {
		free++
	}
	switch {
	case now.Before(offer.Opens()):
		return sale.Answer{Verdict: sale.NotStarted}, nil
	case !now.Before(offer.End):
		return sale.Answer{Verdict: sale.HasEnded}, nil
	case free >= max(offer.PerUser, 1):
		return sale.Answer{Verdict: sale.AlreadyBought, Order: sale.ID(held[0].ID)}, nil
	case offer.Left <= 0:
		return sale.Answer{Verdict: sale.SoldOut}, nil
	}
	payBy := int64(0)
	if offer.PayWithin > 0 {
		payBy = v.NowMS + offer.PayWithin.Milliseconds()
	}
	// The order first and the stock last, as Fulfil does: the row at which all
	// clicks meet is locked for the shortest time.
	res = tx.Exec("INSERT INTO orders (id, voucher_id, user_id, nth, status, reason, admitted_ms, decided_ms, pay_by_ms, paid_ms, closed_ms, give_back, click_key) "+
		"VALUES (?, ?, ?, ?, 'confirmed', '', ?, ?, ?, 0, 0, 0, ?) ON CONFLICT DO NOTHING",
		int64(c.OrderID), int64(c.VoucherID), c.UserID, free, c.AtMillis, time.Now().UnixMilli(), payBy, c.Key)
	if res.Error == nil && res.RowsAffected == 0 {
		res.Error = errRaced
	}
	if res.Error != nil {
		return sale.Answer{}, res.Error
	}
	// The only guard of the stock: what was looked up before may be old.
	res = tx.Exec("UPDATE vouchers SET stock_left = stock_left - 1 WHERE id = ? AND stock_left > 0", int64(c.VoucherID))
	if res.Error == nil && res.RowsAffected == 0 {
		return sale.Answer{}, errNoneLeft
	}
	return sale.Answer{Verdict: sale.Admitted, Order: c.OrderID, Nth: free}, res.Error
}

// heldUnit is an order by which a buyer holds a unit.
type heldUnit struct {
	ID       int64
	Nth      int
	ClickKey string
}

var _ sale.SyncStore = (*Store)(nil)
