package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gorm.io/gorm"

	"queuelab/app/sale"
)

// voucherRow is a row of the table vouchers.
type voucherRow struct {
	ID          int64 `gorm:"primaryKey;autoIncrement:false"`
	Title       string
	Stock       int64
	StockLeft   int64
	PayValue    int64
	ActualValue int64
	BeginMS     int64 `gorm:"column:begin_ms"`
	EndMS       int64 `gorm:"column:end_ms"`
	PayWithinMS int64 `gorm:"column:pay_within_ms"`
	PerUser     int64
	MaxInFlight int64
	Buckets     int64
	StartBy     string
	OpenAtMS    int64 `gorm:"column:open_at_ms"`
	OpenedMS    int64 `gorm:"column:opened_ms"`
	CreatedMS   int64 `gorm:"column:created_ms"`
}

func (voucherRow) TableName() string { return "vouchers" }

func (r voucherRow) voucher() sale.Voucher {
	return sale.Voucher{ID: sale.ID(r.ID), Title: r.Title, Stock: r.Stock, Left: r.StockLeft, PayValue: r.PayValue, ActualValue: r.ActualValue,
		Begin: time.UnixMilli(r.BeginMS).UTC(), End: time.UnixMilli(r.EndMS).UTC(),
		PayWithin: time.Duration(r.PayWithinMS) * time.Millisecond, PerUser: int(r.PerUser), MaxInFlight: r.MaxInFlight, Buckets: int(r.Buckets),
		Signal: r.StartBy == startedBy(true), OpenAt: moment(r.OpenAtMS), Opened: moment(r.OpenedMS), Created: time.UnixMilli(r.CreatedMS).UTC()}
}

// CreateVoucher implements sale.Store.
func (s *Store) CreateVoucher(ctx context.Context, v sale.Voucher) error {
	if s.stock != nil {
		// First: a voucher that is known has its stock. One that only the stock knows
		// is sold to nobody.
		if err := s.stock.CreateVoucher(ctx, v); err != nil {
			return fmt.Errorf("the stock: %w", err)
		}
	}
	return s.write.WithContext(ctx).Create(&voucherRow{ID: int64(v.ID), Title: v.Title, Stock: v.Stock, StockLeft: v.Left,
		PayValue: v.PayValue, ActualValue: v.ActualValue, BeginMS: v.Begin.UnixMilli(), EndMS: v.End.UnixMilli(), PayWithinMS: v.PayWithin.Milliseconds(),
		PerUser: int64(max(v.PerUser, 1)), MaxInFlight: v.MaxInFlight, Buckets: int64(max(v.Buckets, 1)),
		StartBy: startedBy(v.Signal), OpenAtMS: millis(v.OpenAt), OpenedMS: millis(v.Opened), CreatedMS: v.Created.UnixMilli()}).Error
}

// Voucher implements sale.Store.
func (s *Store) Voucher(ctx context.Context, id sale.ID) (sale.Voucher, error) {
	var r voucherRow
	err := s.read.WithContext(ctx).First(&r, "id = ?", int64(id)).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return sale.Voucher{}, sale.NoVoucher()
	}
	if err != nil {
		return sale.Voucher{}, fmt.Errorf("read voucher %s: %w", id, err)
	}
	return r.voucher(), nil
}

// Vouchers lists the newest vouchers first, at most so many, that end after the
// given time.
func (s *Store) Vouchers(ctx context.Context, endAfter time.Time, limit int) ([]sale.Voucher, error) {
	return s.VouchersBelow(ctx, endAfter, math.MaxInt64, limit)
}

// VouchersBelow implements sale.Store.
func (s *Store) VouchersBelow(ctx context.Context, endAfter time.Time, below sale.ID, limit int) ([]sale.Voucher, error) {
	var rows []voucherRow
	err := s.read.WithContext(ctx).Where("end_ms > ? AND id < ?", endAfter.UnixMilli(), int64(below)).Order("id DESC").Limit(limit).Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("list vouchers: %w", err)
	}
	vs := make([]sale.Voucher, len(rows))
	for i, r := range rows {
		vs[i] = r.voucher()
	}
	return vs, nil
}
