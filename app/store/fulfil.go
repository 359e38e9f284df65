package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"queuelab/app/sale"
)

// Fulfil decides the orders of a batch in one transaction: each gets a unit of
// the voucher's stock and is confirmed, or fails with a reason. It returns the
// decisions in the order of the reservations. An order that was decided before
// keeps its decision, so a message that comes again changes nothing.
//
// After an error nothing was decided, or the answer of the commit was lost;
// either way the same call may be made again.
func (s *Store) Fulfil(ctx context.Context, rs []sale.Reservation) ([]sale.Decision, error) {
	if len(rs) == 0 {
		return nil, nil
	}
	if s.stock != nil {
		ds, err := s.fulfilTwo(ctx, rs)
		return ds, wrap(fmt.Sprintf("fulfil %d orders", len(rs)), err)
	}
	todo := inOrder(rs)
	var failed, decided map[int64]decision
	err := again(func() (err error) {
		failed, err = s.failSoldOut(ctx, todo)
		return err
	})
	if len(failed) > 0 {
		todo = slices.DeleteFunc(todo, func(r sale.Reservation) bool {
			_, done := failed[int64(r.OrderID)]
			return done
		})
	}
	if err == nil && len(todo) > 0 {
		err = again(func() error {
			var done bool
			var err error
			if decided, done, err = s.confirm(ctx, todo); done || err != nil {
				return err
			}
			return s.write.WithContext(ctx).Transaction(func(tx *gorm.DB) (err error) {
				decided, err = s.fulfil(tx, todo)
				return err
			})
		})
	}
	if err != nil {
		return nil, fmt.Errorf("fulfil %d orders: %w", len(rs), err)
	}
	if decided == nil {
		decided = failed
	} else {
		maps.Copy(decided, failed)
	}
	return decisions(rs, decided), nil
}

// decisions returns those of the reservations, in their order.
func decisions(rs []sale.Reservation, decided map[int64]decision) []sale.Decision {
	out := make([]sale.Decision, len(rs))
	for i, r := range rs {
		d := decided[int64(r.OrderID)]
		if !d.of(r) {
			// Never tell a buyer of somebody else's order.
			out[i] = sale.Decision{Order: row(r, sale.Failed, sale.ReasonIDTaken, time.Now()).order()}
			continue
		}
		out[i] = sale.Decision{Order: d.order(), Again: d.again}
		d.again = true // its next copy in this batch
		decided[int64(r.OrderID)] = d
	}
	return out
}

// transaction does all of it or nothing, and again where it lost against
// another transaction.
func (s *Store) transaction(ctx context.Context, do func(tx *gorm.DB) error) error {
	return again(func() error { return s.write.WithContext(ctx).Transaction(do) })
}

// inOrder returns each order once, those of one buyer's unit together, and the
// earlier of them first. Since everybody inserts in this order, two batches
// that have orders in common, or buyers, wait for each other at most once, and
// never each for the other.
func inOrder(rs []sale.Reservation) []sale.Reservation {
	todo := slices.Clone(rs)
	slices.SortStableFunc(todo, func(a, b sale.Reservation) int { return cmp.Compare(a.OrderID, b.OrderID) })
	todo = slices.CompactFunc(todo, func(a, b sale.Reservation) bool { return a.OrderID == b.OrderID })
	slices.SortStableFunc(todo, func(a, b sale.Reservation) int {
		return cmp.Or(cmp.Compare(a.VoucherID, b.VoucherID), cmp.Compare(a.UserID, b.UserID), cmp.Compare(a.Nth, b.Nth))
	})
	return todo
}

// lockVouchers has transactions that close orders of a voucher follow each other.
func (s *Store) lockVouchers(tx *gorm.DB, ids ...int64) error {
	if s.name != "postgres" {
		return nil // SQLite has one writer at a time
	}
	slices.Sort(ids)
	var locked []int64
	err := tx.Raw("SELECT id FROM vouchers WHERE id IN ? ORDER BY id FOR NO KEY UPDATE", slices.Compact(ids)).Scan(&locked).Error
	return wrap("lock vouchers", err)
}

