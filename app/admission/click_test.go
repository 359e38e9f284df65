package admission_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"queuelab/app/admission"
	"queuelab/app/sale"
)

// click clicks and wants an answer.
func click(t *testing.T, g sale.Gate, r sale.Reservation, key string, want sale.Answer) {
	t.Helper()
	got, err := g.Click(t.Context(), sale.Click{Reservation: r, Key: key})
	if err != nil {
		t.Fatalf("click: %v", err)
	}
	got.Queued = false // as the gate was opened
	if got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

func admitted(order sale.ID, nth int) sale.Answer {
	return sale.Answer{Verdict: sale.Admitted, Order: order, Nth: nth}
}

func nth(r sale.Reservation, n int) sale.Reservation {
	r.Nth = n
	return r
}

// several is what ten buyers with many clicks each get at once: no more units
// than each may have, and every unit by one order.
func several(t *testing.T, g sale.Gate, each int, key func(buyer, click int) string) map[string]sale.ID {
	v := open(1000, func(v *sale.Voucher) { v.PerUser = each })
	load(t, g, v)
	var mu sync.Mutex
	holders := map[string]sale.ID{}
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			buyer := i % 10
			r := reservation(v, sale.ID(i+1), fmt.Sprint("u", buyer))
			a, err := g.Click(context.Background(), sale.Click{Reservation: r, Key: key(buyer, i/10)})
			switch {
			case err != nil:
				t.Error(err)
			case a.Verdict == sale.Admitted:
				mu.Lock()
				defer mu.Unlock()
				unit := fmt.Sprint(r.UserID, "#", a.Nth)
				if h, ok := holders[unit]; ok && h != a.Order {
					t.Errorf("unit %s is held by orders %v and %v", unit, h, a.Order)
				}
				holders[unit] = a.Order
			case a.Verdict != sale.AlreadyBought:
				t.Errorf("got %+v", a)
			}
		})
	}
	wg.Wait()
	wantLeft(t, g, v, 1000-int64(len(holders)))
	return holders
}

