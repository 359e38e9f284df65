package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"queuelab/app/admission"
	"queuelab/app/fleet"
	"queuelab/app/reconcile"
	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/app/store/storetest"
	"queuelab/queue"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("gorm.io/gorm/internal/lru.NewLRU[...].func1"))
}

var errDown = errors.New("it is down")

// gate may be away.
type gate struct {
	*admission.Memory
	down bool
}

func (g *gate) Book(ctx context.Context, v sale.ID) (sale.Book, error) {
	if g.down {
		return sale.Book{}, errDown
	}
	return g.Memory.Book(ctx, v)
}

type backlog struct {
	is  queue.Backlog
	err error
}

func (b *backlog) Backlog(context.Context) (queue.Backlog, error) { return b.is, b.err }

// lab has one voucher of 5 units: one sold, one failed, one in flight.
func lab(t *testing.T) (*Reader, *gate, *backlog, *store.Store, sale.ID) {
	t.Helper()
	s, err := store.Open(t.Context(), storetest.SQLite(t, filepath.Join(t.TempDir(), "x.db")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	g, q := &gate{Memory: admission.NewMemory(nil)}, &backlog{is: queue.Backlog{Ready: 3, InFlight: -1, Dead: 0}}
	now := time.Now()
	v := sale.Voucher{ID: 7, Title: "tea", Stock: 5, Left: 5, PerUser: 1, Begin: now.Add(-time.Hour), End: now.Add(time.Hour), Created: now}
	if err := s.CreateVoucher(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Load(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	r := func(n sale.ID) sale.Reservation {
		return sale.Reservation{OrderID: n, VoucherID: v.ID, UserID: fmt.Sprint("u", n), AtMillis: now.UnixMilli()}
	}
	for n := range sale.ID(3) {
		if got, _, err := g.Admit(t.Context(), r(n+1)); err != nil || got != sale.Admitted {
			t.Fatalf("got %v, %v", got, err)
		}
	}
	if _, err := s.Fulfil(t.Context(), []sale.Reservation{r(1)}); err != nil {
		t.Fatal(err)
	}
	if err := g.Settle(t.Context(), r(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fail(t.Context(), r(2), "undeliverable"); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Release(t.Context(), r(2)); err != nil {
		t.Fatal(err)
	}
	return &Reader{Store: s, Gate: g, Backlog: q, Queue: "kafka", QueueUsed: true, Log: slog.New(slog.DiscardHandler)}, g, q, s, v.ID
}

// said writes numbers as they are shown.
func said(ns ...*int64) string {
	var words []string
	for _, n := range ns {
		if n == nil {
			words = append(words, "unknown")
		} else {
			words = append(words, fmt.Sprint(*n))
		}
	}
	return strings.Join(words, " ")
}

func (f Funnel) said() string { return said(f.Clicked, f.Admitted, f.Queued, f.Committed, f.Paid) }

func TestAPictureHasTheNumbersOfGateQueueAndDatabase(t *testing.T) {
	r, _, _, s, _ := lab(t)
	if err := s.SaveTallies(t.Context(), "h", []sale.Tally{{Voucher: 7, Clicked: 10, Admitted: 3, Queued: 3, SoldOut: 7}}); err != nil {
		t.Fatal(err)
	}
	got := r.State()
	v := got.Vouchers[0]
	if v.Funnel.said() != "10 3 3 1 0" || got.Total.said() != v.Funnel.said() || v.Funnel.Refused.SoldOut != 7 {
		t.Errorf("got %s, in all %s, want 10 3 3 1 0", v.Funnel.said(), got.Total.said())
	}
	if !v.Balanced || v.Left != 4 || v.Held != 1 || v.Gate.InFlight != 1 || said(got.InFlight) != "1" || got.Oldest == nil || len(got.Failed) != 0 {
		t.Errorf("got %+v %+v, oldest %v, failed %v", v, v.Gate, got.Oldest, got.Failed)
	}
	if d := got.Queue.Depth; said(d.Ready, d.InFlight, d.Dead) != "3 unknown 0" {
		t.Errorf("got a depth of %s, want 3 unknown 0", said(d.Ready, d.InFlight, d.Dead))
	}
	if again := r.State(); again != got {
		t.Error("got another picture at once, want everybody to share one")
	}
}

func TestWhatAKilledInstanceCountedIsNoLessThanWhatStands(t *testing.T) {
	r, _, _, _, _ := lab(t) // nothing was saved of three clicks that were admitted, one of which failed
	if got := r.State().Vouchers[0].Funnel.said(); got != "2 2 1 1 0" {
		t.Errorf("got %s, want the orders that are known of: 2 2 1 1 0", got)
	}
}

func TestWhatDoesNotAnswerIsUnknownAndTheRestIsShown(t *testing.T) {
	for name, tc := range map[string]struct {
		breaks              func(*Reader, *gate, *backlog, *store.Store)
		failed              []string
		funnel, gate, depth string
	}{
		"the gate": {func(_ *Reader, g *gate, _ *backlog, _ *store.Store) { g.down = true },
			[]string{"gate"}, "2 2 1 1 0", "unknown", "3"},
		"the queue": {func(_ *Reader, _ *gate, q *backlog, _ *store.Store) { q.err = errDown },
			[]string{"queue"}, "2 2 1 1 0", "1", "unknown"},
		"the database": {func(_ *Reader, _ *gate, _ *backlog, s *store.Store) { _ = s.Close() },
			[]string{"database"}, "", "unknown", "3"},
		"a queue that cannot tell": {func(r *Reader, _ *gate, _ *backlog, _ *store.Store) { r.Backlog = nil },
			[]string{}, "2 2 1 1 0", "1", "unknown"},
		"a gate that cannot be read": {func(r *Reader, _ *gate, _ *backlog, _ *store.Store) { r.Gate = nil },
			[]string{}, "2 2 1 1 0", "unknown", "3"},
		"there is no queue": {func(r *Reader, _ *gate, _ *backlog, _ *store.Store) { r.QueueUsed = false },
			[]string{}, "2 2 unknown 1 0", "1", "3"},
		"there is no stock at the gate": {func(r *Reader, _ *gate, _ *backlog, _ *store.Store) { r.Stockless = true },
			[]string{}, "2 2 1 1 0", "1", "3"},
	} {
		t.Run(name, func(t *testing.T) {
			r, g, q, s, _ := lab(t)
			tc.breaks(r, g, q, s)
			got := r.State()
			if diff := cmp.Diff(tc.failed, got.Failed); diff != "" {
				t.Error(diff)
			}
			depth := (*int64)(nil)
			if got.Queue.Depth != nil {
				depth = got.Queue.Depth.Ready
			}
			if said(got.InFlight) != tc.gate || said(depth) != tc.depth {
				t.Errorf("got %s in flight and %s ready, want %s and %s", said(got.InFlight), said(depth), tc.gate, tc.depth)
			}
			if tc.funnel == "" {
				if got.Vouchers != nil || got.Instances != nil || got.Letters != nil || got.Total.said() != "unknown unknown unknown unknown unknown" {
					t.Errorf("got %+v, want nothing of what the database knows", got)
				}
				return
			}
			if got.Total.said() != tc.funnel {
				t.Errorf("got %s, want %s", got.Total.said(), tc.funnel)
			}
		})
	}
}

func TestOneVoucherWithoutANumberMakesTheSumUnknown(t *testing.T) {
	one := int64(1)
	full := Funnel{Clicked: &one, Admitted: &one, Queued: &one, Committed: &one, Paid: &one, Refused: &Refused{Busy: 2}}
	part := Funnel{Committed: &one, Paid: &one}
	got := sum([]Voucher{{Funnel: full}, {Funnel: part}, {Funnel: full}})
	if got.said() != "unknown unknown unknown 3 3" || got.Refused != nil {
		t.Errorf("got %s %v", got.said(), got.Refused)
	}
	if got := sum([]Voucher{{Funnel: full}, {Funnel: full}}); got.said() != "2 2 2 2 2" || got.Refused.Busy != 4 || one != 1 {
		t.Errorf("got %s %v", got.said(), got.Refused)
	}
}

func TestAPictureThatTookLongIsTakenLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowStore{wait: 200 * time.Millisecond}
		r := &Reader{Store: slow, Log: slog.New(slog.DiscardHandler)}
		for range 150 {
			r.State()
			time.Sleep(10 * time.Millisecond)
		}
		if slow.n != 1 {
			t.Errorf("got %d pictures in 1.5 s, want one: it took %v", slow.n, slow.wait)
		}
		time.Sleep(time.Second)
		if r.State(); slow.n != 2 {
			t.Errorf("got %d pictures, want another one by now", slow.n)
		}
	})
}

// slowStore is empty, and takes its time to say so.
type slowStore struct {
	Store
	wait time.Duration
	n    int
}

func (s *slowStore) CountLetters(context.Context) (map[sale.LetterState]int64, error) {
	s.n++
	time.Sleep(s.wait)
	return nil, nil
}

func (s *slowStore) Instances(context.Context) ([]fleet.Instance, error) { return nil, nil }

func (s *slowStore) Vouchers(context.Context, time.Time, int) ([]sale.Voucher, error) {
	return nil, nil
}

func (s *slowStore) Tallies(context.Context, ...sale.ID) (map[sale.ID]sale.Tally, error) {
	return nil, nil
}

var _ reconcile.Gate = (*gate)(nil)

// aged is a gate whose vouchers have one order each that waits, as many minutes as
// the voucher's number.
type aged struct{ reconcile.Gate }

func (aged) Book(context.Context, sale.ID) (sale.Book, error) { return sale.Book{Marks: 1}, nil }

func (aged) Marked(_ context.Context, v sale.ID, _ uint64) ([]sale.Mark, uint64, error) {
	return []sale.Mark{{Age: time.Duration(v) * time.Minute}}, 0, nil
}

func TestTheLongestWaitIsThatOfAllVouchers(t *testing.T) {
	var s State
	accounts := make([]reconcile.Account, 4)
	for i, id := range []sale.ID{3, 9, 5, 99} {
		accounts[i].ID = id
	}
	accounts[3].Unreadable = "WRONGTYPE"
	(&Reader{Gate: aged{}}).waiting(t.Context(), &s, accounts, func(what string, err error) bool {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		return err != nil
	})
	if want := (9 * time.Minute).Milliseconds(); s.Oldest == nil || s.Oldest.Millis != want || said(s.InFlight) != "3" {
		t.Errorf("got %v, %s in flight, want %d ms and 3", s.Oldest, said(s.InFlight), want)
	}
}
