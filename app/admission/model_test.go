package admission_test

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"queuelab/app/admission"
	"queuelab/app/sale"
)

// model is what a gate is, as simply as it can be said: who holds which unit,
// and what is marked.
type model struct {
	v       sale.Voucher
	stock   int64
	holds   map[string]sale.ID // user/nth
	marks   map[sale.ID]sale.Reservation
	keys    map[string]sale.ID // user/key
	counted map[sale.ID]bool   // a second click was told of it
}

func unit(r sale.Reservation) string { return fmt.Sprintf("%s/%d", r.UserID, r.Nth) }

func (m *model) click(c sale.Click) sale.Answer {
	if had := m.keys[c.UserID+"/"+c.Key]; had != 0 && had != c.OrderID {
		m.counted[had] = true
		return admitted(had, 0)
	}
	free, first := -1, sale.ID(0)
	for n := range m.v.PerUser {
		holder := m.holds[unit(nth(c.Reservation, n))]
		switch {
		case holder == 0 && free < 0:
			free = n
		case holder != 0 && holder == c.OrderID:
			return admitted(holder, n)
		case holder != 0 && first == 0:
			first = holder
		}
	}
	switch {
	case free < 0:
		return sale.Answer{Verdict: sale.AlreadyBought, Order: first}
	case m.stock <= 0:
		return sale.Answer{Verdict: sale.SoldOut}
	case m.v.MaxInFlight > 0 && int64(len(m.marks)) >= m.v.MaxInFlight:
		return sale.Answer{Verdict: sale.Crowded}
	}
	r := nth(c.Reservation, free)
	m.stock--
	m.holds[unit(r)], m.marks[r.OrderID] = r.OrderID, r
	delete(m.counted, r.OrderID)
	if c.Key != "" {
		m.keys[c.UserID+"/"+c.Key] = r.OrderID
	}
	return admitted(r.OrderID, free)
}

// most is what the stock can be at most, since more buyers may be known than
// there are units.
func (m *model) most() int64 { return max(0, m.v.Stock-int64(len(m.holds))) }

func (m *model) settle(r sale.Reservation) {
	delete(m.marks, r.OrderID)
	if m.holds[unit(r)] != r.OrderID {
		m.holds[unit(r)] = r.OrderID
		m.stock = min(m.stock, m.most())
	}
}

func (m *model) release(r sale.Reservation) bool {
	delete(m.marks, r.OrderID)
	if m.holds[unit(r)] != r.OrderID {
		return false
	}
	delete(m.holds, unit(r))
	m.stock = min(m.stock+1, m.most())
	return true
}

func (m *model) withdraw(r sale.Reservation) (kept bool) {
	if m.holds[unit(r)] != r.OrderID {
		return false
	}
	if _, marked := m.marks[r.OrderID]; !marked || m.counted[r.OrderID] {
		return true
	}
	m.release(r)
	maps.DeleteFunc(m.keys, func(_ string, order sale.ID) bool { return order == r.OrderID })
	return false
}

// Whatever is asked of a gate, in any order, it answers like the model.
func checkModel(t *testing.T, g sale.Gate) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{
			v: open(int64(rapid.IntRange(1, 5).Draw(t, "stock")), func(v *sale.Voucher) {
				v.PerUser = rapid.IntRange(1, 3).Draw(t, "perUser")
				v.MaxInFlight = int64(rapid.IntRange(0, 4).Draw(t, "maxInFlight"))
			}),
			holds: map[string]sale.ID{}, marks: map[sale.ID]sale.Reservation{}, keys: map[string]sale.ID{}, counted: map[sale.ID]bool{},
		}
		m.stock = m.v.Stock
		if ok, err := g.Load(t.Context(), m.v); err != nil || !ok {
			t.Fatalf("load: got %v, %v", ok, err)
		}
		some := func(t *rapid.T) sale.Reservation {
			order := rapid.IntRange(1, 12).Draw(t, "order")
			// An order is of one buyer for ever.
			r := reservation(m.v, sale.ID(order), fmt.Sprint("u", order%3))
			r.AtMillis = 1
			return nth(r, rapid.IntRange(0, m.v.PerUser-1).Draw(t, "nth"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"click": func(t *rapid.T) {
				c := sale.Click{Reservation: some(t), Key: rapid.SampledFrom([]string{"", "", "k", "l"}).Draw(t, "key"), Again: rapid.Bool().Draw(t, "again")}
				if _, waits := m.marks[c.OrderID]; waits && m.holds[unit(m.marks[c.OrderID])] != c.OrderID {
					t.Skip("the order lost its unit to one that was confirmed, and is about to fail")
				}
				got, err := g.Click(t.Context(), c)
				got.Queued = false
				if err == nil && got.FromMemory {
					if m.stock > 0 || got.Verdict != sale.SoldOut {
						t.Fatalf("click %+v: got %+v from memory with %d units left", c, got, m.stock)
					}
					return
				}
				if want := m.click(c); err != nil || got != want {
					t.Fatalf("click %+v: got %+v, %v, want %+v", c, got, err, want)
				}
			},
			"settle": func(t *rapid.T) {
				r := some(t)
				m.settle(r)
				if err := g.Settle(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			},
			"release": func(t *rapid.T) {
				r := some(t)
				if got, err := g.Release(t.Context(), r); err != nil || got != m.release(r) {
					t.Fatalf("release %+v: got %v, %v", r, got, err)
				}
			},
			"withdraw": func(t *rapid.T) {
				r := some(t)
				if kept, err := g.Withdraw(t.Context(), r); err != nil || kept != m.withdraw(r) {
					t.Fatalf("withdraw %+v: got kept %v, %v", r, kept, err)
				}
			},
			"": func(t *rapid.T) {
				left, _, err := g.Left(t.Context(), m.v.ID)
				if err != nil || left != m.stock {
					t.Fatalf("got %d left, %v, want %d", left, err, m.stock)
				}
				for order := sale.ID(1); order <= 12; order++ {
					got, marked, err := g.Find(t.Context(), order, m.v.ID)
					if want, ok := m.marks[order]; err != nil || marked != ok || got != want {
						t.Fatalf("mark of order %v: got %+v, %v, %v, want %+v, %v", order, got, marked, err, want, ok)
					}
				}
			},
		})
	})
}

func TestTheGatesAnswerLikeTheModel(t *testing.T) {
	t.Run("memory", func(t *testing.T) { checkModel(t, admission.NewMemory(nil)) })
	t.Run("redis", func(t *testing.T) {
		g, _ := gate(t)
		checkModel(t, g)
	})
}
