package store

import (
	"context"
	"fmt"
	"time"

	"queuelab/app/sale"
)

// startedBy is the column start_by.
func startedBy(signal bool) string {
	if signal {
		return "signal"
	}
	return "clock"
}

// OpenSale implements sale.StartStore.
func (s *Store) OpenSale(ctx context.Context, id sale.ID, due bool) (sale.Voucher, bool, error) {
	query := "UPDATE vouchers SET opened_ms = " + s.now() + " WHERE id = ? AND start_by = 'signal' AND opened_ms = 0" +
		" AND begin_ms <= " + s.now() + " AND end_ms > " + s.now()
	if due {
		query += " AND open_at_ms > 0 AND open_at_ms <= " + s.now()
	}
	var opened []voucherRow
	if err := s.write.WithContext(ctx).Raw(query+" RETURNING *", int64(id)).Scan(&opened).Error; err != nil {
		return sale.Voucher{}, false, fmt.Errorf("open voucher %s: %w", id, err)
	}
	if len(opened) == 1 {
		return opened[0].voucher(), true, nil
	}
	var now []voucherRow
	// Not from a reader of ours that may be behind the writer.
	if err := s.write.WithContext(ctx).Where("id = ?", int64(id)).Find(&now).Error; err != nil {
		return sale.Voucher{}, false, fmt.Errorf("open voucher %s: %w", id, err)
	}
	if len(now) == 0 {
		return sale.Voucher{}, false, sale.NoVoucher()
	}
	return now[0].voucher(), false, nil
}

// maxSignals is the most vouchers that Signals lists; those that were opened
// come last.
const maxSignals = 1000

// Signals implements sale.StartStore.
func (s *Store) Signals(ctx context.Context) ([]sale.Signal, error) {
	var rows []struct {
		ID     int64
		Opened int64
		OpenAt int64
		Now    int64
	}
	err := s.read.WithContext(ctx).Raw("SELECT id, opened_ms AS opened, open_at_ms AS open_at, " + s.now() + " AS now FROM vouchers" +
		" WHERE start_by = 'signal' AND end_ms > " + s.now() + " ORDER BY opened_ms, open_at_ms LIMIT " + fmt.Sprint(maxSignals)).Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("list start signals: %w", err)
	}
	signals := make([]sale.Signal, len(rows))
	for i, r := range rows {
		signals[i] = sale.Signal{Voucher: sale.ID(r.ID), Opened: moment(r.Opened), In: sale.NotByItself}
		if r.OpenAt > 0 {
			signals[i].In = time.Duration(r.OpenAt-r.Now) * time.Millisecond
		}
	}
	return signals, nil
}
