package sale_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"queuelab/app/admission"
	"queuelab/app/sale"
	"queuelab/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rows is a Store in memory.
type rows struct {
	mu       sync.Mutex
	vouchers map[sale.ID]sale.Voucher
	orders   []sale.Order
}

func (r *rows) CreateVoucher(_ context.Context, v sale.Voucher) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.vouchers[v.ID] = v
	return nil
}

func (r *rows) Voucher(_ context.Context, id sale.ID) (sale.Voucher, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.vouchers[id]
	if !ok {
		return v, sale.NotFound("no such voucher")
	}
	return v, nil
}

func (r *rows) VouchersBelow(_ context.Context, endAfter time.Time, below sale.ID, most int) (vs []sale.Voucher, _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.vouchers {
		if v.End.After(endAfter) && v.ID < below {
			vs = append(vs, v)
		}
	}
	slices.SortFunc(vs, func(a, b sale.Voucher) int { return cmp.Compare(b.ID, a.ID) })
	return vs[:min(most, len(vs))], nil
}

func (r *rows) Orders(_ context.Context, ids ...sale.ID) (os []sale.Order, _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.orders {
		for _, id := range ids {
			if o.OrderID == id {
				os = append(os, o)
			}
		}
	}
	return os, nil
}

func (r *rows) HeldOrders(_ context.Context, voucher, after sale.ID, most int) (os []sale.Order, _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.orders {
		if o.VoucherID == voucher && o.OrderID > after && o.Status == sale.Confirmed && len(os) < most {
			os = append(os, o)
		}
	}
	return os, nil
}

// confirm is what a worker would do.
func (r *rows) confirm(v sale.ID, order sale.ID, user string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.orders = append(r.orders, sale.Order{Reservation: sale.Reservation{OrderID: order, VoucherID: v, UserID: user}, Status: sale.Confirmed})
	row := r.vouchers[v]
	row.Left--
	r.vouchers[v] = row
}

// fakeGate fails as often as told, before or after the real gate has worked.
type fakeGate struct {
	*admission.Memory
	loseAdmits      int // answers to Click that get lost
	failWithdrawals bool
}

var errLost = errors.New("i/o timeout")

func (g *fakeGate) Click(ctx context.Context, c sale.Click) (sale.Answer, error) {
	a, err := g.Memory.Click(ctx, c)
	if g.loseAdmits > 0 {
		g.loseAdmits--
		return sale.Answer{}, errLost
	}
	return a, err
}

func (g *fakeGate) Withdraw(ctx context.Context, r sale.Reservation) (bool, error) {
	if g.failWithdrawals {
		return false, errLost
	}
	return g.Memory.Withdraw(ctx, r)
}

// fakePublisher answers as told.
type fakePublisher struct {
	err  error
	sent []queue.Message
}

func (p *fakePublisher) Publish(_ context.Context, ms ...queue.Message) error {
	p.sent = append(p.sent, ms...)
	return p.err
}

func (p *fakePublisher) Close() error { return nil }

// unheard is a broadcast without listeners.
type unheard struct{ fakePublisher }

func (*unheard) PublishCounted(context.Context, ...queue.Message) ([]int64, error) {
	return []int64{0}, nil
}

type shop struct {
	*sale.Service
	gate  *fakeGate
	store *rows
	v     sale.Voucher
}

