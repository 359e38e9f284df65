package reconcile_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/app/admission"
	"queuelab/app/reconcile"
	"queuelab/app/sale"
	"queuelab/bench/broker/brokertest"
)

// byHand is a sale at a Redis into which somebody writes by hand, and another one
// beside it that nobody touches.
type byHand struct {
	*lab
	c     *redis.Client
	other sale.Voucher
}

func newByHand(t *testing.T, stock int64) *byHand {
	t.Helper()
	g, err := admission.OpenRedis(t.Context(), brokertest.Start(t, "redis", "no-persistence").URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	next.Store(time.Now().UnixNano()) // one Redis for all, and no order twice
	c, ok := g.Client().(*redis.Client)
	if !ok {
		t.Fatalf("got a client of type %T, want one node", g.Client())
	}
	b := &byHand{lab: newLab(t, g, stock), c: c, other: offer(3)}
	if err := b.store.CreateVoucher(t.Context(), b.other); err != nil {
		t.Fatal(err)
	}
	b.load(b.other)
	b.r.Vouchers = func(context.Context, time.Time) ([]sale.ID, error) { return []sale.ID{b.v.ID, b.other.ID}, nil }
	// As a loader does.
	b.r.Load = func(ctx context.Context, v sale.ID) error {
		b.loaded = append(b.loaded, v)
		os, err := b.store.HeldOrders(ctx, v, 0, 100)
		if err != nil {
			return err
		}
		for _, o := range os {
			if err := g.Restore(ctx, o.Reservation); err != nil {
				return err
			}
		}
		offer, err := b.store.Voucher(ctx, v)
		if err == nil {
			_, err = g.Load(ctx, offer)
		}
		return err
	}
	return b
}

// do runs a command in which K is the voucher's part of a key.
func (b *byHand) do(command ...any) {
	b.t.Helper()
	for i, arg := range command {
		if s, ok := arg.(string); ok {
			command[i] = strings.ReplaceAll(s, "K:", fmt.Sprintf("seckill:{%s}:", b.v.ID))
		}
	}
	if err := b.c.Do(b.t.Context(), command...).Err(); err != nil {
		b.t.Fatal(err)
	}
}

func TestWhatNobodyCanReadIsDriftOfItsVoucherAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		damage [][]any
		says   string
		reload bool
		spared bool // it is written over, not removed
	}{
		"a mark of no order":              {[][]any{{"HSET", "K:marks", "abc", "1|{}"}}, `mark "abc"`, false, false},
		"a buyer of no order":             {[][]any{{"HSET", "K:buyers", "ghost", "abc"}, {"HINCRBY", "K:sale", "stock", "-1"}}, `buyer "ghost"`, false, false},
		"a name that is none":             {[][]any{{"HSET", "K:buyers", "x#y#z", "78"}, {"HINCRBY", "K:sale", "stock", "-1"}}, `buyer "x#y#z"`, false, false},
		"the entry of a buyer":            {[][]any{{"HSET", "K:buyers", "a", "abc"}}, `buyer "a"`, false, true},
		"buyers that are a string":        {[][]any{{"DEL", "K:buyers"}, {"SET", "K:buyers", "str"}}, "WRONGTYPE", true, false},
		"a voucher's numbers as a string": {[][]any{{"SET", "K:sale", "str"}}, "WRONGTYPE", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newByHand(t, 5)
			b.sell("a")
			for _, command := range tc.damage {
				b.do(command...)
			}
			// What is wrong with the other one is seen all the same.
			r := b.order("z")
			r.VoucherID = b.other.ID
			b.fulfil(r)
			drift := b.stands().Drift
			if ks := kinds(drift); !slices.Contains(ks, "gate_unreadable") || !slices.ContainsFunc(drift, func(d reconcile.Drift) bool { return d.Order == r.OrderID }) {
				t.Fatalf("got %v, want what nobody can read, and the other voucher's order", drift)
			}
			for _, d := range drift {
				if d.Kind == reconcile.GateUnreadable && (d.Voucher != b.v.ID || !strings.Contains(d.Detail, tc.says)) {
					t.Errorf("got %v, want %q of voucher %s", d, tc.says, b.v.ID)
				}
			}
			b.r.Repair = true
			for deadline := time.Now().Add(10 * time.Second); len(b.once().Found) > 0; time.Sleep(age / 3) {
				if time.Now().After(deadline) {
					t.Fatalf("got %v after 10 s, want all put right", b.r.State().Found)
				}
			}
			b.wantRight(4)
			if got := len(b.loaded) > 0; got != tc.reload {
				t.Errorf("got the voucher loaded: %v, want %v", got, tc.reload)
			}
			if s := b.r.State(); (s.Done[reconcile.GateUnreadable] == 1) == tc.spared {
				t.Errorf("got %v put right, want one removal unless it is written over", s.Done)
			}
		})
	}
}

