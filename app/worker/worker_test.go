package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"queuelab/app/admission"
	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/app/store/storetest"
	"queuelab/app/worker"
	"queuelab/backends/memory"
	"queuelab/queue"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(poisonedDir); dir != "" {
		if err := workUntilDead(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("gorm.io/gorm/internal/lru.NewLRU[...].func1"))
}

var next atomic.Int64

func id() sale.ID { return sale.ID(next.Add(1)) }

// lab is a worker over a real gate, queue and database, with a hand in between.
type lab struct {
	t     *testing.T
	store *faulty
	gate  *admission.Memory
	queue queue.Queue
	caps  queue.Capabilities
	pub   queue.Publisher
	seen  *decisions
}

// faulty is a store whose Fulfil can be made to fail.
type faulty struct {
	*store.Store
	mu    sync.Mutex
	fail  func([]sale.Reservation) error
	calls int

	noGiveUp bool // GiveUp fails
}

func (f *faulty) GiveUp(ctx context.Context, r sale.Reservation, message string, body []byte, reason, cause string) (sale.Order, error) {
	if f.noGiveUp {
		return sale.Order{}, errors.New("cannot be failed")
	}
	return f.Store.GiveUp(ctx, r, message, body, reason, cause)
}

func (f *faulty) Fulfil(ctx context.Context, rs []sale.Reservation) ([]sale.Decision, error) {
	f.mu.Lock()
	f.calls++
	fail := f.fail
	f.mu.Unlock()
	if fail != nil {
		if err := fail(rs); err != nil {
			return nil, err
		}
	}
	return f.Store.Fulfil(ctx, rs)
}

func (f *faulty) set(fail func([]sale.Reservation) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

// decisions is an Observer that remembers them.
type decisions struct {
	sale.Unobserved
	mu     sync.Mutex
	orders []sale.Order
}

func (d *decisions) Decided(o sale.Order, _ time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.orders = append(d.orders, o)
}

func (d *decisions) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.orders)
}

func newLab(t *testing.T) *lab {
	t.Helper()
	s, err := store.Open(t.Context(), storetest.SQLite(t, filepath.Join(t.TempDir(), "x.db")))
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse("memory://orders")
	if err != nil {
		t.Fatal(err)
	}
	q, err := memory.Open(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := q.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, store: &faulty{Store: s}, gate: admission.NewMemory(nil), queue: q, caps: q.Capabilities(), pub: pub, seen: &decisions{}}
	t.Cleanup(func() { q.Close(); s.Close() })
	return l
}

// work runs the worker until the test ends.
func (l *lab) work() { l.t.Helper(); l.workAnd(slog.New(slog.DiscardHandler)) }

// workAnd is work that writes to a log.
func (l *lab) workAnd(log *slog.Logger) {
	l.t.Helper()
	c, err := l.queue.Consumer(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	w := &worker.Worker{Store: l.store, Gate: l.gate, Results: sale.NewResults(l.store, func(error) {}), Observer: l.seen, Log: log,
		Lanes: 2, Batch: 8, MaxAttempts: 2, Drain: time.Second}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx, c, l.caps) }()
	l.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			l.t.Error(err)
		}
		c.Close()
	})
}

func (l *lab) voucher(gateStock, dbStock int64) sale.Voucher {
	l.t.Helper()
	now := time.Now().UTC()
	v := sale.Voucher{ID: id(), Title: "tea", Stock: dbStock, Left: dbStock, Begin: now.Add(-time.Hour), End: now.Add(time.Hour), Created: now}
	if err := l.store.CreateVoucher(l.t.Context(), v); err != nil {
		l.t.Fatal(err)
	}
	v.Stock, v.Left = gateStock, gateStock
	if _, err := l.gate.Load(l.t.Context(), v); err != nil {
		l.t.Fatal(err)
	}
	return v
}

func (l *lab) admit(v sale.Voucher, user string) sale.Reservation {
	l.t.Helper()
	r := sale.Reservation{OrderID: id(), VoucherID: v.ID, UserID: user, AtMillis: time.Now().UnixMilli()}
	if got, _, err := l.gate.Admit(l.t.Context(), r); err != nil || got != sale.Admitted {
		l.t.Fatalf("got %v, %v, want admitted", got, err)
	}
	return r
}

func (l *lab) publish(id string, body []byte) {
	l.t.Helper()
	if err := l.pub.Publish(l.t.Context(), queue.Message{ID: id, Key: id, Body: body}); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) send(r sale.Reservation) { l.t.Helper(); l.publish(r.OrderID.String(), r.Encode()) }

// queued has n buyers let in, and their orders in the queue.
func (l *lab) queued(v sale.Voucher, n int) []sale.Reservation {
	l.t.Helper()
	rs := make([]sale.Reservation, n)
	for i := range rs {
		rs[i] = l.admit(v, fmt.Sprint("u", i))
		l.send(rs[i])
	}
	return rs
}

// drained waits until every message is settled.
func (l *lab) drained() {
	l.t.Helper()
	l.eventually("the queue is empty", func() bool {
		b, err := l.queue.(queue.Backlogger).Backlog(context.Background())
		return err == nil && b.Ready+b.InFlight == 0
	})
}