func newShop(t *testing.T, p queue.Publisher) *shop {
	t.Helper()
	ids, err := sale.NewSnowflake(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	s := &shop{gate: &fakeGate{Memory: admission.NewMemory(nil)}, store: &rows{vouchers: map[sale.ID]sale.Voucher{}}}
	s.Service = &sale.Service{IDs: ids, Gate: s.gate, Store: s.store, Observer: sale.Unobserved{}, Log: log,
		Outbox:  &sale.Outbox{Publisher: p, Timeout: time.Second, Observer: sale.Unobserved{}},
		Results: sale.NewResults(s.store, func(err error) { t.Error(err) }),
		Loader:  sale.NewLoader(s.gate, s.store, nil, time.Second, log)}
	now := time.Now()
	if s.v, err = s.CreateVoucher(t.Context(), sale.Offer{Title: "tea", Stock: 5, Begin: now.Add(-time.Hour), End: now.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *shop) want(t *testing.T, left int64, marks int) {
	t.Helper()
	got, _, _ := s.gate.Left(t.Context(), s.v.ID)
	rs, _ := s.gate.Stale(t.Context(), s.v.ID, 0, 10)
	// A mark that a rescan took up a moment ago is due again in a moment.
	for deadline := time.Now().Add(time.Second); len(rs) < marks && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		rs, _ = s.gate.Stale(t.Context(), s.v.ID, 0, 10)
	}
	if got != left || len(rs) != marks {
		t.Errorf("got %d left and %d marks, want %d and %d", got, len(rs), left, marks)
	}
}

func TestWhatBecomesOfAClickWhenThePublishIs(t *testing.T) {
	for _, tc := range []struct {
		name  string
		pub   queue.Publisher
		busy  bool
		left  int64
		marks int
	}{
		{"accepted: an order", &fakePublisher{}, false, 4, 1},
		{"unknown: an order, since it may be in the queue", &fakePublisher{err: errLost}, false, 4, 1},
		{"timed out: an order too", &fakePublisher{err: context.DeadlineExceeded}, false, 4, 1},
		{"rejected: busy, and the unit is back", &fakePublisher{err: queue.Reject(errors.New("full"))}, true, 5, 0},
		{"closed: busy, and the unit is back", &fakePublisher{err: queue.ErrClosed}, true, 5, 0},
		{"heard by nobody: busy, and the unit is back", &unheard{}, true, 5, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newShop(t, tc.pub)
			order, err := s.Buy(t.Context(), "u", s.v.ID)
			if tc.busy != (sale.CodeOf(err) == sale.CodeBusy) || !tc.busy && err != nil {
				t.Fatalf("got order %v, %v, want busy %v", order, err, tc.busy)
			}
			s.want(t, tc.left, tc.marks)
			if !tc.busy {
				o, err := s.Order(t.Context(), sale.Reader{User: "u"}, order, 0)
				if err != nil || o.Status != sale.Queued {
					t.Errorf("got %+v, %v, want a queued order", o, err)
				}
			}
		})
	}
}

func TestAUnitThatCannotBeGivenBackKeepsItsMarkForTheRescan(t *testing.T) {
	s := newShop(t, &fakePublisher{err: queue.Reject(errors.New("full"))})
	s.gate.failWithdrawals = true
	if _, err := s.Buy(t.Context(), "u", s.v.ID); sale.CodeOf(err) != sale.CodeBusy {
		t.Fatalf("got %v, want busy", err)
	}
	s.want(t, 4, 1)
}

// rescanned is a publisher that is refused after a rescan took the order up.
type rescanned struct {
	fakePublisher
	rescan func()
}

func (p *rescanned) Publish(ctx context.Context, ms ...queue.Message) error {
	p.rescan()
	return p.fakePublisher.Publish(ctx, ms...)
}

func TestAnOrderThatARescanTookUpStandsThoughItsPublishWasRefused(t *testing.T) {
	p := &rescanned{fakePublisher: fakePublisher{err: queue.Reject(errors.New("full"))}}
	s := newShop(t, p)
	p.rescan = func() {
		for taken := 0; taken == 0; {
			rs, err := s.gate.Stale(t.Context(), s.v.ID, time.Millisecond, 10)
			if err != nil || t.Context().Err() != nil {
				t.Errorf("stale: %v", err)
				return
			}
			taken = len(rs)
		}
	}
	if _, err := s.Buy(t.Context(), "u", s.v.ID); err != nil {
		t.Fatalf("got %v, want an order: it may be in the queue", err)
	}
	s.want(t, 4, 1)
}

func TestAnAdmissionWithoutAnAnswerIsAskedAgainUnderTheSameOrder(t *testing.T) {
	p := &fakePublisher{}
	s := newShop(t, p)
	s.gate.loseAdmits = 2
	order, err := s.Buy(t.Context(), "u", s.v.ID)
	if err != nil {
		t.Fatal(err)
	}
	s.want(t, 4, 1)
	if len(p.sent) != 1 || p.sent[0].ID != order.String() {
		t.Errorf("got %v published, want order %v once", p.sent, order)
	}
}

func TestAGateThatNeverAnswersIsBusyAndTheOrderIsFoundLater(t *testing.T) {
	p := &fakePublisher{}
	s := newShop(t, p)
	s.gate.loseAdmits = 3
	if _, err := s.Buy(t.Context(), "u", s.v.ID); sale.CodeOf(err) != sale.CodeBusy {
		t.Fatalf("got %v, want busy", err)
	}
	// The mark is there, so the rescan will publish it; a new click says which.
	s.want(t, 4, 1)
	_, err := s.Buy(t.Context(), "u", s.v.ID)
	var e *sale.Error
	if !errors.As(err, &e) || e.Code != sale.CodeAlreadyBought || e.OrderID == 0 {
		t.Errorf("got %v, want already_bought with the order", err)
	}
}

// The list of vouchers was read just before another instance made one.
func TestAnOrderOfAVoucherThatIsBrandNewIsFound(t *testing.T) {
	s := newShop(t, &fakePublisher{})
	if _, err := s.Loader.Recent(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	v := s.v
	v.ID++
	if err := s.store.CreateVoucher(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if _, err := s.gate.Load(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	order, err := s.Buy(t.Context(), "u", v.ID)
	if err != nil {
		t.Fatal(err)
	}
	if o, err := s.Order(t.Context(), sale.Reader{User: "u"}, order, 0); err != nil || o.Status != sale.Queued {
		t.Errorf("got %+v, %v, want a queued order", o, err)
	}
}

// backlog is a queue that can be looked into.
type backlog struct{ ready, inFlight atomic.Int64 }

func (b *backlog) Backlog(context.Context) (queue.Backlog, error) {
	return queue.Backlog{Ready: b.ready.Load(), InFlight: b.inFlight.Load()}, nil
}

// The gate lost everything while orders were in flight. Their units are still
// in the database's stock, and must not be sold twice.
func TestALostGateStaysClosedWhileOrdersAreInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		store := &rows{vouchers: map[sale.ID]sale.Voucher{1: {ID: 1, Stock: 5, Left: 5, Begin: now.Add(-time.Hour), End: now.Add(time.Hour)}}}
		gate := admission.NewMemory(nil)
		q := &backlog{}
		q.ready.Store(2)
		q.inFlight.Store(1)
		l := sale.NewLoader(gate, store, q, 10*time.Second, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); l.Run(ctx) }()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if _, ok, _ := gate.Left(ctx, 1); ok {
			t.Fatal("got an open gate with three orders in flight")
		}
		for i := range 3 {
			store.confirm(1, sale.ID(i+10), fmt.Sprint("u", i))
		}
		q.ready.Store(0)
		q.inFlight.Store(0)
		time.Sleep(time.Second)
		synctest.Wait()
		if got, ok, _ := gate.Left(ctx, 1); !ok || got != 2 {
			t.Errorf("got %d left, loaded %v, want 2", got, ok)
		}
		if v, holder, _ := gate.Admit(ctx, sale.Reservation{OrderID: 99, VoucherID: 1, UserID: "u1"}); v != sale.AlreadyBought || holder != 11 {
			t.Errorf("got %v, %v for a buyer of before, want already_bought, 11", v, holder)
		}
		cancel()
		<-done
	})
}

func TestALostGateDoesNotStayClosedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		vs := map[sale.ID]sale.Voucher{}
		for id := sale.ID(1); id <= 3; id++ {
			vs[id] = sale.Voucher{ID: id, Stock: 5, Left: 4, Begin: now.Add(-time.Hour), End: now.Add(time.Hour)}
		}
		gate := admission.NewMemory(nil)
		q := &backlog{}
		q.ready.Store(1)
		l := sale.NewLoader(gate, &rows{vouchers: vs}, q, 10*time.Second, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); l.Run(ctx) }()
		time.Sleep(11 * time.Second)
		synctest.Wait()
		for id := range vs {
			if got, ok, _ := gate.Left(ctx, id); !ok || got != 4 {
				t.Errorf("voucher %v: got %d left, loaded %v, want 4 after one wait for all", id, got, ok)
			}
		}
		cancel()
		<-done
	})
}
