package admission_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"queuelab/app/admission"
	"queuelab/app/sale"
)

// audited is a gate that can be read as a whole.
type audited interface {
	sale.Gate
	sale.Auditor
}

func wantBook(t *testing.T, g audited, v sale.Voucher, want sale.Book) {
	t.Helper()
	got, err := g.Book(t.Context(), v.ID)
	if d := gocmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("book (-want +got):\n%s%v", d, err)
	}
}

func byOrder(a, b sale.Reservation) int { return cmp.Compare(a.OrderID, b.OrderID) }

var auditCases = map[string]func(*testing.T, audited){
	"a voucher that is not loaded has an empty book": func(t *testing.T, g audited) {
		wantBook(t, g, open(1, nil), sale.Book{})
	},
	"every buyer and every mark is read": func(t *testing.T, g audited) {
		const n = 1500 // several pages
		v := open(2*n, func(v *sale.Voucher) { v.PerUser = 2 })
		load(t, g, v)
		var want []sale.Reservation
		for i := range n {
			r := reservation(v, sale.ID(i+1), fmt.Sprintf("u%d", i/2))
			r.Nth = i % 2
			admit(t, g, r, sale.Admitted, r.OrderID)
			want = append(want, r)
		}
		if err := g.Settle(t.Context(), want[:100]...); err != nil {
			t.Fatal(err)
		}
		wantBook(t, g, v, sale.Book{Loaded: true, Units: 2 * n, Left: n, Buyers: n, Marks: n - 100})
		var buyers, marked []sale.Reservation
		for cursor, first := uint64(0), true; first || cursor != 0; first = false {
			hs, next, err := g.Holders(t.Context(), v.ID, cursor)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range hs {
				buyers = append(buyers, h.Reservation)
			}
			cursor = next
		}
		for cursor, first := uint64(0), true; first || cursor != 0; first = false {
			ms, next, err := g.Marked(t.Context(), v.ID, cursor)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range ms {
				if m.Unread != nil || m.Age < -time.Minute || m.Age > time.Minute {
					t.Fatalf("got mark %+v, want one that was just set", m)
				}
				marked = append(marked, m.Reservation)
			}
			cursor = next
		}
		slices.SortFunc(buyers, byOrder)
		slices.SortFunc(marked, byOrder)
		if d := gocmp.Diff(want[100:], slices.Compact(marked)); d != "" {
			t.Errorf("marks (-want +got):\n%s", d)
		}
		for i := range want {
			want[i].AtMillis = 0 // the gate does not keep it
		}
		if d := gocmp.Diff(want, slices.Compact(buyers)); d != "" {
			t.Errorf("buyers (-want +got):\n%s", d)
		}
	},
	"holdings tell who has a unit and what is marked": func(t *testing.T, g audited) {
		v := open(9, func(v *sale.Voucher) { v.PerUser = 2 })
		load(t, g, v)
		a, b := reservation(v, 9007199254740993, "u"), reservation(v, 2, "u")
		b.Nth = 1
		admit(t, g, a, sale.Admitted, a.OrderID)
		admit(t, g, b, sale.Admitted, b.OrderID)
		if err := g.Settle(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		other, nobody := reservation(v, 3, "u"), reservation(v, 4, "nobody")
		got, err := g.Holdings(t.Context(), a, b, other, nobody)
		want := []sale.Holding{{Holder: a.OrderID, Marked: true}, {Holder: 2}, {Holder: a.OrderID}, {}}
		if d := gocmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("holdings (-want +got):\n%s%v", d, err)
		}
		if got, err := g.Holdings(t.Context()); err != nil || len(got) != 0 {
			t.Errorf("got %v, %v, want nothing about nothing", got, err)
		}
	},
	"units are changed by what they are off": func(t *testing.T, g audited) {
		v := open(9, func(v *sale.Voucher) { v.Left = 5 }) // as if four orders were known to the database
		load(t, g, v)
		admit(t, g, reservation(v, 1, "u"), sale.Admitted, 1)
		for _, step := range []struct{ most, change, left int64 }{{6, 2, 6}, {6, 0, 6}, {3, 0, 6}, {100, 2, 8}, {100, 0, 8}} {
			got, err := g.Level(t.Context(), v.ID, v.Stock, step.most)
			if err != nil || got != step.change {
				t.Errorf("at most %d: got a change of %d, %v, want %d", step.most, got, err, step.change)
			}
			wantLeft(t, g, v, step.left)
		}
		if err := g.Restore(t.Context(), reservation(v, 2, "v"), reservation(v, 3, "w")); err != nil {
			t.Fatal(err)
		}
		if got, err := g.Level(t.Context(), v.ID, v.Stock, 100); err != nil || got != -2 {
			t.Errorf("got a change of %d, %v, want -2", got, err)
		}
		wantBook(t, g, v, sale.Book{Loaded: true, Units: 9, Left: 6, Buyers: 3, Marks: 1})
	},
	"units that differ are set before those left are corrected": func(t *testing.T, g audited) {
		v := open(25, nil) // and there are 40
		load(t, g, v)
		for i := range 20 {
			r := reservation(v, sale.ID(i+1), fmt.Sprint("u", i))
			admit(t, g, r, sale.Admitted, r.OrderID)
		}
		if got, err := g.Level(t.Context(), v.ID, 40, 20); err != nil || got != 15 {
			t.Errorf("got a change of %d, %v, want the 15 that were held back", got, err)
		}
		wantBook(t, g, v, sale.Book{Loaded: true, Units: 40, Left: 20, Buyers: 20, Marks: 20})
		if got, err := g.Level(t.Context(), v.ID, 22, 2); err != nil || got != -18 {
			t.Errorf("got a change of %d, %v, want -18", got, err)
		}
		wantBook(t, g, v, sale.Book{Loaded: true, Units: 22, Left: 2, Buyers: 20, Marks: 20})
	},
	"more buyers than units leave none": func(t *testing.T, g audited) {
		v := open(1, nil)
		load(t, g, v)
		if err := g.Restore(t.Context(), reservation(v, 2, "v"), reservation(v, 3, "w")); err != nil {
			t.Fatal(err)
		}
		if got, err := g.Level(t.Context(), v.ID, v.Stock, 100); err != nil || got != -1 {
			t.Errorf("got a change of %d, %v, want -1", got, err)
		}
		b, err := g.Book(t.Context(), v.ID)
		if err != nil || b.Left != 0 || b.Off() != 0 {
			t.Errorf("got %+v, %v, want none left and nothing off", b, err)
		}
	},
	"nothing is changed at a voucher that is not loaded": func(t *testing.T, g audited) {
		v := open(1, nil)
		if n, err := g.Level(t.Context(), v.ID, v.Stock, 9); err != nil || n != 0 {
			t.Errorf("got %d, %v, want no change", n, err)
		}
		if n, err := g.Index(t.Context(), v.ID, 1, 2); err != nil || n != 0 {
			t.Errorf("got %d, %v, want nothing indexed", n, err)
		}
		wantBook(t, g, v, sale.Book{})
	},
}