func (l *lab) eventually(what string, yes func() bool) {
	l.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !yes() {
		if time.Now().After(deadline) {
			l.t.Fatalf("%s: not within 20 s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (l *lab) wantOrder(r sale.Reservation, want sale.Status, reason string) {
	l.t.Helper()
	os, err := l.store.Orders(l.t.Context(), r.OrderID)
	if err != nil || len(os) != 1 || os[0].Status != want || os[0].Reason != reason {
		l.t.Errorf("got %+v, %v, want %s %s", os, err, want, reason)
	}
}

func (l *lab) wantGate(v sale.Voucher, left int64, marked ...sale.Reservation) {
	l.t.Helper()
	if got, _, _ := l.gate.Left(l.t.Context(), v.ID); got != left {
		l.t.Errorf("got %d left at the gate, want %d", got, left)
	}
	for _, r := range marked {
		if _, ok, _ := l.gate.Find(l.t.Context(), r.OrderID, v.ID); !ok {
			l.t.Errorf("order %v has no mark", r.OrderID)
		}
	}
	if len(marked) == 0 {
		if rs, _ := l.gate.Stale(l.t.Context(), v.ID, 0, 100); len(rs) != 0 {
			l.t.Errorf("got marks %v, want none", rs)
		}
	}
}

func TestAMessageThatComesThreeTimesIsOneOrder(t *testing.T) {
	l := newLab(t)
	v := l.voucher(5, 5)
	r := l.admit(v, "u")
	for range 3 {
		l.send(r)
	}
	l.work()
	l.drained()
	l.wantOrder(r, sale.Confirmed, "")
	l.wantGate(v, 4)
	if got, err := l.store.Voucher(t.Context(), v.ID); err != nil || got.Left != 4 {
		t.Errorf("got %d left in the database, %v, want 4", got.Left, err)
	}
}

// The gate was told of more units than the database has.
func TestAnOrderThatFailsGivesItsUnitBackOnce(t *testing.T) {
	l := newLab(t)
	v := l.voucher(5, 2)
	var rs []sale.Reservation
	for i := range 5 {
		r := l.admit(v, fmt.Sprint("u", i))
		rs = append(rs, r)
		l.send(r)
		l.send(r)
	}
	l.work()
	l.drained()
	confirmed := 0
	for _, r := range rs {
		os, err := l.store.Orders(t.Context(), r.OrderID)
		if err != nil || len(os) != 1 {
			t.Fatalf("order %v: got %v, %v, want a decision", r.OrderID, os, err)
		}
		if os[0].Status == sale.Confirmed {
			confirmed++
		}
	}
	if confirmed != 2 {
		t.Errorf("got %d confirmed, want 2", confirmed)
	}
	l.wantGate(v, 3)
	if n := l.seen.count(); n != 5 {
		t.Errorf("got %d decisions told, want 5: each once", n)
	}
}

func TestAMessageThatNobodyCanReadIsKeptAndAcked(t *testing.T) {
	l := newLab(t)
	v := l.voucher(5, 5)
	l.publish("poison", []byte("{"))
	l.publish("null", []byte("null"))
	r := l.admit(v, "u")
	l.send(r)
	l.work()
	l.drained()
	l.wantOrder(r, sale.Confirmed, "")
	if n, err := l.store.DeadLetters(t.Context()); err != nil || n != 2 {
		t.Errorf("got %d dead letters, %v, want 2", n, err)
	}
}

func TestOneBadOrderDoesNotTakeItsBatchWithIt(t *testing.T) {
	l := newLab(t)
	v := l.voucher(5, 5)
	rs := l.queued(v, 5)
	bad := rs[2].OrderID
	l.store.set(func(batch []sale.Reservation) error {
		for _, r := range batch {
			if r.OrderID == bad {
				return errors.New("this one never works")
			}
		}
		return nil
	})
	l.work()
	l.drained()
	for i, r := range rs {
		if i == 2 {
			l.wantOrder(r, sale.Failed, sale.ReasonUndeliverable)
		} else {
			l.wantOrder(r, sale.Confirmed, "")
		}
	}
	l.wantGate(v, 1)
	if n, err := l.store.DeadLetters(t.Context()); err != nil || n != 1 {
		t.Errorf("got %d dead letters, %v, want 1", n, err)
	}
}

func TestAnOutageOfTheDatabaseFailsNoOrder(t *testing.T) {
	l := newLab(t)
	v := l.voucher(5, 5)
	r := l.admit(v, "u")
	l.send(r)
	l.store.set(func([]sale.Reservation) error { return fmt.Errorf("fulfil: %w", syscall.ECONNREFUSED) })
	l.work()
	l.eventually("more calls than attempts", func() bool {
		l.store.mu.Lock()
		defer l.store.mu.Unlock()
		return l.store.calls > 3
	})
	l.wantGate(v, 4, r)
	l.store.set(nil)
	l.drained()
	l.wantOrder(r, sale.Confirmed, "")
	l.wantGate(v, 4)
}

// attempt counts one attempt and returns its number.
func attempt(t *testing.T, s interface {
	CountAttempts(context.Context, ...string) (map[string]int, error)
}, message string) (int, error) {
	t.Helper()
	n, err := s.CountAttempts(t.Context(), message)
	return n[message], err
}

func TestAttemptsAreKeptInTheStoreWhereTheQueueDoesNotCount(t *testing.T) {
	l := newLab(t)
	l.caps.Attempts = queue.NotCounted
	v := l.voucher(5, 5)
	r := l.admit(v, "u")
	// Two earlier processes died with it in their hands.
	for range 2 {
		if _, err := attempt(t, l.store, r.OrderID.String()); err != nil {
			t.Fatal(err)
		}
	}
	var calls atomic.Int64
	l.store.set(func([]sale.Reservation) error { calls.Add(1); return errors.New("never works") })
	l.send(r)
	l.work()
	l.drained()
	l.wantOrder(r, sale.Failed, sale.ReasonUndeliverable)
	if calls.Load() != 1 {
		t.Errorf("got %d calls, want only the last one of the dead letter", calls.Load())
	}
	if n, err := attempt(t, l.store, r.OrderID.String()); err != nil || n != 1 {
		t.Errorf("got attempt %d, %v, want them forgotten", n, err)
	}
	l.wantGate(v, 5)
}
