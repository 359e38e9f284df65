package loop_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"queuelab/app/loop"
	"queuelab/app/reconcile"
	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/app/worker"
)

// frozen is a server that takes every question and answers none.
type frozen struct {
	sale.Store
	sale.Gate
	asked atomic.Int64
}

func (f *frozen) wait(ctx context.Context) error {
	f.asked.Add(1)
	<-ctx.Done()
	return ctx.Err()
}

func (f *frozen) list(ctx context.Context, _ time.Time) ([]sale.ID, error) {
	return nil, f.wait(ctx)
}

func (f *frozen) Orders(ctx context.Context, _ ...sale.ID) ([]sale.Order, error) {
	return nil, f.wait(ctx)
}

func (f *frozen) Left(ctx context.Context, _ sale.ID) (int64, bool, error) {
	return 0, false, f.wait(ctx)
}

func (f *frozen) Due(ctx context.Context) (store.Due, error) { return store.Due{}, f.wait(ctx) }

func (f *frozen) Relay(ctx context.Context, _ int) ([]sale.Order, int, error) {
	return nil, 0, f.wait(ctx)
}

func (f *frozen) Signals(ctx context.Context) ([]sale.Signal, error) { return nil, f.wait(ctx) }

type sweeps struct {
	f *frozen
	worker.SweepStore
}

func (s sweeps) Due(ctx context.Context) (store.Due, error) { return s.f.Due(ctx) }

type relays struct {
	f *frozen
	worker.RelayStore
}

func (r relays) Relay(ctx context.Context, n int) ([]sale.Order, int, error) {
	return r.f.Relay(ctx, n)
}

type starts struct {
	f *frozen
	sale.StartStore
}

func (s starts) Signals(ctx context.Context) ([]sale.Signal, error) { return s.f.Signals(ctx) }

// Each of those that look again and again gives a look up, looks once more, and
// has one line for all of it.
func TestWhatIsFrozenIsAskedAgainAndToldOnce(t *testing.T) {
	type party struct {
		run  func(context.Context)
		line string
	}
	for name, make := range map[string]func(t *testing.T, f *frozen, log *slog.Logger) party{
		"rescan": func(_ *testing.T, f *frozen, log *slog.Logger) party {
			return party{(&worker.Rescan{Vouchers: f.list, Log: log, Age: time.Second}).Run, "orders without an answer are not looked after"}
		},
		"sweep": func(_ *testing.T, f *frozen, log *slog.Logger) party {
			return party{(&worker.Sweep{Store: sweeps{f: f}, Log: log}).Run, "what is due after an order's decision is not done"}
		},
		"relay": func(_ *testing.T, f *frozen, log *slog.Logger) party {
			return party{(&worker.Relay{Store: relays{f: f}, Log: log}).Run, "orders wait for the database of the stock"}
		},
		"reconciler": func(_ *testing.T, f *frozen, log *slog.Logger) party {
			return party{(&reconcile.Reconciler{Vouchers: f.list, Log: log, Every: time.Second}).Run, "gate, queue and database are not compared"}
		},
		"starter": func(_ *testing.T, f *frozen, log *slog.Logger) party {
			return party{(&sale.Starter{Store: starts{f: f}, Log: log}).Run, "start signals are not looked for"}
		},
		"results": func(t *testing.T, f *frozen, log *slog.Logger) party {
			r := sale.NewResults(f, loop.Say(log, "decisions"))
			s := &sale.Service{Results: r, Store: decided{frozen: f}}
			_, _, cancel, err := s.Follow(t.Context(), sale.Reader{Operator: true}, 1)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(cancel)
			return party{r.Run, "decisions"}
		},
		"board": func(t *testing.T, f *frozen, _ *slog.Logger) party {
			b := sale.NewBoard(f)
			t.Cleanup(b.Watch(1).Close)
			return party{run: b.Run}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				f := &frozen{}
				p := make(t, f, slog.New(slog.NewTextHandler(&log, nil)))
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() { p.run(ctx) })
				time.Sleep(2 * time.Minute)
				cancel()
				wg.Wait()
				if got := f.asked.Load(); got < 5 {
					t.Errorf("got %d looks in 2 minutes, want a look that gets no answer to end", got)
				}
				if got := strings.Count(log.String(), p.line); p.line != "" && got != 1 || strings.Count(log.String(), "\n") > 1 {
					t.Errorf("got log\n%swant one line %q", log.String(), p.line)
				}
			})
		})
	}
}

// decided is a database that tells of one order once, before it freezes.
type decided struct{ *frozen }

func (d decided) Orders(_ context.Context, ids ...sale.ID) ([]sale.Order, error) {
	return []sale.Order{{Reservation: sale.Reservation{OrderID: ids[0]}, Status: sale.Queued}}, nil
}
