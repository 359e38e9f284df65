package store

import (
	"context"
	"fmt"
	"strings"

	"gorm.io/gorm/clause"

	"queuelab/app/sale"
)

// tallyRow is a row of the table tallies.
type tallyRow struct {
	VoucherID     int64  `gorm:"primaryKey;autoIncrement:false"`
	Holder        string `gorm:"primaryKey"`
	Clicked       int64
	Admitted      int64
	Queued        int64
	SoldOut       int64
	AlreadyBought int64
	Busy          int64
}

func (tallyRow) TableName() string { return "tallies" }

// SaveTallies implements sale.TallyStore.
func (s *Store) SaveTallies(ctx context.Context, holder string, ts []sale.Tally) error {
	if len(ts) == 0 {
		return nil
	}
	rows := make([]tallyRow, len(ts))
	for i, t := range ts {
		rows[i] = tallyRow{VoucherID: int64(t.Voucher), Holder: holder, Clicked: t.Clicked, Admitted: t.Admitted, Queued: t.Queued,
			SoldOut: t.SoldOut, AlreadyBought: t.AlreadyBought, Busy: t.Busy}
	}
	if err := s.write.WithContext(ctx).Clauses(clause.OnConflict{UpdateAll: true}).CreateInBatches(&rows, 500).Error; err != nil {
		return fmt.Errorf("save the tallies of %d vouchers: %w", len(ts), err)
	}
	return nil
}

// Tallies sums what all instances counted of these vouchers; those that nobody
// clicked on are left out.
func (s *Store) Tallies(ctx context.Context, vouchers ...sale.ID) (map[sale.ID]sale.Tally, error) {
	if len(vouchers) == 0 {
		return nil, nil
	}
	var rows []tallyRow
	err := s.read.WithContext(ctx).Raw("SELECT voucher_id, "+sums("clicked", "admitted", "queued", "sold_out", "already_bought", "busy")+
		" FROM tallies WHERE voucher_id IN ? GROUP BY voucher_id",
		numbers(vouchers)).Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("read the tallies: %w", err)
	}
	ts := make(map[sale.ID]sale.Tally, len(rows))
	for _, r := range rows {
		ts[sale.ID(r.VoucherID)] = sale.Tally{Voucher: sale.ID(r.VoucherID), Clicked: r.Clicked, Admitted: r.Admitted, Queued: r.Queued,
			SoldOut: r.SoldOut, AlreadyBought: r.AlreadyBought, Busy: r.Busy}
	}
	return ts, nil
}

// sums are numbers of 63 bits again; PostgreSQL's sums of those are not.
func sums(columns ...string) string {
	for i, c := range columns {
		columns[i] = "CAST(SUM(" + c + ") AS BIGINT) AS " + c
	}
	return strings.Join(columns, ", ")
}

// CountLetters counts the dead letters in each state.
func (s *Store) CountLetters(ctx context.Context) (map[sale.LetterState]int64, error) {
	counts := map[sale.LetterState]int64{sale.Open: 0, sale.Replaying: 0, sale.Replayed: 0, sale.Discarded: 0}
	var rows []struct {
		State string
		N     int64
	}
	if err := s.read.WithContext(ctx).Raw("SELECT state, COUNT(*) AS n FROM dead_letters GROUP BY state").Scan(&rows).Error; err != nil {
		return nil, fmt.Errorf("count the dead letters: %w", err)
	}
	for _, r := range rows {
		counts[sale.LetterState(r.State)] = r.N
	}
	return counts, nil
}

var _ sale.TallyStore = (*Store)(nil)
