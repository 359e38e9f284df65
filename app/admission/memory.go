package admission

import (
	"context"
	"slices"
	"sync"
	"time"

	"queuelab/app/sale"
)

// Memory is a gate in this process, for running without Redis. Its stock and
// marks end with the process: what was admitted and not yet in the queue is
// then forgotten. Other instances do not see it.
type Memory struct {
	now    func() time.Time
	left   left // see Stockless
	places places

	mu       sync.Mutex
	vouchers map[sale.ID]*voucher
}

type voucher struct {
	loaded     bool
	units      int64 // when the sale began
	stock      int64
	begin, end time.Time
	each       int                // units that one buyer may have
	most       int64              // marks; 0: no bound
	buyers     map[string]sale.ID // by field
	marks      map[sale.ID]*mark
	wishes     map[string][]wish // by buyer, the newest last
}

// wish is an idempotency key and the order that it got.
type wish struct {
	key   string
	order sale.ID
}

// maxWishes bounds the keys that are kept of one buyer; it is more than
// sale.MaxPerUser. admit.lua has it too.
const maxWishes = 16

type mark struct {
	reservation sale.Reservation
	set         time.Time
	from        time.Time // due an age after this
}

// NewMemory makes an empty gate. now is the clock; nil is the real one.
func NewMemory(now func() time.Time) *Memory {
	if now == nil {
		now = time.Now
	}
	return &Memory{now: now, vouchers: map[sale.ID]*voucher{}}
}

// voucher is for reading; a voucher that is not known is as good as empty.
func (m *Memory) voucher(id sale.ID) *voucher {
	if v := m.vouchers[id]; v != nil {
		return v
	}
	return &voucher{}
}

func (m *Memory) create(id sale.ID) *voucher {
	v := m.vouchers[id]
	if v == nil {
		v = &voucher{buyers: map[string]sale.ID{}, marks: map[sale.ID]*mark{}, wishes: map[string][]wish{}}
		m.vouchers[id] = v
	}
	return v
}

// Admit implements sale.Gate.
func (m *Memory) Admit(ctx context.Context, r sale.Reservation) (sale.Verdict, sale.ID, error) {
	a, err := m.Click(ctx, sale.Click{Reservation: r})
	return a.Verdict, a.Order, err
}

// Click implements sale.Gate.
func (m *Memory) Click(_ context.Context, c sale.Click) (sale.Answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.voucher(c.VoucherID).click(m.now(), c), nil
}

func (v *voucher) click(now time.Time, c sale.Click) sale.Answer {
	if !v.loaded {
		return sale.Answer{Verdict: sale.NotLoaded}
	}
	for _, w := range v.wishes[c.UserID] {
		if c.Key == "" || w.key != c.Key || w.order == c.OrderID {
			continue
		}
		if k := v.marks[w.order]; k != nil {
			k.from = k.from.Add(time.Millisecond) // somebody else counts on the order: see Withdraw
		}
		return sale.Answer{Verdict: sale.Admitted, Order: w.order}
	}
	r, free, first := c.Reservation, -1, sale.ID(0)
	for r.Nth = 0; r.Nth < v.each; r.Nth++ {
		holder := v.buyers[field(r)]
		switch {
		case holder == 0:
			if free < 0 {
				free = r.Nth
			}
			continue
		case holder == c.OrderID:
			return sale.Answer{Verdict: sale.Admitted, Order: holder, Nth: r.Nth}
		}
		if first == 0 {
			first = holder
		}
	}
	switch {
	case now.Before(v.begin):
		return sale.Answer{Verdict: sale.NotStarted}
	case !now.Before(v.end):
		return sale.Answer{Verdict: sale.HasEnded}
	case free < 0:
		return sale.Answer{Verdict: sale.AlreadyBought, Order: first}
	case v.stock <= 0:
		return sale.Answer{Verdict: sale.SoldOut}
	case v.most > 0 && int64(len(v.marks)) >= v.most:
		return sale.Answer{Verdict: sale.Crowded}
	}
	r.Nth = free
	v.marks[r.OrderID] = &mark{reservation: r, set: now, from: now}
	v.buyers[field(r)] = r.OrderID
	if c.Key != "" {
		ws := slices.DeleteFunc(v.wishes[c.UserID], func(w wish) bool { return w.key == c.Key })
		v.wishes[c.UserID] = append(ws[max(0, len(ws)+1-maxWishes):], wish{c.Key, r.OrderID})
	}
	v.stock--
	return sale.Answer{Verdict: sale.Admitted, Order: r.OrderID, Nth: free}
}

