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
	Status     string
	Reason     string
	AdmittedMS int64 `gorm:"column:admitted_ms"`
	DecidedMS  int64 `gorm:"column:decided_ms"`
}

func (orderRow) TableName() string { return "orders" }

func row(r sale.Reservation, status sale.Status, reason string, now time.Time) orderRow {
	return orderRow{ID: int64(r.OrderID), VoucherID: int64(r.VoucherID), UserID: r.UserID, Status: string(status), Reason: reason,
		AdmittedMS: r.AtMillis, DecidedMS: now.UnixMilli()}
}

func (r orderRow) order() sale.Order {
	return sale.Order{
		Reservation: sale.Reservation{OrderID: sale.ID(r.ID), VoucherID: sale.ID(r.VoucherID), UserID: r.UserID, AtMillis: r.AdmittedMS},
		Status:      sale.Status(r.Status), Reason: r.Reason, Decided: time.UnixMilli(r.DecidedMS).UTC(),
	}
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

// ConfirmedOrders implements sale.Store.
func (s *Store) ConfirmedOrders(ctx context.Context, voucher, after sale.ID, limit int) ([]sale.Order, error) {
	var rows []orderRow
	err := s.read.WithContext(ctx).Where("voucher_id = ? AND id > ? AND status = ?", int64(voucher), int64(after), string(sale.Confirmed)).
		Order("id").Limit(limit).Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("list orders of voucher %s: %w", voucher, err)
	}
	return orders(rows), nil
}