// payBy returns until when an order that is confirmed now is to be paid, by the
// database's clock: one clock says when the time begins and when it has ended.
func (s *Store) payBy(tx *gorm.DB, todo []sale.Reservation) (map[int64]int64, error) {
	var ids []int64 // they are in order
	for _, r := range todo {
		if id := int64(r.VoucherID); len(ids) == 0 || ids[len(ids)-1] != id {
			ids = append(ids, id)
		}
	}
	var terms []struct {
		ID      int64
		PayByMS int64 `gorm:"column:pay_by_ms"`
	}
	err := tx.Raw("SELECT id, CASE WHEN pay_within_ms > 0 THEN "+s.now()+" + pay_within_ms ELSE 0 END AS pay_by_ms FROM vouchers WHERE id IN ?", ids).Scan(&terms).Error
	by := make(map[int64]int64, len(terms))
	for _, v := range terms {
		by[v.ID] = v.PayByMS
	}
	return by, wrap("read times to pay", err)
}

type decision struct {
	orderRow
	again bool
}

func (r orderRow) of(res sale.Reservation) bool {
	return r.VoucherID == int64(res.VoucherID) && r.UserID == res.UserID
}

func (s *Store) fulfil(tx *gorm.DB, todo []sale.Reservation) (map[int64]decision, error) {
	now := time.Now()
	payBy, err := s.payBy(tx, todo)
	if err != nil {
		return nil, err
	}
	rows := make([]orderRow, len(todo))
	for i, r := range todo {
		rows[i] = row(r, sale.Confirmed, "", now)
		rows[i].PayByMS = payBy[rows[i].VoucherID]
	}
	fresh, err := insert(tx, rows)
	if err != nil {
		return nil, err
	}
	decided := make(map[int64]decision, len(todo))
	perVoucher := map[sale.ID][]sale.Reservation{}
	var old []sale.Reservation
	for i, r := range todo {
		if fresh[int64(r.OrderID)] {
			decided[int64(r.OrderID)] = decision{orderRow: rows[i]}
			perVoucher[r.VoucherID] = append(perVoucher[r.VoucherID], r)
		} else {
			old = append(old, r)
		}
	}
	if err := settleOld(tx, old, decided, now); err != nil {
		return nil, err
	}
	vouchers := make([]sale.ID, 0, len(perVoucher))
	for v := range perVoucher {
		vouchers = append(vouchers, v)
	}
	slices.Sort(vouchers)
	for _, v := range vouchers {
		if err := s.takeStock(tx, v, perVoucher[v], decided, now); err != nil {
			return nil, err
		}
	}
	return decided, nil
}

