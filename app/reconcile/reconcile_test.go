package reconcile_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"queuelab/app/admission"
	"queuelab/app/reconcile"
	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/app/store/storetest"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

func TestMain(m *testing.M) {
	brokertest.Main(m, goleak.IgnoreAnyFunction("gorm.io/gorm/internal/lru.NewLRU[...].func1"))
}

var next atomic.Int64

func id() sale.ID { return sale.ID(next.Add(1)) }

// age is how long drift stands here.
const age = 30 * time.Millisecond

type gate interface {
	sale.Gate
	sale.Auditor
}

// lab is a sale without a worker: the test does every step itself.
type lab struct {
	t     *testing.T
	gate  gate
	store *store.Store
	v     sale.Voucher
	r     *reconcile.Reconciler

	mu        sync.Mutex
	backlog   queue.Backlog
	published []sale.ID
	loaded    []sale.ID
}

func (l *lab) Backlog(context.Context) (queue.Backlog, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.backlog, nil
}

func database(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), storetest.SQLite(t, filepath.Join(t.TempDir(), "x.db")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func newLab(t *testing.T, g gate, stock int64) *lab {
	t.Helper()
	return newLabOn(t, g, database(t), stock)
}

func newLabOn(t *testing.T, g gate, s *store.Store, stock int64) *lab {
	t.Helper()
	l := &lab{t: t, gate: g, store: s, v: offer(stock)}
	if err := s.CreateVoucher(t.Context(), l.v); err != nil {
		t.Fatal(err)
	}
	l.load(l.v)
	l.r = &reconcile.Reconciler{Gate: g, Store: s, Backlog: l, Log: slog.New(slog.DiscardHandler), Age: age,
		Vouchers: func(context.Context, time.Time) ([]sale.ID, error) { return []sale.ID{l.v.ID}, nil },
		Publish: func(_ context.Context, r sale.Reservation) error {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.published = append(l.published, r.OrderID)
			return nil
		},
		Load: func(_ context.Context, v sale.ID) error { l.loaded = append(l.loaded, v); return nil },
	}
	return l
}

func offer(stock int64) sale.Voucher {
	now := time.Now().UTC()
	return sale.Voucher{ID: id(), Title: "tea", Stock: stock, Left: stock, Begin: now.Add(-time.Hour), End: now.Add(time.Hour), Created: now, PerUser: 1}
}

func (l *lab) load(v sale.Voucher) {
	l.t.Helper()
	if _, err := l.gate.Load(l.t.Context(), v); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) order(user string) sale.Reservation {
	return sale.Reservation{OrderID: id(), VoucherID: l.v.ID, UserID: user, AtMillis: time.Now().UnixMilli()}
}

func (l *lab) admit(user string) sale.Reservation {
	l.t.Helper()
	r := l.order(user)
	if got, _, err := l.gate.Admit(l.t.Context(), r); err != nil || got != sale.Admitted {
		l.t.Fatalf("got %v, %v, want admitted", got, err)
	}
	return r
}

func (l *lab) fulfil(rs ...sale.Reservation) {
	l.t.Helper()
	if _, err := l.store.Fulfil(l.t.Context(), rs); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) settle(rs ...sale.Reservation) {
	l.t.Helper()
	if err := l.gate.Settle(l.t.Context(), rs...); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) sell(user string) sale.Reservation {
	r := l.admit(user)
	l.fulfil(r)
	l.settle(r)
	return r
}

func (l *lab) close(r sale.Reservation) {
	l.t.Helper()
	if _, ok, err := l.store.CloseOrder(l.t.Context(), r.OrderID, sale.Cancelled, sale.ReasonByBuyer); err != nil || !ok {
		l.t.Fatalf("got %v, %v, want the order closed", ok, err)
	}
}

func (l *lab) once() reconcile.State {
	l.t.Helper()
	s, err := l.r.Once(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

// stands looks until what is found has stood for long enough.
func (l *lab) stands() reconcile.State {
	l.t.Helper()
	if s := l.once(); slices.ContainsFunc(late(s.Drift), func(d reconcile.Drift) bool { return !d.Kind.Sure() }) {
		l.t.Fatalf("got drift %v at the first look, want it to be in flight", s.Drift)
	}
	time.Sleep(l.r.Age + l.r.Age/3) // the gate's clock is not ours to move
	return l.once()
}

func kinds(ds []reconcile.Drift) []string {
	var ks []string
	for _, d := range ds {
		ks = append(ks, string(d.Kind))
	}
	slices.Sort(ks)
	return ks
}

func wantKinds(t *testing.T, ds []reconcile.Drift, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, kinds(ds)); d != "" {
		t.Errorf("drift (-want +got):\n%s%v", d, ds)
	}
}

// wantRight wants gate and database to agree to the unit, with so many left.
func (l *lab) wantRight(left int64) {
	l.t.Helper()
	s := l.once()
	a := s.Accounts[0]
	if len(s.Found) != 0 || len(a.Wrong()) != 0 || a.Gate.Buyers != a.Held() || !a.Gate.Stockless() && a.Gate.Left != left || a.Left != left {
		l.t.Errorf("got %+v, %+v, found %v, wrong %v, want all right with %d left", a, a.Gate, s.Found, a.Wrong(), left)
	}
}

func (l *lab) wantOrder(order sale.ID, want sale.Status) {
	l.t.Helper()
	os, err := l.store.Orders(l.t.Context(), order)
	if err != nil || len(os) != 1 || os[0].Status != want {
		l.t.Errorf("got %v, %v, want order %v %s", os, err, order, want)
	}
}

// Each case makes one kind of drift with the gate's and the database's own steps,
// as a crash between two of them does.
var driftCases = map[string]struct {
	make func(*lab)
	want []string
	left int64 // once it is put right
	then func(*lab)
}{
	"an order that the gate forgot could be sold again": {
		make: func(l *lab) { l.sell("a"); l.fulfil(l.order("b")) },
		want: []string{"order_without_buyer"}, left: 3,
	},
	"a closed order that holds its unit keeps it from everybody": {
		make: func(l *lab) { l.close(l.sell("a")) },
		want: []string{"closed_order_still_holds"}, left: 5,
	},
	"a unit that is held for an order that nobody knows is given back, and its buyer has an answer": {
		make: func(l *lab) { l.sell("a"); l.settle(l.order("b")) },
		want: []string{"buyer_without_order_or_mark"}, left: 4,
		then: func(l *lab) { l.wantOrder(sale.ID(next.Load()), sale.Failed) },
	},
	"a decided order that counts as in flight is settled": {
		make: func(l *lab) { l.fulfil(l.admit("a")) },
		want: []string{"mark_of_decided_order"}, left: 4,
	},
	"a mark whose unit another order holds is decided": {
		make: func(l *lab) {
			l.admit("a")
			b := l.order("a")
			l.fulfil(b)
			l.settle(b)
		},
		want: []string{"mark_without_buyer"}, left: 4,
		then: func(l *lab) {
			if len(l.published) == 0 {
				l.t.Error("got nothing published, want the order that waits")
			}
		},
	},
	"too few units at the gate are raised": {
		make: func(l *lab) {
			l.v = offer(5)
			if err := l.store.CreateVoucher(l.t.Context(), l.v); err != nil {
				l.t.Fatal(err)
			}
			v := l.v
			v.Left = 2
			l.load(v)
		},
		want: []string{"stock_differs"}, left: 5,
	},
	"too many units at the gate are lowered": {
		make: func(l *lab) {
			r := l.order("a")
			l.fulfil(r)
			if err := l.gate.Restore(l.t.Context(), r); err != nil {
				l.t.Fatal(err)
			}
		},
		want: []string{"stock_differs"}, left: 4,
	},
	"units that differ are set to the database's, and no unit is held back for that": {
		make: func(l *lab) {
			l.v = offer(40)
			if err := l.store.CreateVoucher(l.t.Context(), l.v); err != nil {
				l.t.Fatal(err)
			}
			v := l.v
			v.Stock, v.Left = 25, 25
			l.load(v)
			for i := range 20 {
				l.sell(fmt.Sprint("u", i))
			}
		},
		want: []string{"units_differ"}, left: 20,
	},
	"units are raised only after the buyers are known": {
		make: func(l *lab) {
			l.v = offer(5)
			if err := l.store.CreateVoucher(l.t.Context(), l.v); err != nil {
				l.t.Fatal(err)
			}
			v := l.v
			v.Left = 2
			l.load(v)
			l.fulfil(l.order("a"), l.order("b"))
		},
		want: []string{"order_without_buyer", "order_without_buyer", "stock_differs"}, left: 3,
	},
}

// late leaves out that an order waits: on a slow machine any does.
func late(ds []reconcile.Drift) []reconcile.Drift {
	return slices.DeleteFunc(slices.Clone(ds), func(d reconcile.Drift) bool { return d.Kind == reconcile.OrderWaits })
}

func TestDriftIsNamedAndPutRight(t *testing.T) {
	redis := func(t *testing.T) *admission.Redis {
		g, err := admission.OpenRedis(t.Context(), brokertest.Start(t, "redis", "no-persistence").URL())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { g.Close() })
		return g
	}
	gates := map[string]func(*testing.T) gate{
		"memory":           func(*testing.T) gate { return admission.NewMemory(nil) },
		"redis in buckets": inBuckets,
		"redis":            func(t *testing.T) gate { return redis(t) },
		// Buyers queue up first, and the database alone has stock.
		"memory without stock": func(*testing.T) gate {
			g := admission.NewMemory(nil)
			g.Stockless(func(context.Context, sale.ID) (int64, error) { return 0, nil })
			return g
		},
		"redis without stock": func(t *testing.T) gate {
			g := redis(t)
			g.Stockless(func(context.Context, sale.ID) (int64, error) { return 0, nil })
			return g
		},
	}
	s := database(t) // one for all: each case has a voucher of its own
	for kind, open := range gates {
		g := open(t)
		for name, tc := range driftCases {
			t.Run(kind+": "+name, func(t *testing.T) {
				next.Store(time.Now().UnixNano()) // one Redis for all, and no order twice
				l := newLabOn(t, g, s, 5)
				tc.make(l)
				want := tc.want
				if strings.HasSuffix(kind, "without stock") {
					// What is left is not the gate's, so it cannot be wrong about it.
					want = slices.DeleteFunc(slices.Clone(want), func(k string) bool { return k == string(reconcile.StockDiffers) || k == string(reconcile.UnitsDiffer) })
					if len(want) == 0 {
						want = nil
					}
				}
				wantKinds(t, late(l.stands().Drift), want...)
				l.r.Repair = true
				s := l.once()
				for _, d := range s.Drift {
					if (d.Done == "" || d.Did == "") && d.Kind != reconcile.StockDiffers {
						t.Errorf("got nothing done about %v", d)
					}
					wantFacts(t, d.Detail, d.Facts)
					wantFacts(t, d.Done, d.DidFacts)
				}
				// What was published is decided, as by a worker.
				for _, o := range slices.Compact(l.published) {
					r, ok, err := l.gate.Find(t.Context(), o, l.v.ID)
					if err != nil || !ok {
						t.Fatalf("got %v, %v, want order %v published while it waits", ok, err, o)
					}
					d, err := l.store.Fulfil(t.Context(), []sale.Reservation{r})
					if err != nil || d[0].Status != sale.Failed {
						t.Fatalf("got %v, %v, want it to fail", d, err)
					}
					if _, err := l.gate.Release(t.Context(), r); err != nil {
						t.Fatal(err)
					}
				}
				l.once()
				time.Sleep(age + age/3) // units come after buyers
				l.once()
				l.wantRight(tc.left)
				if tc.then != nil {
					tc.then(l)
				}
			})
		}
	}
}

// wantFacts wants facts in the order in which the words have them.
func wantFacts(t *testing.T, words string, facts []string) {
	t.Helper()
	rest := words
	for _, f := range facts {
		_, after, ok := strings.Cut(rest, f)
		if !ok {
			t.Errorf("got facts %q of %q, want those that it says, in its order", facts, words)
		}
		rest = after
	}
}

// Cases A18: the database lags behind the gate by what is in flight.
func TestStockInFlightIsNeverRefilled(t *testing.T) {
	l := newLab(t, admission.NewMemory(nil), 10)
	l.r.Repair, l.r.Age = true, 300*time.Millisecond
	l.backlog.Ready = 6 // the consumer is paused
	var rs []sale.Reservation
	for i := range 6 {
		rs = append(rs, l.admit(fmt.Sprint(i)))
	}
	s := l.stands()
	if len(s.Drift) != 0 || s.Waiting != 6 || len(l.published) != 0 {
		t.Errorf("got drift %v, %d waiting and %d published, want 6 in flight and nothing done", s.Drift, s.Waiting, len(l.published))
	}
	if left, _, _ := l.gate.Left(t.Context(), l.v.ID); left != 4 {
		t.Errorf("got %d left at the gate, want 4", left)
	}
	l.fulfil(rs...)
	l.settle(rs...)
	l.backlog.Ready = 0
	l.wantRight(4)
}

func TestAnOrderThatWaitsIsPublishedAgainOnceTheQueueIsEmpty(t *testing.T) {
	l := newLab(t, admission.NewMemory(nil), 10)
	l.r.Repair = true
	r := l.admit("a")
	var s reconcile.State
	for deadline := time.Now().Add(10 * time.Second); len(s.Drift) == 0 && time.Now().Before(deadline); {
		s = l.stands()
	}
	wantKinds(t, s.Drift, "order_waits")
	if d := cmp.Diff([]sale.ID{r.OrderID}, slices.Compact(l.published)); d != "" {
		t.Errorf("published (-want +got):\n%s", d)
	}
	if s.Done[reconcile.OrderWaits] != 0 || len(s.Repairs) != 0 {
		t.Errorf("got %v and %v, want no repair counted while the order waits", s.Done, s.Repairs)
	}
	l.fulfil(r)
	l.settle(r)
	if s := l.once(); s.Done[reconcile.OrderWaits] != 1 || len(s.Repairs) != 1 {
		t.Errorf("got %v and %v, want the repair counted and remembered", s.Done, s.Repairs)
	}
}

// Three of five units are free: one is in flight, and the gate has forgotten the
// buyer of another.
func TestUnitsAreNotRaisedWhileABuyerIsForgotten(t *testing.T) {
	l := newLab(t, admission.NewMemory(nil), 5)
	l.v = offer(5)
	if err := l.store.CreateVoucher(t.Context(), l.v); err != nil {
		t.Fatal(err)
	}
	v := l.v
	v.Left = 2
	l.load(v)
	l.backlog.Ready = 1
	l.admit("a")
	l.once()
	l.fulfil(l.order("b"))
	time.Sleep(age + age/3)
	l.r.Repair = true
	l.once()
	if left, _, _ := l.gate.Left(t.Context(), l.v.ID); left != 1 {
		t.Errorf("got %d left at the gate, want 1 until it knows all buyers", left)
	}
	time.Sleep(age + age/3)
	l.once() // the buyer
	l.once() // the units
	if left, _, _ := l.gate.Left(t.Context(), l.v.ID); left != 3 {
		t.Errorf("got %d left at the gate, want 3", left)
	}
}

func TestTwoFaultsThatCancelOutAreFound(t *testing.T) {
	l := newLab(t, admission.NewMemory(nil), 5)
	a := l.sell("a")
	if ok, err := l.gate.Release(t.Context(), a); err != nil || !ok {
		t.Fatalf("got %v, %v, want a's unit released", ok, err)
	}
	l.settle(l.order("b"))
	wantKinds(t, l.stands().Drift, "buyer_without_order_or_mark", "order_without_buyer")
}

func TestASaleThatEndedInOrderRestsUntilAFullLook(t *testing.T) {
	l := newLab(t, admission.NewMemory(nil), 5)
	l.v = offer(5)
	l.v.End = time.Now().Add(-time.Minute)
	if err := l.store.CreateVoucher(t.Context(), l.v); err != nil {
		t.Fatal(err)
	}
	l.load(l.v)
	a := l.order("a") // bought before the end
	l.fulfil(a)
	l.settle(a)
	if s := l.once(); len(s.Found) != 0 {
		t.Fatalf("got %v, want nothing wrong", s.Found)
	}
	l.fulfil(l.order("b"))
	looks := 0
	for ; looks < 100 && len(l.once().Found) == 0; looks++ {
	}
	if looks < 2 || looks == 100 {
		t.Errorf("got the order found after %d looks, want it found by a full one", looks)
	}
}

func TestAVoucherOnSaleWhoseGateIsEmptyIsLoaded(t *testing.T) {
	l := newLab(t, admission.NewMemory(nil), 1)
	l.r.Repair = true
	l.v = offer(1)
	if err := l.store.CreateVoucher(t.Context(), l.v); err != nil {
		t.Fatal(err)
	}
	wantKinds(t, l.stands().Drift, "gate_not_loaded")
	if len(l.loaded) != 1 || l.loaded[0] != l.v.ID {
		t.Errorf("got %v loaded, want the voucher", l.loaded)
	}
}

func TestTheDatabaseContradictsItselfAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		account reconcile.Account
		want    int
	}{
		"balanced":           {reconcile.Account{Ledger: ledger(10, 4, 5, 1, 6)}, 0},
		"a unit too many":    {reconcile.Account{Ledger: ledger(10, 5, 5, 1, 6)}, 1},
		"a unit too few":     {reconcile.Account{Ledger: ledger(10, 3, 5, 1, 6)}, 1},
		"oversold":           {reconcile.Account{Ledger: ledger(5, 0, 5, 1, 6)}, 2},
		"one buyer twice":    {reconcile.Account{Ledger: ledger(10, 4, 5, 1, 5)}, 1},
		"two databases":      {reconcile.Account{Ledger: elsewhere(ledger(10, 4, 5, 1, 6), 4)}, 0},
		"two that differ":    {reconcile.Account{Ledger: elsewhere(ledger(10, 4, 5, 1, 6), 5)}, 1},
		"a gate in flight":   {reconcile.Account{Ledger: ledger(10, 4, 5, 1, 6), Gate: &sale.Book{Loaded: true, Units: 10, Left: 3, Buyers: 7, Marks: 1}}, 0},
		"a gate that is off": {reconcile.Account{Ledger: ledger(10, 4, 5, 1, 6), Gate: &sale.Book{Loaded: true, Units: 10, Left: 4, Buyers: 7, Marks: 1}}, 1},
		"a quiet gate with a buyer too many": {reconcile.Account{Ledger: ledger(10, 4, 5, 1, 6), Quiet: true,
			Gate: &sale.Book{Loaded: true, Units: 10, Left: 3, Buyers: 7}}, 1},
	} {
		if got := tc.account.Wrong(); len(got) != tc.want {
			t.Errorf("%s: got %q, want %d sentences", name, got, tc.want)
		}
	}
}