// A unit of a buyer whose name nobody can read may be that of an order in flight.
func TestAUnitIsNotGivenBackWhileAnOrderIsInFlight(t *testing.T) {
	b := newByHand(t, 5)
	b.backlog.Ready = 1
	b.admit("a")
	b.do("HSET", "K:buyers", "ghost", "abc")
	b.do("HINCRBY", "K:sale", "stock", "-1")
	b.once()
	b.r.Repair = true
	time.Sleep(age + age/3)
	if s := b.once(); len(s.Repairs) != 0 || s.Accounts[0].Gate.Buyers != 2 {
		t.Errorf("got %v, %+v, want the unit held", s.Repairs, s.Accounts[0].Gate)
	}
}

func TestAnOrderWhoseMarkNobodyCanReadIsLostAndItsUnitAnothers(t *testing.T) {
	b := newByHand(t, 5)
	r, gone := b.admit("a"), id()
	b.do("HSET", "K:marks", r.OrderID.String(), "garbage")
	b.do("HSET", "K:marks", gone.String(), "garbage") // and nobody has its unit
	b.backlog.Ready = 1
	b.r.Repair = true
	wantKinds(t, late(b.stands().Drift), "mark_unreadable", "mark_unreadable")
	if os, err := b.store.Orders(t.Context(), r.OrderID); err != nil || len(os) != 0 {
		t.Fatalf("got %v, %v, want no decision while its message may be in the queue", os, err)
	}
	b.backlog.Ready = 0
	b.once()
	b.wantOrder(r.OrderID, sale.Failed)
	b.wantRight(5)
	b.admit("a") // the buyer may try again
}

func TestAStockThatIsNoNumberIsLoadedAnewAndCountedOnce(t *testing.T) {
	b := newByHand(t, 5)
	b.sell("a")
	b.do("HSET", "K:sale", "stock", "abc")
	load := b.r.Load
	b.r.Load = func(context.Context, sale.ID) error { return nil } // it takes its time
	b.r.Repair = true
	wantKinds(t, b.stands().Drift, "gate_not_loaded")
	b.once()
	if s := b.once(); s.Done[reconcile.GateNotLoaded] != 0 || s.Seen[reconcile.GateNotLoaded] != 1 {
		t.Errorf("got %v found and %v put right, want one found, and nothing put right while it stands", s.Seen, s.Done)
	}
	b.r.Load = load
	b.once()
	b.wantRight(4)
	if s := b.r.State(); s.Done[reconcile.GateNotLoaded] != 1 || len(s.Repairs) != 1 {
		t.Errorf("got %v, %v, want one repair", s.Done, s.Repairs)
	}
}

func TestVerifyListsAllThatDiffers(t *testing.T) {
	b := newByHand(t, 40)
	b.r.Log = slog.New(slog.DiscardHandler)
	b.r.Strict, b.r.Age = true, 200*time.Millisecond
	b.sell("a")
	b.do("HINCRBY", "K:sale", "units", "1")
	b.do("HINCRBY", "K:sale", "stock", "1")
	b.r.Store = broken{b.store, 1}
	s, err := b.r.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantKinds(t, s.Drift, "stock_sum_differs", "stock_sum_differs", "units_differ")
}