// insert adds the rows that no unique index refuses and returns their ids.
func insert(tx *gorm.DB, rows []orderRow) (map[int64]bool, error) {
	args := make([]any, 0, 9*len(rows))
	for _, w := range rows {
		args = append(args, w.ID, w.VoucherID, w.UserID, w.Nth, w.Status, w.Reason, w.AdmittedMS, w.DecidedMS, w.PayByMS)
	}
	values := strings.TrimSuffix(strings.Repeat("(?,?,?,?,?,?,?,?,?,0,0,0),", len(rows)), ",")
	var ids []int64
	// RETURNING, because a batch that skips rows cannot say otherwise which.
	err := tx.Raw("INSERT INTO orders (id, voucher_id, user_id, nth, status, reason, admitted_ms, decided_ms, pay_by_ms, paid_ms, closed_ms, give_back) VALUES "+values+
		" ON CONFLICT DO NOTHING RETURNING id", args...).Scan(&ids).Error
	if err != nil {
		return nil, fmt.Errorf("insert orders: %w", err)
	}
	set := make(map[int64]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set, nil
}

// settleOld finds the earlier decisions; what has none was refused because the
// buyer has another confirmed order, and fails.
func settleOld(tx *gorm.DB, old []sale.Reservation, decided map[int64]decision, now time.Time) error {
	if len(old) == 0 {
		return nil
	}
	ids := make([]int64, len(old))
	for i, r := range old {
		ids[i] = int64(r.OrderID)
	}
	var rows []orderRow
	if err := tx.Where("id IN ?", ids).Find(&rows).Error; err != nil {
		return fmt.Errorf("read earlier decisions: %w", err)
	}
	for _, r := range rows {
		decided[r.ID] = decision{orderRow: r, again: true}
	}
	var refused []orderRow
	for _, r := range old {
		if _, ok := decided[int64(r.OrderID)]; !ok {
			w := row(r, sale.Failed, sale.ReasonAlreadyBought, now)
			refused = append(refused, w)
			decided[w.ID] = decision{orderRow: w}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	_, err := insert(tx, refused)
	return err
}

// takeStock gives a unit to each of the fresh orders of a voucher, and fails
// those that find none, the later ones first. The reservation is trusted: this is
// the only guard.
func (s *Store) takeStock(tx *gorm.DB, voucher sale.ID, rs []sale.Reservation, decided map[int64]decision, now time.Time) error {
	const take = "UPDATE vouchers SET stock_left = stock_left - ? WHERE id = ? AND stock_left >= ?"
	n := int64(len(rs))
	res := tx.Exec(take, n, int64(voucher), n)
	if res.Error != nil {
		return fmt.Errorf("take stock of voucher %s: %w", voucher, res.Error)
	}
	if res.RowsAffected == 1 {
		return nil
	}
	if err := s.lockVouchers(tx, int64(voucher)); err != nil {
		return err
	}
	var left []int64
	if err := tx.Model(&voucherRow{}).Where("id = ?", int64(voucher)).Pluck("stock_left", &left).Error; err != nil {
		return fmt.Errorf("look for voucher %s: %w", voucher, err)
	}
	reason := sale.ReasonSoldOut
	if len(left) == 0 {
		reason, left = sale.ReasonNoVoucher, []int64{0}
	}
	got := min(left[0], n)
	if got > 0 {
		if err := tx.Exec(take, got, int64(voucher), got).Error; err != nil {
			return fmt.Errorf("take stock of voucher %s: %w", voucher, err)
		}
	}
	failed := slices.Clone(rs)
	slices.SortFunc(failed, func(a, b sale.Reservation) int { return cmp.Compare(a.OrderID, b.OrderID) })
	failed = failed[got:]
	if len(failed) == 0 { // some came back meanwhile
		return nil
	}
	ids := make([]int64, len(failed))
	for i, r := range failed {
		ids[i] = int64(r.OrderID)
		decided[ids[i]] = decision{orderRow: row(r, sale.Failed, reason, now)}
	}
	if err := tx.Exec("UPDATE orders SET status = ?, reason = ?, decided_ms = ?, pay_by_ms = 0 WHERE id IN ?",
		string(sale.Failed), reason, now.UnixMilli(), ids).Error; err != nil {
		return fmt.Errorf("fail %d orders: %w", len(ids), err)
	}
	if reason == sale.ReasonSoldOut {
		s.soldOut.note(voucher)
	}
	return nil
}

// Fail decides that an order fails, unless it was decided before, and returns
// the decision that stands.
func (s *Store) Fail(ctx context.Context, r sale.Reservation, reason string) (sale.Order, error) {
	var w orderRow
	err := s.transaction(ctx, func(tx *gorm.DB) (err error) {
		w, err = failOrder(tx, r, reason)
		return err
	})
	if err != nil {
		return sale.Order{}, fmt.Errorf("fail order %s: %w", r.OrderID, err)
	}
	return w.order(), nil
}