func TestAGateCanBeRead(t *testing.T) {
	gates := map[string]func(*testing.T) audited{
		"memory":  func(*testing.T) audited { return admission.NewMemory(nil) },
		"redis":   func(t *testing.T) audited { g, _ := gate(t); return g },
		"cluster": func(t *testing.T) audited { return admission.NewRedis(cluster(t)) },
	}
	for kind, open := range gates {
		t.Run(kind, func(t *testing.T) {
			g := open(t)
			for name, run := range auditCases {
				t.Run(name, func(t *testing.T) { run(t, g) })
			}
		})
	}
}

func TestAMarkThatFellOutOfTheIndexIsFoundAgain(t *testing.T) {
	g, c := gate(t)
	v := open(2, nil)
	load(t, g, v)
	r := reservation(v, 7, "u")
	admit(t, g, r, sale.Admitted, 7)
	due := fmt.Sprintf("seckill:{%s}:due", v.ID)
	if n, err := c.ZRem(t.Context(), due, "7").Result(); err != nil || n != 1 {
		t.Fatalf("got %d, %v, want the index without the order", n, err)
	}
	if rs, err := g.Stale(t.Context(), v.ID, 0, 9); err != nil || len(rs) != 0 {
		t.Fatalf("got %v, %v, want a rescan that knows nothing", rs, err)
	}
	for _, want := range []int64{1, 0} {
		if n, err := g.Index(t.Context(), v.ID, 7, 8); err != nil || n != want {
			t.Errorf("got %d, %v, want %d", n, err, want)
		}
	}
	if rs, err := g.Stale(t.Context(), v.ID, 0, 9); err != nil || len(rs) != 1 || rs[0] != r {
		t.Errorf("got %v, %v, want the order", rs, err)
	}
}

func TestAMarkThatNobodyCanReadIsTold(t *testing.T) {
	g, c := gate(t)
	v := open(2, nil)
	load(t, g, v)
	if err := c.HSet(t.Context(), fmt.Sprintf("seckill:{%s}:marks", v.ID), "7", "123|{", "8", "no", "9", `5|{"orderId":"1","voucherId":"1","userId":"u","at":1}`).Err(); err != nil {
		t.Fatal(err)
	}
	ms, _, err := g.Marked(t.Context(), v.ID, 0)
	if err != nil || len(ms) != 3 {
		t.Fatalf("got %v, %v, want three marks", ms, err)
	}
	for _, m := range ms {
		if m.Unread == nil || m.VoucherID != v.ID || m.OrderID < 7 || m.OrderID > 9 {
			t.Errorf("got %+v, want a mark that cannot be read", m)
		}
	}
}
