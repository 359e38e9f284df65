package admission_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/app/sale"
	"queuelab/bench/broker/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

var nextVoucher atomic.Int64

// open makes a voucher that is on sale now; change may alter it.
func open(stock int64, change func(*sale.Voucher)) sale.Voucher {
	now := time.Now()
	v := sale.Voucher{ID: sale.ID(nextVoucher.Add(1)), Stock: stock, Left: stock, Begin: now.Add(-time.Hour), End: now.Add(time.Hour)}
	if change != nil {
		change(&v)
	}
	return v
}

func load(t *testing.T, g sale.Gate, v sale.Voucher) {
	t.Helper()
	if ok, err := g.Load(t.Context(), v); err != nil || !ok {
		t.Fatalf("load: got %v, %v, want true", ok, err)
	}
}

func reservation(v sale.Voucher, order sale.ID, user string) sale.Reservation {
	return sale.Reservation{OrderID: order, VoucherID: v.ID, UserID: user, AtMillis: time.Now().UnixMilli()}
}

// admit clicks and wants a verdict.
func admit(t *testing.T, g sale.Gate, r sale.Reservation, want sale.Verdict, wantHolder sale.ID) {
	t.Helper()
	got, holder, err := g.Admit(t.Context(), r)
	if err != nil {
		t.Fatalf("admit: %v", err)
	}
	if got != want || holder != wantHolder {
		t.Fatalf("got %v, order %v, want %v, order %v", got, holder, want, wantHolder)
	}
}

func wantLeft(t *testing.T, g sale.Gate, v sale.Voucher, want int64) {
	t.Helper()
	got, ok, err := g.Left(t.Context(), v.ID)
	if err != nil || !ok || got != want {
		t.Errorf("got %d units left (loaded %v, %v), want %d", got, ok, err, want)
	}
}

func wantMark(t *testing.T, g sale.Gate, r sale.Reservation, want bool) {
	t.Helper()
	got, ok, err := g.Find(t.Context(), r.OrderID, 999999, r.VoucherID)
	if err != nil || ok != want {
		t.Fatalf("mark of order %v: got %v, %v, want %v", r.OrderID, ok, err, want)
	}
	if want {
		if d := cmp.Diff(r, got); d != "" {
			t.Errorf("mark (-want +got):\n%s", d)
		}
	}
}

// eventually asks until the answer is yes.
func eventually(t *testing.T, what string, yes func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !yes() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 10 s", what)
		}
		time.Sleep(5 * time.Millisecond) // the clock in question is that of Redis
	}
}