var clickCases = map[string]func(*testing.T, sale.Gate){
	"a buyer gets as many units as the voucher allows, each once": func(t *testing.T, g sale.Gate) {
		v := open(9, func(v *sale.Voucher) { v.PerUser = 3 })
		load(t, g, v)
		for i := range 3 {
			r := reservation(v, sale.ID(i+1), "u")
			click(t, g, r, "", admitted(r.OrderID, i))
			click(t, g, r, "", admitted(r.OrderID, i)) // the same click again
			wantMark(t, g, nth(r, i), true)
		}
		click(t, g, reservation(v, 4, "u"), "", sale.Answer{Verdict: sale.AlreadyBought, Order: 1})
		wantLeft(t, g, v, 6)
		if ok, err := g.Release(t.Context(), nth(reservation(v, 2, "u"), 1)); !ok || err != nil {
			t.Fatalf("release: got %v, %v, want true", ok, err)
		}
		click(t, g, reservation(v, 5, "u"), "", admitted(5, 1))
		click(t, g, reservation(v, 6, "other"), "", admitted(6, 0))
		wantLeft(t, g, v, 5)
	},
	"a confirmed second unit is settled and restored where it belongs": func(t *testing.T, g sale.Gate) {
		v := open(9, func(v *sale.Voucher) { v.PerUser = 2 })
		second := nth(reservation(v, 2, "u"), 1)
		if err := g.Restore(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		load(t, g, v)
		wantLeft(t, g, v, 8)
		if err := g.Settle(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		wantLeft(t, g, v, 8)
		click(t, g, reservation(v, 3, "u"), "", admitted(3, 0))
		click(t, g, reservation(v, 4, "u"), "", sale.Answer{Verdict: sale.AlreadyBought, Order: 3})
	},
	"ten buyers with ten clicks each at once get three units each": func(t *testing.T, g sale.Gate) {
		if got := several(t, g, 3, func(int, int) string { return "" }); len(got) != 30 {
			t.Errorf("got %d units held, want 30: %v", len(got), got)
		}
	},
	"ten clicks with one key at once are one order": func(t *testing.T, g sale.Gate) {
		if got := several(t, g, 3, func(buyer, _ int) string { return "same" }); len(got) != 10 {
			t.Errorf("got %d units held, want 10: %v", len(got), got)
		}
	},
	"sold out is said before crowded": func(t *testing.T, g sale.Gate) {
		v := open(1, func(v *sale.Voucher) { v.MaxInFlight = 1 })
		load(t, g, v)
		click(t, g, reservation(v, 1, "a"), "", admitted(1, 0))
		click(t, g, reservation(v, 2, "b"), "", sale.Answer{Verdict: sale.SoldOut})
	},
	"the same key gets the same order, and another key is another wish": func(t *testing.T, g sale.Gate) {
		v := open(9, func(v *sale.Voucher) { v.PerUser = 2 })
		load(t, g, v)
		click(t, g, reservation(v, 1, "u"), "k1", admitted(1, 0))
		click(t, g, reservation(v, 2, "u"), "k1", admitted(1, 0))
		click(t, g, reservation(v, 3, "u"), "k2", admitted(3, 1))
		click(t, g, reservation(v, 4, "u"), "k1", admitted(1, 0))
		click(t, g, reservation(v, 5, "u"), "k2", admitted(3, 0))
		for i, key := range []string{"k3", ""} {
			click(t, g, reservation(v, sale.ID(6+i), "u"), key, sale.Answer{Verdict: sale.AlreadyBought, Order: 1})
		}
		click(t, g, reservation(v, 8, "other"), "k1", admitted(8, 0))
		wantLeft(t, g, v, 6)
		wantMark(t, g, reservation(v, 2, "u"), false)
	},
	"a key keeps its order when that is closed, so that a late copy of a click buys nothing": func(t *testing.T, g sale.Gate) {
		v := open(9, nil)
		load(t, g, v)
		r := reservation(v, 1, "u")
		click(t, g, r, "k", admitted(1, 0))
		if err := g.Settle(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		click(t, g, reservation(v, 2, "u"), "k", admitted(1, 0))
		if ok, err := g.Release(t.Context(), r); !ok || err != nil {
			t.Fatalf("release: got %v, %v, want true", ok, err)
		}
		click(t, g, reservation(v, 3, "u"), "k", admitted(1, 0))
		wantLeft(t, g, v, 9)
		click(t, g, reservation(v, 4, "u"), "other", admitted(4, 0))
	},
	"a key is free again when its order is withdrawn": func(t *testing.T, g sale.Gate) {
		v := open(9, nil)
		load(t, g, v)
		click(t, g, reservation(v, 1, "u"), "k", admitted(1, 0))
		if kept, err := g.Withdraw(t.Context(), reservation(v, 1, "u")); kept || err != nil {
			t.Fatalf("withdraw: got %v, %v, want false", kept, err)
		}
		click(t, g, reservation(v, 2, "u"), "k", admitted(2, 0))
	},
	"of one buyer the last sixteen keys are kept": func(t *testing.T, g sale.Gate) {
		v := open(99, nil)
		load(t, g, v)
		for i := range sale.ID(17) {
			r := reservation(v, 1+i, "u")
			click(t, g, r, fmt.Sprint("k", i), admitted(1+i, 0))
			if ok, err := g.Release(t.Context(), r); !ok || err != nil {
				t.Fatalf("release: got %v, %v, want true", ok, err)
			}
		}
		click(t, g, reservation(v, 30, "u"), "k1", admitted(2, 0))
		click(t, g, reservation(v, 31, "u"), "k0", admitted(31, 0))
	},
	"a buyer's orders that wait are told, of all vouchers and units": func(t *testing.T, g sale.Gate) {
		v, w := open(9, func(v *sale.Voucher) { v.PerUser = 2 }), open(9, nil)
		load(t, g, v)
		load(t, g, w)
		settled := reservation(w, 3, "u")
		click(t, g, reservation(v, 1, "u"), "", admitted(1, 0))
		click(t, g, reservation(v, 2, "u"), "", admitted(2, 1))
		click(t, g, settled, "", admitted(3, 0))
		click(t, g, reservation(w, 4, "other"), "", admitted(4, 0))
		if err := g.Settle(t.Context(), settled); err != nil {
			t.Fatal(err)
		}
		rs, err := g.(sale.Waiter).Waiting(t.Context(), "u", v.ID, w.ID)
		slices.SortFunc(rs, func(a, b sale.Reservation) int { return int(a.OrderID - b.OrderID) })
		if err != nil || len(rs) != 2 || rs[0].OrderID != 1 || rs[1].OrderID != 2 || rs[1].Nth != 1 || rs[1].VoucherID != v.ID {
			t.Errorf("got %+v, %v, want orders 1 and 2", rs, err)
		}
	},
	"an order that a second click was told of is not withdrawn": func(t *testing.T, g sale.Gate) {
		v := open(9, nil)
		load(t, g, v)
		r := reservation(v, 1, "u")
		click(t, g, r, "k", admitted(1, 0))
		click(t, g, reservation(v, 2, "u"), "k", admitted(1, 0))
		if kept, err := g.Withdraw(t.Context(), r); !kept || err != nil {
			t.Fatalf("withdraw: got %v, %v, want true", kept, err)
		}
		wantMark(t, g, r, true)
		wantLeft(t, g, v, 8)
		eventually(t, "its mark is due, so that somebody publishes it", func() bool {
			rs, err := g.Stale(t.Context(), v.ID, time.Millisecond, 10)
			return err == nil && len(rs) == 1
		})
	},
	"a key is answered when the sale is over and sold out": func(t *testing.T, g sale.Gate) {
		v := open(1, nil)
		load(t, g, v)
		click(t, g, reservation(v, 1, "u"), "k", admitted(1, 0))
		click(t, g, reservation(v, 2, "v"), "", sale.Answer{Verdict: sale.SoldOut})
		click(t, g, reservation(v, 3, "u"), "k", admitted(1, 0))
	},
	"who has just bought the last unit is told so, not that it is gone": func(t *testing.T, g sale.Gate) {
		v := open(1, nil)
		load(t, g, v)
		click(t, g, reservation(v, 1, "u"), "", admitted(1, 0))
		click(t, g, reservation(v, 2, "v"), "", sale.Answer{Verdict: sale.SoldOut})
		click(t, g, reservation(v, 3, "u"), "", sale.Answer{Verdict: sale.AlreadyBought, Order: 1})
	},
	"a unit that was given back is sold at once": func(t *testing.T, g sale.Gate) {
		v := open(1, nil)
		load(t, g, v)
		r := reservation(v, 1, "u")
		for range 2 {
			click(t, g, r, "", admitted(1, 0))
			click(t, g, reservation(v, 2, "v"), "", sale.Answer{Verdict: sale.SoldOut})
			if ok, err := g.Release(t.Context(), r); !ok || err != nil {
				t.Fatalf("release: got %v, %v, want true", ok, err)
			}
			click(t, g, r, "", admitted(1, 0))
			click(t, g, reservation(v, 2, "v"), "", sale.Answer{Verdict: sale.SoldOut})
			if kept, err := g.Withdraw(t.Context(), r); kept || err != nil {
				t.Fatalf("withdraw: got %v, %v, want false", kept, err)
			}
		}
		click(t, g, reservation(v, 3, "v"), "", admitted(3, 0))
	},
	"clicks on many vouchers at once do not mix": func(t *testing.T, g sale.Gate) {
		vs := make([]sale.Voucher, 20)
		for i := range vs {
			vs[i] = open(int64(i+1), nil)
			if i%4 > 0 { // the others are not loaded
				load(t, g, vs[i])
			}
		}
		got := make([]atomic.Int64, len(vs))
		var wg sync.WaitGroup
		for i := range 30 * len(vs) {
			wg.Go(func() {
				v := vs[i%len(vs)]
				verdict, order, err := g.Admit(context.Background(), reservation(v, sale.ID(i+1), fmt.Sprint("u", i)))
				switch {
				case err != nil:
					t.Error(err)
				case verdict == sale.Admitted && order == sale.ID(i+1):
					got[i%len(vs)].Add(1)
				case verdict != sale.SoldOut && verdict != sale.NotLoaded:
					t.Errorf("click %d: got %v, order %v", i+1, verdict, order)
				}
			})
		}
		wg.Wait()
		for i := range vs {
			want := int64(i + 1)
			if i%4 == 0 {
				want = 0
			}
			if got[i].Load() != want {
				t.Errorf("voucher %d: got %d sold, want %d", i, got[i].Load(), want)
			}
		}
	},
}

// boundCases are not for several buckets, which divide the bound.
var boundCases = map[string]func(*testing.T, sale.Gate){
	"beyond the bound of orders in flight nothing is taken": func(t *testing.T, g sale.Gate) {
		v := open(9, func(v *sale.Voucher) { v.MaxInFlight = 2 })
		load(t, g, v)
		first := reservation(v, 1, "a")
		click(t, g, first, "", admitted(1, 0))
		click(t, g, reservation(v, 2, "b"), "", admitted(2, 0))
		for range 2 {
			click(t, g, reservation(v, 3, "c"), "", sale.Answer{Verdict: sale.Crowded})
		}
		wantLeft(t, g, v, 7)
		click(t, g, first, "", admitted(1, 0)) // who is in stays in
		click(t, g, reservation(v, 4, "a"), "", sale.Answer{Verdict: sale.AlreadyBought, Order: 1})
		if err := g.Settle(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		click(t, g, reservation(v, 3, "c"), "", admitted(3, 0))
		wantLeft(t, g, v, 6)
	},
	"50 at once do not get past the bound of orders in flight": func(t *testing.T, g sale.Gate) {
		v := open(1000, func(v *sale.Voucher) { v.MaxInFlight = 7 })
		load(t, g, v)
		var in atomic.Int64
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				if got, _, err := g.Admit(context.Background(), reservation(v, sale.ID(i+1), fmt.Sprint("u", i))); err != nil {
					t.Error(err)
				} else if got == sale.Admitted {
					in.Add(1)
				}
			})
		}
		wg.Wait()
		if in.Load() != 7 {
			t.Errorf("got %d in, want 7", in.Load())
		}
		wantLeft(t, g, v, 993)
	},
}

// conform runs every case on a gate.
func conform(t *testing.T, gate func() sale.Gate) {
	each(t, gate, gateCases, clickCases, boundCases)
}

func each(t *testing.T, gate func() sale.Gate, tables ...map[string]func(*testing.T, sale.Gate)) {
	for _, cases := range tables {
		for name, run := range cases {
			t.Run(name, func(t *testing.T) { run(t, gate()) })
		}
	}
}

func TestMemoryGate(t *testing.T) {
	conform(t, func() sale.Gate { return admission.NewMemory(nil) })
}

func TestRedisGate(t *testing.T) {
	g, _ := gate(t)
	conform(t, func() sale.Gate { return g })
}

// Redis refuses a script in a cluster whose keys are of two slots.
func TestClusterGate(t *testing.T) {
	c := cluster(t)
	g := admission.NewRedis(c)
	conform(t, func() sale.Gate { return g })
	t.Run("with the queue", func(t *testing.T) {
		g := admission.NewRedis(c)
		into(t, g, openQueue(t, "redis+streams://"+c.Options().Addr+"/0?queue=orders"))
		conform(t, func() sale.Gate { return g })
	})
}