func ledger(stock, left, confirmed, paid, units int64) sale.Ledger {
	return sale.Ledger{Voucher: sale.Voucher{Stock: stock, Left: left}, Confirmed: confirmed, Paid: paid, Units: units}
}

func elsewhere(l sale.Ledger, left int64) sale.Ledger {
	l.StockLeft = &left
	return l
}

// broken is a database in which somebody changed a number.
type broken struct {
	*store.Store
	more int64
}

func (b broken) Ledger(ctx context.Context, v sale.ID) (sale.Ledger, error) {
	l, err := b.Store.Ledger(ctx, v)
	l.Left += b.more
	return l, err
}

func TestVerifyEndsAtOnceWhenAllAgreesOrNothingCanHelp(t *testing.T) {
	l := newLab(t, admission.NewMemory(nil), 5)
	l.r.Age, l.r.Strict = time.Hour, true
	l.sell("a")
	if s, err := l.r.Verify(t.Context()); err != nil || len(s.Drift) != 0 {
		t.Errorf("got %v, %v, want nothing wrong", s.Drift, err)
	}
	l.r.Store = broken{l.store, 1}
	s, err := l.r.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantKinds(t, s.Drift, "stock_sum_differs")
}

func TestVerifyWaitsForWhatIsOnItsWay(t *testing.T) {
	l := newLab(t, admission.NewMemory(nil), 5)
	l.r.Age, l.r.Strict = 20*time.Second, true
	r := l.admit("a")
	var wg sync.WaitGroup
	wg.Go(func() {
		for l.r.State().Waiting == 0 { // it has seen the order
			time.Sleep(time.Millisecond)
		}
		l.fulfil(r)
		l.settle(r)
	})
	s, err := l.r.Verify(t.Context())
	wg.Wait()
	if err != nil || len(s.Drift) != 0 || s.Waiting != 0 {
		t.Errorf("got %v, %d waiting, %v, want all decided", s.Drift, s.Waiting, err)
	}
}

