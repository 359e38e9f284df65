package ledger_test

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/backends/memory"
	"queuelab/bench/ledger"
	"queuelab/bench/load"
	"queuelab/queue"
)

// faulty spoils what a sound consumer delivers: receive may drop deliveries or
// give them twice, and gets each one with its place in the order of arrival.
type faulty struct {
	queue.Consumer
	n       int
	receive func(n int, d *queue.Delivery) []*queue.Delivery
}

func (f *faulty) Receive(ctx context.Context, most int) ([]*queue.Delivery, error) {
	for {
		ds, err := f.Consumer.Receive(ctx, most)
		var out []*queue.Delivery
		for _, d := range ds {
			f.n++
			out = append(out, f.receive(f.n, d)...)
		}
		if err != nil || len(out) > 0 {
			return out, err
		}
	}
}

// The whole path over a real queue: generator, decorators, handler, account.
func TestTheLedgerSaysWhatAFaultyQueueDoes(t *testing.T) {
	const sent, every = 2000, 1000
	same := func(n int, d *queue.Delivery) []*queue.Delivery { return []*queue.Delivery{d} }
	ackEarly := func(c queue.Consumer) func(int, *queue.Delivery) []*queue.Delivery {
		return func(n int, d *queue.Delivery) []*queue.Delivery {
			c.Ack(t.Context(), d)
			if n%every == 0 {
				return nil // its consumer died with it
			}
			return []*queue.Delivery{d}
		}
	}
	var held *queue.Delivery
	for _, c := range []struct {
		name    string
		receive func(c queue.Consumer) func(n int, d *queue.Delivery) []*queue.Delivery
		want    []string
	}{
		{"a sound queue", func(queue.Consumer) func(int, *queue.Delivery) []*queue.Delivery { return same }, nil},
		{"one in a thousand is dropped", func(queue.Consumer) func(int, *queue.Delivery) []*queue.Delivery {
			return func(n int, d *queue.Delivery) []*queue.Delivery {
				if n%every == 0 {
					return nil
				}
				return []*queue.Delivery{d}
			}
		}, []string{"2 lost: accepted and never delivered"}},
		{"one in a thousand comes twice", func(queue.Consumer) func(int, *queue.Delivery) []*queue.Delivery {
			return func(n int, d *queue.Delivery) []*queue.Delivery {
				if n%every == 0 {
					return []*queue.Delivery{d, queue.NewDelivery(d.Message, 2, nil)}
				}
				return []*queue.Delivery{d}
			}
		}, []string{"2 redelivered", "2 effect duplicates"}},
		{"one in a thousand is late", func(queue.Consumer) func(int, *queue.Delivery) []*queue.Delivery {
			return func(n int, d *queue.Delivery) []*queue.Delivery {
				switch {
				case n%every == 10:
					held = d
					return nil
				case n%every == 20:
					return []*queue.Delivery{d, held}
				}
				return []*queue.Delivery{d}
			}
		}, []string{"2 reordered"}},
		{"the queue acks as it delivers, and its consumer dies", ackEarly, []string{"2 lost: accepted and never delivered"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger")
			w, err := ledger.Create(path, 1)
			if err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse("memory://test?capacity=4096")
			if err != nil {
				t.Fatal(err)
			}
			q, err := memory.Open(t.Context(), u)
			if err != nil {
				t.Fatal(err)
			}
			defer q.Close()
			inner, err := q.Consumer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			p, err := q.Publisher(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			spoilt := &faulty{Consumer: inner, receive: c.receive(inner)}
			ctx, stop := context.WithCancel(t.Context())
			var work sync.WaitGroup
			work.Go(func() { handle(t, ctx, ledger.RecordConsumer(spoilt, w), w) })
			stats, err := load.Run(t.Context(), load.Generator{Pacer: load.Constant(20_000), Publisher: ledger.RecordPublisher(p, w),
				Message: load.Source{Trial: 1}.Messages(), Count: sent, MaxInFlight: 1})
			if err != nil || stats.Accepted != sent {
				t.Fatalf("load: got %+v, %v", stats, err)
			}
			drain(t, q)
			stop()
			work.Wait()
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			rs, err := ledger.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			r := ledger.Account(ledger.Input{Records: rs, Effects: ledger.EffectsOf(rs)})
			if diff := cmp.Diff(c.want, r.Findings()); diff != "" || r.Sent != sent || r.Accepted != sent {
				t.Errorf("findings (-want +got):\n%s, counts %+v", diff, r.Counts)
			}
		})
	}
}

// handle is a consumer that does its work: effect, then ack.
func handle(t *testing.T, ctx context.Context, c queue.Consumer, w *ledger.Writer) {
	for {
		ds, err := c.Receive(ctx, 16)
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("Receive: %v", err)
			}
			return
		}
		for _, d := range ds {
			ledger.RecordEffect(w, d)
		}
		// A copy that a faulty queue made up is not known to the sound one.
		_ = c.Ack(context.WithoutCancel(ctx), ds...)
	}
}

// drain waits until nothing waits in the queue any more.
func drain(t *testing.T, q queue.Queue) {
	deadline := time.Now().Add(20 * time.Second)
	for {
		b, err := q.(queue.Backlogger).Backlog(t.Context())
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the queue does not run dry: %+v, %v", b, err)
		}
		if b.Ready == 0 {
			return
		}
		runtime.Gosched()
	}
}