var gateCases = map[string]func(*testing.T, sale.Gate){
	"many orders are found at once, each with its voucher": func(t *testing.T, g sale.Gate) {
		want := map[sale.ID]sale.Reservation{}
		asked := []sale.ID{700} // never was
		var vouchers []sale.ID
		for i := range sale.ID(300) { // more than one round trip brings
			v := open(2, nil)
			vouchers = append(vouchers, v.ID)
			if i%99 != 0 {
				continue
			}
			load(t, g, v)
			for _, r := range []sale.Reservation{reservation(v, 800+i, "u"), reservation(v, 801+i, "w")} {
				admit(t, g, r, sale.Admitted, r.OrderID)
				asked = append(asked, r.OrderID)
				want[r.OrderID] = r
			}
		}
		got, err := g.FindAll(t.Context(), asked, vouchers...)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("got %v (-want +got):\n%s", err, d)
		}
		if got, err := g.FindAll(t.Context(), nil, vouchers...); len(got) != 0 || err != nil {
			t.Errorf("got %v, %v for no orders", got, err)
		}
	},
	"a voucher that is not loaded sells nothing": func(t *testing.T, g sale.Gate) {
		v := open(1, nil)
		r := reservation(v, 1, "u")
		admit(t, g, r, sale.NotLoaded, 0)
		wantMark(t, g, r, false)
		if _, ok, err := g.Left(t.Context(), v.ID); ok || err != nil {
			t.Errorf("got loaded %v, %v, want false", ok, err)
		}
	},
	"a confirmed order that the gate forgot takes its unit": func(t *testing.T, g sale.Gate) {
		v := open(2, nil)
		load(t, g, v) // as after a loss, with the order in flight
		lost := reservation(v, 1, "u")
		for range 2 {
			if err := g.Settle(t.Context(), lost); err != nil {
				t.Fatal(err)
			}
			wantLeft(t, g, v, 1)
		}
		admit(t, g, reservation(v, 2, "u"), sale.AlreadyBought, 1)
	},
	"where more buyers are known than there are units a unit that comes back is nobody's": func(t *testing.T, g sale.Gate) {
		v := open(2, nil)
		load(t, g, v)
		a, b, late, lost := reservation(v, 1, "a"), reservation(v, 2, "b"), reservation(v, 3, "c"), reservation(v, 4, "d")
		admit(t, g, a, sale.Admitted, 1)
		admit(t, g, b, sale.Admitted, 2)
		if err := g.Settle(t.Context(), late, lost); err != nil {
			t.Fatal(err)
		}
		wantLeft(t, g, v, 0)
		if ok, err := g.Release(t.Context(), late); err != nil || !ok {
			t.Fatalf("release: got %v, %v, want true", ok, err)
		}
		wantLeft(t, g, v, 0)
		if kept, err := g.Withdraw(t.Context(), b); err != nil || kept {
			t.Fatalf("withdraw: got %v, %v, want it given back", kept, err)
		}
		wantLeft(t, g, v, 0)
		admit(t, g, reservation(v, 5, "e"), sale.SoldOut, 0)
		if ok, err := g.Release(t.Context(), lost); err != nil || !ok {
			t.Fatalf("release: got %v, %v, want true", ok, err)
		}
		wantLeft(t, g, v, 1)
	},
	"a confirmed order whose unit was given back takes it again": func(t *testing.T, g sale.Gate) {
		v := open(2, nil)
		load(t, g, v)
		r := reservation(v, 1, "u")
		admit(t, g, r, sale.Admitted, 1)
		if ok, err := g.Release(t.Context(), r); !ok || err != nil {
			t.Fatalf("release: got %v, %v, want true", ok, err)
		}
		if err := g.Settle(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		wantLeft(t, g, v, 1)
	},
	"a confirmed order takes the unit of the same buyer's next one": func(t *testing.T, g sale.Gate) {
		v := open(2, nil)
		load(t, g, v)
		second := reservation(v, 2, "u")
		admit(t, g, second, sale.Admitted, 2)
		if err := g.Settle(t.Context(), reservation(v, 1, "u")); err != nil {
			t.Fatal(err)
		}
		// It fails in the database, where the first one stands.
		if ok, err := g.Release(t.Context(), second); ok || err != nil {
			t.Fatalf("release: got %v, %v, want false", ok, err)
		}
		wantLeft(t, g, v, 1)
		wantMark(t, g, second, false)
	},
	"a confirmed order that was counted when the gate was loaded takes nothing more": func(t *testing.T, g sale.Gate) {
		v := open(3, func(v *sale.Voucher) { v.Left = 2 })
		load(t, g, v)
		if err := g.Settle(t.Context(), reservation(v, 1, "u")); err != nil {
			t.Fatal(err)
		}
		wantLeft(t, g, v, 2)
	},
	"a withdrawn order gives its unit back once": func(t *testing.T, g sale.Gate) {
		v := open(2, nil)
		load(t, g, v)
		r := reservation(v, 1, "u")
		admit(t, g, r, sale.Admitted, 1)
		for range 2 {
			if kept, err := g.Withdraw(t.Context(), r); kept || err != nil {
				t.Fatalf("withdraw: got %v, %v, want false", kept, err)
			}
			wantLeft(t, g, v, 2)
		}
		wantMark(t, g, r, false)
	},
	"an order that a rescan took up is not withdrawn": func(t *testing.T, g sale.Gate) {
		v := open(2, nil)
		load(t, g, v)
		r := reservation(v, 1, "u")
		admit(t, g, r, sale.Admitted, 1)
		eventually(t, "the mark is due", func() bool {
			rs, err := g.Stale(t.Context(), v.ID, 5*time.Millisecond, 10)
			return err == nil && len(rs) == 1
		})
		wantKept := func() {
			if kept, err := g.Withdraw(t.Context(), r); !kept || err != nil {
				t.Fatalf("withdraw: got %v, %v, want true", kept, err)
			}
			wantLeft(t, g, v, 1)
		}
		wantKept()
		wantMark(t, g, r, true)
		if err := g.Settle(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		wantKept() // it is confirmed by now
	},
	"before the window it has not started": func(t *testing.T, g sale.Gate) {
		v := open(1, func(v *sale.Voucher) { v.Begin = time.Now().Add(time.Minute) })
		load(t, g, v)
		admit(t, g, reservation(v, 1, "u"), sale.NotStarted, 0)
		wantLeft(t, g, v, 1)
	},
	"after the window it has ended": func(t *testing.T, g sale.Gate) {
		v := open(1, func(v *sale.Voucher) { v.End = time.Now().Add(-time.Second) })
		load(t, g, v)
		admit(t, g, reservation(v, 1, "u"), sale.HasEnded, 0)
		wantLeft(t, g, v, 1)
	},
	"times are compared as numbers and not as text": func(t *testing.T, g sale.Gate) {
		// 999999999999 ms is in 2001, and greater than today as text.
		v := open(1, func(v *sale.Voucher) { v.Begin = time.UnixMilli(999999999999) })
		load(t, g, v)
		admit(t, g, reservation(v, 1, "u"), sale.Admitted, 1)
	},
	"stock 3 and 10 buyers sells 3": func(t *testing.T, g sale.Gate) {
		v := open(3, nil)
		load(t, g, v)
		for i := range 10 {
			r := reservation(v, sale.ID(i+1), fmt.Sprint("u", i))
			if i < 3 {
				admit(t, g, r, sale.Admitted, r.OrderID)
			} else {
				admit(t, g, r, sale.SoldOut, 0)
			}
		}
		wantLeft(t, g, v, 0)
	},
	"500 at once sell stock 10 exactly": func(t *testing.T, g sale.Gate) {
		v := open(10, nil)
		load(t, g, v)
		var sold atomic.Int64
		var wg sync.WaitGroup
		for i := range 500 {
			wg.Go(func() {
				got, _, err := g.Admit(context.Background(), reservation(v, sale.ID(i+1), fmt.Sprint("u", i)))
				switch {
				case err != nil:
					t.Error(err)
				case got == sale.Admitted:
					sold.Add(1)
				case got != sale.SoldOut:
					t.Errorf("got %v", got)
				}
			})
		}
		wg.Wait()
		if sold.Load() != 10 {
			t.Errorf("got %d sold, want 10", sold.Load())
		}
		wantLeft(t, g, v, 0)
	},
	"ten clicks of one buyer take one unit": func(t *testing.T, g sale.Gate) {
		v := open(10, nil)
		load(t, g, v)
		admit(t, g, reservation(v, 1, "u"), sale.Admitted, 1)
		for i := 2; i <= 10; i++ {
			admit(t, g, reservation(v, sale.ID(i), "u"), sale.AlreadyBought, 1)
		}
		wantLeft(t, g, v, 9)
	},
	"the same click again gets the first answer and takes nothing": func(t *testing.T, g sale.Gate) {
		v := open(1, nil)
		load(t, g, v)
		r := reservation(v, 1, "u")
		for range 3 {
			admit(t, g, r, sale.Admitted, 1)
		}
		wantLeft(t, g, v, 0)
		wantMark(t, g, r, true)
	},
	"a large id keeps its last digits": func(t *testing.T, g sale.Gate) {
		const big = sale.ID(9007199254740993)
		v := open(1, nil)
		load(t, g, v)
		r := reservation(v, big, "9007199254740993")
		admit(t, g, r, sale.Admitted, big)
		wantMark(t, g, r, true)
		admit(t, g, reservation(v, big+1, r.UserID), sale.AlreadyBought, big)
	},
	"one buyer may buy two different vouchers": func(t *testing.T, g sale.Gate) {
		a, b := open(1, nil), open(1, nil)
		load(t, g, a)
		load(t, g, b)
		admit(t, g, reservation(a, 1, "u"), sale.Admitted, 1)
		admit(t, g, reservation(b, 2, "u"), sale.Admitted, 2)
	},
	"released twice is given back once": func(t *testing.T, g sale.Gate) {
		v := open(5, nil)
		load(t, g, v)
		r := reservation(v, 1, "u")
		admit(t, g, r, sale.Admitted, 1)
		admit(t, g, reservation(v, 2, "other"), sale.Admitted, 2)
		for i, want := range []bool{true, false} {
			if got, err := g.Release(t.Context(), r); err != nil || got != want {
				t.Errorf("release %d: got %v, %v, want %v", i+1, got, err, want)
			}
		}
		wantLeft(t, g, v, 4)
		wantMark(t, g, r, false)
		admit(t, g, reservation(v, 3, "u"), sale.Admitted, 3)
	},
	"an order that does not hold the unit cannot release it": func(t *testing.T, g sale.Gate) {
		v := open(5, nil)
		load(t, g, v)
		admit(t, g, reservation(v, 1, "u"), sale.Admitted, 1)
		if got, err := g.Release(t.Context(), reservation(v, 2, "u")); err != nil || got {
			t.Errorf("got %v, %v, want false", got, err)
		}
		wantLeft(t, g, v, 4)
		admit(t, g, reservation(v, 3, "u"), sale.AlreadyBought, 1)
	},
	"a settled order loses its mark and keeps its unit": func(t *testing.T, g sale.Gate) {
		v := open(5, nil)
		load(t, g, v)
		r := reservation(v, 1, "u")
		admit(t, g, r, sale.Admitted, 1)
		for range 2 {
			if err := g.Settle(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		wantMark(t, g, r, false)
		wantLeft(t, g, v, 4)
		admit(t, g, reservation(v, 2, "u"), sale.AlreadyBought, 1)
		if rs, err := g.Stale(t.Context(), v.ID, 0, 10); err != nil || len(rs) != 0 {
			t.Errorf("got %v, %v due, want none", rs, err)
		}
	},
	"a mark is due once it is old enough, and again later": func(t *testing.T, g sale.Gate) {
		v := open(5, nil)
		load(t, g, v)
		want := reservation(v, 1, "u")
		admit(t, g, want, sale.Admitted, 1)
		due := func(age time.Duration) []sale.Reservation {
			t.Helper()
			rs, err := g.Stale(t.Context(), v.ID, age, 10)
			if err != nil {
				t.Fatal(err)
			}
			return rs
		}
		if got := due(time.Hour); len(got) != 0 {
			t.Fatalf("got %v due at once, want none", got)
		}
		for range 2 {
			var got []sale.Reservation
			eventually(t, "due", func() bool { got = due(20 * time.Millisecond); return len(got) > 0 })
			if d := cmp.Diff([]sale.Reservation{want}, got); d != "" {
				t.Fatalf("due (-want +got):\n%s", d)
			}
			if got := due(time.Hour); len(got) != 0 {
				t.Fatalf("got %v due again at once, want none", got)
			}
		}
		wantMark(t, g, want, true)
	},
	"no more marks are looked at than asked for": func(t *testing.T, g sale.Gate) {
		v := open(5, nil)
		load(t, g, v)
		for i := range 5 {
			admit(t, g, reservation(v, sale.ID(i+1), fmt.Sprint("u", i)), sale.Admitted, sale.ID(i+1))
		}
		seen := map[sale.ID]int{}
		eventually(t, "all five were due", func() bool {
			rs, err := g.Stale(t.Context(), v.ID, time.Millisecond, 2)
			if err != nil || len(rs) > 2 {
				t.Fatalf("got %d, %v, want at most 2", len(rs), err)
			}
			for _, r := range rs {
				seen[r.OrderID]++
			}
			return len(seen) == 5
		})
	},
	"a voucher that is loaded is not loaded again": func(t *testing.T, g sale.Gate) {
		v := open(5, nil)
		load(t, g, v)
		admit(t, g, reservation(v, 1, "u"), sale.Admitted, 1)
		if got, err := g.Load(t.Context(), v); err != nil || got {
			t.Errorf("got %v, %v, want false", got, err)
		}
		wantLeft(t, g, v, 4)
	},
	"restored buyers are counted and cannot buy again": func(t *testing.T, g sale.Gate) {
		v := open(5, func(v *sale.Voucher) { v.Left = 3 })
		for range 2 {
			if err := g.Restore(t.Context(), reservation(v, 1, "a"), reservation(v, 2, "b")); err != nil {
				t.Fatal(err)
			}
		}
		load(t, g, v)
		wantLeft(t, g, v, 3)
		admit(t, g, reservation(v, 3, "a"), sale.AlreadyBought, 1)
	},
	"what is in flight is not loaded again": func(t *testing.T, g sale.Gate) {
		// The database has 4 left, and does not know yet of the two in flight.
		v := open(5, func(v *sale.Voucher) { v.Left = 4 })
		if err := g.Restore(t.Context(), reservation(v, 1, "a"), reservation(v, 2, "b"), reservation(v, 3, "c")); err != nil {
			t.Fatal(err)
		}
		load(t, g, v)
		wantLeft(t, g, v, 2)
	},
	"no more is loaded than the database has": func(t *testing.T, g sale.Gate) {
		v := open(5, func(v *sale.Voucher) { v.Left = 1 })
		load(t, g, v)
		wantLeft(t, g, v, 1)
	},
	"more buyers than stock load nothing, not less": func(t *testing.T, g sale.Gate) {
		v := open(1, nil)
		if err := g.Restore(t.Context(), reservation(v, 1, "a"), reservation(v, 2, "b")); err != nil {
			t.Fatal(err)
		}
		load(t, g, v)
		wantLeft(t, g, v, 0)
		admit(t, g, reservation(v, 3, "c"), sale.SoldOut, 0)
	},
	"a buyer who is restored after the load has a unit once the order is settled": func(t *testing.T, g sale.Gate) {
		v := open(1, nil)
		load(t, g, v)
		r := reservation(v, 1, "a") // which another loader read from the database
		if err := g.Restore(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if err := g.Settle(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		wantLeft(t, g, v, 0)
		admit(t, g, reservation(v, 2, "b"), sale.SoldOut, 0)
	},
	"a release before the load is counted by the load": func(t *testing.T, g sale.Gate) {
		v := open(2, nil)
		if err := g.Restore(t.Context(), reservation(v, 1, "a")); err != nil {
			t.Fatal(err)
		}
		if ok, err := g.Release(t.Context(), reservation(v, 1, "a")); err != nil || !ok {
			t.Fatalf("got %v, %v, want true", ok, err)
		}
		load(t, g, v)
		wantLeft(t, g, v, 2)
	},
	"a check takes nothing": func(t *testing.T, g sale.Gate) {
		if err := g.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
	},
}