func TestVerifyNamesWhatNeverEnds(t *testing.T) {
	l := newLab(t, admission.NewMemory(nil), 5)
	l.r.Age, l.r.Strict = 200*time.Millisecond, true
	l.backlog.Ready = 1 // a queue without a consumer
	l.admit("a")
	s, err := l.r.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantKinds(t, s.Drift, "order_waits")
}

func TestVerifyRepairsAndLooksAgain(t *testing.T) {
	l := newLab(t, admission.NewMemory(nil), 5)
	l.r.Age, l.r.Strict, l.r.Repair = 200*time.Millisecond, true, true
	l.close(l.sell("a"))
	l.fulfil(l.order("b"))
	s, err := l.r.Verify(t.Context())
	if err != nil || len(s.Drift) != 0 || len(s.Repairs) != 2 {
		t.Errorf("got %v, %v, %v, want two repairs and nothing left", s.Drift, s.Repairs, err)
	}
}

func TestALookThatFailsForgetsNothing(t *testing.T) {
	l := newLab(t, admission.NewMemory(nil), 5)
	l.fulfil(l.order("a"))
	wantKinds(t, l.stands().Drift, "order_without_buyer")
	if err := l.store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.r.Once(t.Context()); err == nil {
		t.Error("got no error of a database that is closed")
	}
	s := l.r.State()
	wantKinds(t, s.Drift, "order_without_buyer")
	if s.Err == nil {
		t.Error("got no error in the state")
	}
}
