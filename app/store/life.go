package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"queuelab/app/sale"
)

// change is what closeOrders does to which orders.
type change struct {
	to     sale.Status
	reason string
	which  string // of the ids, in SQL: an order may have moved meanwhile
	args   []any
	// also is done in the same transaction, with those that were moved; nil: nothing.
	also func(tx *gorm.DB, moved []orderRow) error
}

// CloseOrder implements sale.Life.
func (s *Store) CloseOrder(ctx context.Context, id sale.ID, to sale.Status, reason string) (o sale.Order, closed bool, err error) {
	c := change{to: to, reason: reason, which: "status = ?", args: []any{string(sale.Confirmed)}}
	if to == sale.Refunded {
		c.args, c.also = []any{string(sale.Paid)}, s.moneyBack
	}
	if !sale.Status(c.args[0].(string)).MayBecome(to) {
		return o, false, fmt.Errorf("close order %s: %s closes nothing", id, to)
	}
	var moved []orderRow
	err = s.transaction(ctx, func(tx *gorm.DB) error {
		moved, err = s.closeOrders(tx, c, []int64{int64(id)})
		return err
	})
	if err != nil {
		return o, false, fmt.Errorf("close order %s: %w", id, err)
	}
	if len(moved) == 1 {
		return moved[0].order(), true, nil
	}
	var now []orderRow
	// Not from a reader of ours that may be behind the writer.
	if err := s.write.WithContext(ctx).Where("id = ?", int64(id)).Find(&now).Error; err != nil {
		return o, false, fmt.Errorf("close order %s: %w", id, err)
	}
	if len(now) == 0 {
		return o, false, sale.NoOrder()
	}
	return now[0].order(), false, nil
}

// expireLock is the key of the lock by which one instance at a time cancels
// unpaid orders, so that none waits for what another one does already.
const expireLock = 0x7365636b696c6c01

