package store

import (
	"context"
	"fmt"
	"time"

	"queuelab/app/sale"
)

// orderRow is a row of the table orders.
type orderRow struct {
	ID         int64 `gorm:"primaryKey;autoIncrement:false"`
	VoucherID  int64
	UserID     string
	Nth        int64
	Status     string
	Reason     string
	AdmittedMS int64 `gorm:"column:admitted_ms"`
	DecidedMS  int64 `gorm:"column:decided_ms"`
	PayByMS    int64 `gorm:"column:pay_by_ms"`
	PaidMS     int64 `gorm:"column:paid_ms"`
	ClosedMS   int64 `gorm:"column:closed_ms"`
	GiveBack   int64
}

func (orderRow) TableName() string { return "orders" }

func row(r sale.Reservation, status sale.Status, reason string, now time.Time) orderRow {
	return orderRow{ID: int64(r.OrderID), VoucherID: int64(r.VoucherID), UserID: r.UserID, Nth: int64(r.Nth), Status: string(status), Reason: reason,
		AdmittedMS: r.AtMillis, DecidedMS: now.UnixMilli()}
}

func (r orderRow) order() sale.Order {
	return sale.Order{
		Reservation: sale.Reservation{OrderID: sale.ID(r.ID), VoucherID: sale.ID(r.VoucherID), UserID: r.UserID, Nth: int(r.Nth), AtMillis: r.AdmittedMS},
		Status:      sale.Status(r.Status), Reason: r.Reason,
		Decided: moment(r.DecidedMS), PayBy: moment(r.PayByMS), Paid: moment(r.PaidMS), Closed: moment(r.ClosedMS),
	}
}

// moment reads a time that is 0 in the table when there is none.
func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// millis is what moment reads.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func orders(rows []orderRow) []sale.Order {
	os := make([]sale.Order, len(rows))
	for i, r := range rows {
		os[i] = r.order()
	}
	return os
}

func numbers(ids []sale.ID) []int64 {
	ns := make([]int64, len(ids))
	for i, id := range ids {
		ns[i] = int64(id)
	}
	return ns
}

// Orders implements sale.Store.
func (s *Store) Orders(ctx context.Context, ids ...sale.ID) ([]sale.Order, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var rows []orderRow
	if err := s.read.WithContext(ctx).Where("id IN ?", numbers(ids)).Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("read orders: %w", err)
	}
	return orders(rows), nil
}

// HeldOrders implements sale.Store.
func (s *Store) HeldOrders(ctx context.Context, voucher, after sale.ID, limit int) ([]sale.Order, error) {
	var rows []orderRow
	err := s.read.WithContext(ctx).Where("voucher_id = ? AND id > ? AND status IN ?", int64(voucher), int64(after), held()).
		Order("id").Limit(limit).Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("list orders of voucher %s: %w", voucher, err)
	}
	return orders(rows), nil
}

// held are the statuses of orders that have a unit.
func held() []string { return []string{string(sale.Confirmed), string(sale.Paid)} }