// Settle implements sale.Gate.
func (m *Memory) Settle(_ context.Context, rs ...sale.Reservation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range rs {
		v := m.create(r.VoucherID)
		delete(v.marks, r.OrderID)
		v.buyers[field(r)] = r.OrderID
		v.stock = min(v.stock, max(0, v.units-int64(len(v.buyers))))
	}
	return nil
}

// Release implements sale.Gate.
func (m *Memory) Release(_ context.Context, r sale.Reservation) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.voucher(r.VoucherID).release(r), nil
}

func (v *voucher) release(r sale.Reservation) bool {
	delete(v.marks, r.OrderID)
	if v.buyers[field(r)] != r.OrderID {
		return false
	}
	delete(v.buyers, field(r))
	if v.loaded {
		// More buyers may be known than there are units, where the gate learned of
		// some too late: then this unit is one of those that nobody has.
		v.stock = min(v.stock+1, max(0, v.units-int64(len(v.buyers))))
	}
	return true
}

// Withdraw implements sale.Gate.
func (m *Memory) Withdraw(_ context.Context, r sale.Reservation) (kept bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.voucher(r.VoucherID)
	if v.buyers[field(r)] != r.OrderID {
		return false, nil
	}
	if k := v.marks[r.OrderID]; k == nil || !k.from.Equal(k.set) {
		return true, nil
	}
	v.release(r)
	// The buyer is told to try again, and may do that with the same key.
	v.wishes[r.UserID] = slices.DeleteFunc(v.wishes[r.UserID], func(w wish) bool { return w.order == r.OrderID })
	return false, nil
}

// Find implements sale.Gate.
func (m *Memory) Find(_ context.Context, order sale.ID, vouchers ...sale.ID) (sale.Reservation, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range vouchers {
		if k := m.voucher(id).marks[order]; k != nil {
			return k.reservation, true, nil
		}
	}
	return sale.Reservation{}, false, nil
}

// FindAll implements sale.Gate.
func (m *Memory) FindAll(ctx context.Context, orders []sale.ID, vouchers ...sale.ID) (map[sale.ID]sale.Reservation, error) {
	found := map[sale.ID]sale.Reservation{}
	for _, o := range orders {
		if r, ok, _ := m.Find(ctx, o, vouchers...); ok { // it never fails
			found[o] = r
		}
	}
	return found, nil
}

// Stale implements sale.Gate.
func (m *Memory) Stale(_ context.Context, id sale.ID, age time.Duration, limit int) ([]sale.Reservation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	var due []*mark
	for _, k := range m.voucher(id).marks {
		if !now.Before(k.from.Add(age)) {
			due = append(due, k)
		}
	}
	slices.SortFunc(due, func(a, b *mark) int { return a.from.Compare(b.from) })
	due = due[:min(limit, len(due))]
	rs := make([]sale.Reservation, len(due))
	for i, k := range due {
		// As long again as it has waited: each pause is twice the one before.
		k.from = now.Add(max(0, min(now.Sub(k.set), 10*age)-age))
		rs[i] = k.reservation
	}
	return rs, nil
}

// Restore implements sale.Gate.
func (m *Memory) Restore(_ context.Context, rs ...sale.Reservation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range rs {
		v := m.create(r.VoucherID)
		if v.buyers[field(r)] == 0 {
			v.buyers[field(r)] = r.OrderID
		}
	}
	return nil
}

// Load implements sale.Gate.
func (m *Memory) Load(_ context.Context, offer sale.Voucher) (bool, error) {
	offer = m.left.offer(offer)
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.create(offer.ID)
	if v.loaded {
		return false, nil
	}
	v.loaded, v.begin, v.end = true, offer.Opens(), offer.End
	v.units, v.each, v.most = offer.Stock, max(offer.PerUser, 1), offer.MaxInFlight
	v.stock = max(0, min(offer.Stock-int64(len(v.buyers)), offer.Left))
	return true, nil
}

// Left implements sale.Gate.
func (m *Memory) Left(ctx context.Context, id sale.ID) (int64, bool, error) {
	m.mu.Lock()
	v := m.voucher(id)
	n, loaded := v.stock, v.loaded
	m.mu.Unlock()
	return m.left.instead(ctx, id, n, loaded)
}

// Check implements sale.Gate.
func (m *Memory) Check(context.Context) error { return nil }

// Close implements sale.Gate.
func (m *Memory) Close() error { return nil }