// Expire cancels at most limit confirmed orders whose time to pay has ended by
// the database's clock, and returns them. None may also mean that another
// instance is at it.
func (s *Store) Expire(ctx context.Context, limit int) ([]sale.Order, error) {
	unpaid := "status = 'confirmed' AND pay_by_ms > 0 AND pay_by_ms <= " + s.now()
	var moved []orderRow
	err := s.transaction(ctx, func(tx *gorm.DB) error {
		moved = nil
		if s.name == "postgres" {
			var mine bool
			if err := tx.Raw("SELECT pg_try_advisory_xact_lock(?)", int64(expireLock)).Scan(&mine).Error; err != nil || !mine {
				return err
			}
		}
		var ids []int64
		err := tx.Model(&orderRow{}).Where(unpaid).Order("pay_by_ms").Limit(limit).Pluck("id", &ids).Error
		if err != nil || len(ids) == 0 {
			return err
		}
		moved, err = s.closeOrders(tx, change{to: sale.Cancelled, reason: sale.ReasonUnpaid, which: unpaid}, ids)
		return err
	})
	return orders(moved), wrap("cancel unpaid orders", err)
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// closeOrders moves those of the orders that still are as wanted, and gives
// their units back.
func (s *Store) closeOrders(tx *gorm.DB, c change, ids []int64) ([]orderRow, error) {
	// Vouchers first, in their order: else two who close orders of several could
	// wait for each other. Fulfil has rows of its own and waits for vouchers last.
	var vouchers []int64
	if err := tx.Model(&orderRow{}).Where("id IN ?", ids).Distinct().Pluck("voucher_id", &vouchers).Error; err != nil || len(vouchers) == 0 {
		return nil, err
	}
	if err := s.lockVouchers(tx, vouchers...); err != nil {
		return nil, err
	}
	// One statement looks and moves: a payment may come at the same time.
	var moved []orderRow
	err := tx.Raw("UPDATE orders SET status = ?, reason = ?, closed_ms = "+s.now()+", give_back = 1, give_back_ms = 0 WHERE id IN ? AND "+c.which+" RETURNING *",
		append([]any{string(c.to), c.reason, ids}, c.args...)...).Scan(&moved).Error
	if err != nil {
		return nil, err
	}
	units := map[int64]int64{}
	for _, r := range moved {
		units[r.VoucherID]++
	}
	for v, n := range units {
		if err := tx.Exec("UPDATE vouchers SET stock_left = stock_left + ? WHERE id = ?", n, v).Error; err != nil {
			return nil, fmt.Errorf("give units of voucher %d back: %w", v, err)
		}
	}
	if err := s.giveLater(tx, moved); err != nil {
		return nil, err
	}
	if c.also != nil && len(moved) > 0 {
		return moved, c.also(tx, moved)
	}
	return moved, nil
}

// HeldUnit is a closed order whose unit the gate may still hold.
type HeldUnit struct {
	sale.Order
	// Cool: the order was closed so long ago that nobody can still be about to
	// tell the gate that it is confirmed.
	Cool bool
}

// ToGiveBack takes up at most limit closed orders whose unit the gate may still
// hold. Each is due again after the given time, until GivenBack: so instances
// that ask at the same time share them.
func (s *Store) ToGiveBack(ctx context.Context, again time.Duration, limit int) ([]HeldUnit, error) {
	query := "SELECT id FROM orders WHERE give_back = 1 AND give_back_ms <= " + s.now() + " ORDER BY give_back_ms LIMIT ?"
	if s.name == "postgres" {
		query += " FOR UPDATE SKIP LOCKED"
	}
	var rows []struct {
		Order orderRow `gorm:"embedded"`
		Cool  bool
	}
	err := s.write.WithContext(ctx).Raw("UPDATE orders SET give_back_ms = "+s.now()+" + ? WHERE id IN ("+query+") "+
		"RETURNING *, closed_ms <= "+s.now()+" - ? AS cool", again.Milliseconds(), limit, again.Milliseconds()).Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("list orders to give back: %w", err)
	}
	units := make([]HeldUnit, len(rows))
	for i, r := range rows {
		units[i] = HeldUnit{Order: r.Order.order(), Cool: r.Cool}
	}
	return units, nil
}

// HeldBy returns the orders that have the units which the reservations asked for:
// those of the same buyers, each the same one of what a buyer may have.
func (s *Store) HeldBy(ctx context.Context, rs ...sale.Reservation) ([]sale.Order, error) {
	if len(rs) == 0 {
		return nil, nil
	}
	args := make([]any, 0, 3*len(rs))
	for _, r := range rs {
		args = append(args, int64(r.VoucherID), r.UserID, int64(r.Nth))
	}
	which := strings.TrimSuffix(strings.Repeat("(voucher_id = ? AND user_id = ? AND nth = ?) OR ", len(rs)), " OR ")
	var rows []orderRow
	err := s.read.WithContext(ctx).Where("status IN ?", held()).Where(which, args...).Find(&rows).Error
	return orders(rows), wrap("look for the orders of buyers", err)
}

// GiveBackSoon makes orders due again that ToGiveBack returned.
func (s *Store) GiveBackSoon(ctx context.Context, ids ...sale.ID) error {
	if len(ids) == 0 {
		return nil
	}
	err := s.write.WithContext(ctx).Exec("UPDATE orders SET give_back_ms = "+s.now()+" + 500 WHERE give_back = 1 AND id IN ?", numbers(ids)).Error
	return wrap("give back soon", err)
}

// GivenBack notes that the gate holds nothing for these orders any more.
func (s *Store) GivenBack(ctx context.Context, ids ...sale.ID) error {
	if len(ids) == 0 {
		return nil
	}
	err := s.write.WithContext(ctx).Exec("UPDATE orders SET give_back = 0 WHERE id IN ?", numbers(ids)).Error
	return wrap("note what was given back", err)
}
