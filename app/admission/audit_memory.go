package admission

import (
	"context"

	"queuelab/app/sale"
)

// Book implements sale.Auditor.
func (m *Memory) Book(_ context.Context, id sale.ID) (sale.Book, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.voucher(id)
	return sale.Book{Loaded: v.loaded, Units: v.units, Left: v.stock, Buyers: int64(len(v.buyers)), Marks: int64(len(v.marks))}, nil
}

// Holders implements sale.Auditor: all of them are one page.
func (m *Memory) Holders(_ context.Context, id sale.ID, _ uint64) (hs []sale.Holder, next uint64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, order := range m.voucher(id).buyers {
		hs = append(hs, holder(id, name, order.String()))
	}
	return hs, 0, nil
}

// Marked implements sale.Auditor, likewise.
func (m *Memory) Marked(_ context.Context, id sale.ID, _ uint64) (ms []sale.Mark, next uint64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for _, k := range m.voucher(id).marks {
		ms = append(ms, sale.Mark{Reservation: k.reservation, Age: now.Sub(k.set)})
	}
	return ms, 0, nil
}

// Holdings implements sale.Auditor.
func (m *Memory) Holdings(_ context.Context, rs ...sale.Reservation) ([]sale.Holding, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	hs := make([]sale.Holding, len(rs))
	for i, r := range rs {
		v := m.voucher(r.VoucherID)
		hs[i] = sale.Holding{Holder: v.buyers[field(r)], Marked: v.marks[r.OrderID] != nil}
	}
	return hs, nil
}

// Level implements sale.Auditor.
func (m *Memory) Level(_ context.Context, id sale.ID, units, most int64) (int64, error) {
	offer := m.left.offer(sale.Voucher{Stock: units, Left: most})
	units, most = offer.Stock, offer.Left
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.voucher(id)
	if !v.loaded {
		return 0, nil
	}
	v.units = units
	change := max(0, v.units-int64(len(v.buyers))) - v.stock
	if change > 0 {
		change = max(0, min(change, most-v.stock))
	}
	v.stock += change
	return change, nil
}

// Index implements sale.Auditor: here nothing but the marks is an index of them.
func (m *Memory) Index(context.Context, sale.ID, ...sale.ID) (int64, error) { return 0, nil }

// Drop implements sale.Auditor: here nobody but the gate writes anything.
func (m *Memory) Drop(context.Context, sale.ID, ...sale.Scrap) (int64, error) { return 0, nil }
