package admission_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"queuelab/app/sale"
)

// damaged is a voucher of which somebody changed keys by hand.
func damaged(t *testing.T) (g audited, c *redis.Client, v sale.Voucher, key func(string) string) {
	t.Helper()
	g, c = gate(t)
	v = open(9, nil)
	load(t, g, v)
	return g, c, v, func(what string) string { return fmt.Sprintf("seckill:{%s}:%s", v.ID, what) }
}

func dropped(t *testing.T, g audited, v sale.Voucher, want int64, scraps ...sale.Scrap) {
	t.Helper()
	if n, err := g.Drop(t.Context(), v.ID, scraps...); err != nil || n != want {
		t.Errorf("got %d dropped, %v, want %d", n, err, want)
	}
}

func TestABuyersScrapIsDroppedOnceNoOrderIsInFlight(t *testing.T) {
	g, c, v, key := damaged(t)
	r := reservation(v, 7, "a")
	admit(t, g, r, sale.Admitted, 7)
	if err := c.HSet(t.Context(), key("buyers"), "ghost", "abc", "x#y#z", "78").Err(); err != nil {
		t.Fatal(err)
	}
	hs, _, err := g.Holders(t.Context(), v.ID, 0)
	if err != nil || len(hs) != 3 {
		t.Fatalf("got %v, %v, want three holders", hs, err)
	}
	var scraps []sale.Scrap
	for _, h := range hs {
		if h.Unread != nil {
			scraps = append(scraps, *h.Unread)
		}
	}
	if len(scraps) != 2 {
		t.Fatalf("got %v, want two that cannot be read", scraps)
	}
	if _, err := g.Level(t.Context(), v.ID, v.Stock, v.Stock); err != nil {
		t.Fatal(err)
	}
	wantBook(t, g, v, sale.Book{Loaded: true, Units: 9, Left: 6, Buyers: 3, Marks: 1})
	dropped(t, g, v, 0, scraps...) // the order in flight may be that of ghost
	if err := g.Settle(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	dropped(t, g, v, 0, sale.Scrap{Name: "ghost", Text: "other"}) // it is another one meanwhile
	dropped(t, g, v, 2, scraps...)
	dropped(t, g, v, 0, scraps...)
	wantBook(t, g, v, sale.Book{Loaded: true, Units: 9, Left: 8, Buyers: 1})
}

func TestAMarkOfNoOrderIsDropped(t *testing.T) {
	g, c, v, key := damaged(t)
	admit(t, g, reservation(v, 7, "a"), sale.Admitted, 7)
	if err := errors.Join(c.HSet(t.Context(), key("marks"), "abc", "1|{}").Err(), c.ZAdd(t.Context(), key("due"), redis.Z{Score: 1, Member: "abc"}).Err()); err != nil {
		t.Fatal(err)
	}
	if p, err := g.(sale.Positioner).Position(t.Context(), reservation(v, 8, "b")); err != nil || p != 1 {
		t.Errorf("got place %d, %v, want one order before", p, err)
	}
	ms, _, err := g.Marked(t.Context(), v.ID, 0)
	if err != nil || len(ms) != 2 {
		t.Fatalf("got %v, %v, want two marks", ms, err)
	}
	for _, m := range ms {
		if m.Unread != nil {
			dropped(t, g, v, 1, *m.Unread)
		}
	}
	wantBook(t, g, v, sale.Book{Loaded: true, Units: 9, Left: 8, Buyers: 1, Marks: 1})
	if n, err := c.ZCard(t.Context(), key("due")).Result(); err != nil || n != 1 {
		t.Errorf("got %d in the index, %v, want 1", n, err)
	}
}

func TestAKeyOfAnotherTypeIsToldAndDropped(t *testing.T) {
	for _, what := range []string{"sale", "buyers", "marks", "due", "keys"} {
		t.Run(what, func(t *testing.T) {
			g, c, v, key := damaged(t)
			r := reservation(v, 7, "a")
			admit(t, g, r, sale.Admitted, 7)
			if err := g.Settle(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if err := c.Set(t.Context(), key(what), "str", 0).Err(); err != nil {
				t.Fatal(err)
			}
			if _, err := g.Book(t.Context(), v.ID); what != "due" && what != "keys" && !errors.Is(err, sale.ErrUnreadable) {
				t.Errorf("got %v, want that nobody can read it", err)
			}
			dropped(t, g, v, 1)
			lost := what == "sale" || what == "buyers"
			if lost {
				// As after a Redis that lost its keys.
				admit(t, g, reservation(v, 8, "b"), sale.NotLoaded, 0)
				if err := g.Restore(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				load(t, g, v)
			}
			admit(t, g, reservation(v, 8, "b"), sale.Admitted, 8)
			wantBook(t, g, v, sale.Book{Loaded: true, Units: 9, Left: 7, Buyers: 2, Marks: 1})
		})
	}
}

func TestANumberThatNobodyCanReadIsAVoucherToBeLoaded(t *testing.T) {
	for _, field := range []string{"stock", "units", "begin", "end"} {
		t.Run(field, func(t *testing.T) {
			g, c, v, key := damaged(t)
			admit(t, g, reservation(v, 7, "a"), sale.Admitted, 7)
			if err := c.HSet(t.Context(), key("sale"), field, "abc").Err(); err != nil {
				t.Fatal(err)
			}
			wantBook(t, g, v, sale.Book{Buyers: 1, Marks: 1})
			load(t, g, v)
			wantBook(t, g, v, sale.Book{Loaded: true, Units: 9, Left: 8, Buyers: 1, Marks: 1})
			if ok, err := g.Load(t.Context(), v); err != nil || ok {
				t.Errorf("got %v, %v, want a voucher that is loaded left as it is", ok, err)
			}
		})
	}
}

func TestUnitsThatDifferAreSetInBucketsToo(t *testing.T) {
	_, c := server(t)
	g := inBuckets(c, 4)
	v := open(40, nil)
	load(t, g, v)
	for i := range 20 {
		r := reservation(v, sale.ID(i+1), fmt.Sprint("u", i))
		admit(t, g, r, sale.Admitted, r.OrderID)
	}
	if err := c.HSet(t.Context(), fmt.Sprintf("seckill:{%s.1}:sale", v.ID), "units", 1).Err(); err != nil {
		t.Fatal(err)
	}
	// At most two: they may need each other's.
	for range 2 {
		if _, err := g.Level(t.Context(), v.ID, 40, 20); err != nil {
			t.Fatal(err)
		}
	}
	wantBook(t, g, v, sale.Book{Loaded: true, Units: 40, Left: 20, Buyers: 20, Marks: 20})
	for range 2 {
		if _, err := g.Level(t.Context(), v.ID, 22, 2); err != nil {
			t.Fatal(err)
		}
	}
	wantBook(t, g, v, sale.Book{Loaded: true, Units: 22, Left: 2, Buyers: 20, Marks: 20})
}
