package store

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"queuelab/app/sale"
)

// CloseOrder ends an order that has a unit: a confirmed one is cancelled, a paid one
// refunded. The unit is back in the stock of the same transaction, and the order
// is listed by ToGiveBack. It returns the order as it stands then, and whether
// this call closed it: of two at the same time one does.
func (s *Store) CloseOrder(ctx context.Context, id sale.ID, to sale.Status, reason string) (o sale.Order, closed bool, err error) {
	from := sale.Confirmed
	if to == sale.Refunded {
		from = sale.Paid
	}
	if !from.MayBecome(to) {
		return o, false, fmt.Errorf("close order %s: %s closes nothing", id, to)
	}
	closedNow, err := s.closeOrders(ctx, to, reason, []int64{int64(id)}, "status = ?", string(from))
	if err != nil {
		return o, false, fmt.Errorf("close order %s: %w", id, err)
	}
	if len(closedNow) == 1 {
		return closedNow[0], true, nil
	}
	os, err := s.Orders(ctx, id)
	if err != nil {
		return o, false, err
	}
	if len(os) == 0 {
		return o, false, sale.NotFound("no such order")
	}
	return os[0], false, nil
}

const unpaid = "status = 'confirmed' AND pay_by_ms > 0 AND pay_by_ms <= ?"

// Expire cancels at most limit confirmed orders whose time to pay has ended, and
// returns them.
func (s *Store) Expire(ctx context.Context, now time.Time, limit int) ([]sale.Order, error) {
	var ids []int64
	err := s.read.WithContext(ctx).Model(&orderRow{}).Where(unpaid, now.UnixMilli()).
		Order("pay_by_ms").Limit(limit).Pluck("id", &ids).Error
	if err != nil || len(ids) == 0 {
		return nil, wrap("list unpaid orders", err)
	}
	os, err := s.closeOrders(ctx, sale.Cancelled, ReasonUnpaid, ids, unpaid, now.UnixMilli())
	return os, wrap("cancel unpaid orders", err)
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// closeOrders moves those of the orders that still are as wanted, and gives
// their units back.
func (s *Store) closeOrders(ctx context.Context, to sale.Status, reason string, ids []int64, still string, arg any) ([]sale.Order, error) {
	var rows []orderRow
	var err error
	for range 3 {
		rows = nil
		err = s.write.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			// Vouchers first, as Fulfil does: else the two could wait for each other.
			var vouchers []int64
			if err := tx.Model(&orderRow{}).Where("id IN ?", ids).Distinct().Pluck("voucher_id", &vouchers).Error; err != nil {
				return err
			}
			if len(vouchers) == 0 {
				return nil
			}
			if _, err := s.lockVouchers(tx, vouchers...); err != nil {
				return err
			}
			// One statement looks and moves: a payment may come at the same time.
			err := tx.Raw("UPDATE orders SET status = ?, reason = ?, closed_ms = ?, give_back = 1 WHERE id IN ? AND "+still+" RETURNING *",
				string(to), reason, time.Now().UnixMilli(), ids, arg).Scan(&rows).Error
			if err != nil {
				return err
			}
			units := map[int64]int64{}
			for _, r := range rows {
				units[r.VoucherID]++
			}
			for v, n := range units {
				if err := tx.Exec("UPDATE vouchers SET stock_left = stock_left + ? WHERE id = ?", n, v).Error; err != nil {
					return fmt.Errorf("give units of voucher %d back: %w", v, err)
				}
			}
			return nil
		})
		if err == nil || !conflict(err) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return orders(rows), nil
}

// ToGiveBack lists at most limit closed orders whose unit the gate may still
// hold.
func (s *Store) ToGiveBack(ctx context.Context, limit int) ([]sale.Order, error) {
	var rows []orderRow
	if err := s.read.WithContext(ctx).Where("give_back = 1").Order("id").Limit(limit).Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("list orders to give back: %w", err)
	}
	return orders(rows), nil
}

// GivenBack notes that the gate holds nothing for these orders any more.
func (s *Store) GivenBack(ctx context.Context, ids ...sale.ID) error {
	if len(ids) == 0 {
		return nil
	}
	err := s.write.WithContext(ctx).Exec("UPDATE orders SET give_back = 0 WHERE id IN ?", numbers(ids)).Error
	return wrap("note what was given back", err)
}
