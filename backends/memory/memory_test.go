package memory_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"queuelab/backends/memory"
	"queuelab/queue"
	"queuelab/queue/queuetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, raw string) queue.Queue {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	q, err := memory.Open(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestConformance(t *testing.T) {
	for _, setting := range []string{"full=block", "full=reject", "capacity=128", "capacity=128&full=reject"} {
		t.Run(setting, func(t *testing.T) {
			queuetest.Run(t, queuetest.Harness{
				Open: func(t testing.TB, name string, params ...string) queue.Queue {
					return open(t, "memory://"+name+"?"+strings.Join(append(params, setting), "&"))
				},
				OpenErr: func(params ...string) error {
					q, err := memory.Open(t.Context(), &url.URL{Scheme: "memory", Host: "orders", RawQuery: strings.Join(append(params, setting), "&")})
					if err != nil {
						return err
					}
					return q.Close()
				},
				Redelivery: 50 * time.Millisecond,
				Arrival:    5 * time.Second,
			})
		})
	}
}

func pair(t testing.TB, q queue.Queue) (queue.Publisher, queue.Consumer) {
	t.Helper()
	t.Cleanup(func() { q.Close() })
	p, err := q.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := q.Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p, c
}

func messages(n int) []queue.Message {
	ms := make([]queue.Message, n)
	for i := range ms {
		ms[i].ID = fmt.Sprintf("m%d", i)
	}
	return ms
}

func receive(t testing.TB, c queue.Consumer, max int) []*queue.Delivery {
	t.Helper()
	ds, err := c.Receive(t.Context(), max)
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

func outcomes(err error, n int) []queue.Outcome {
	out := make([]queue.Outcome, n)
	for i := range out {
		out[i] = queue.OutcomeOf(err, i)
	}
	return out
}

const (
	accepted = queue.Accepted
	rejected = queue.Rejected
)

func TestAFullQueue(t *testing.T) {
	t.Run("RejectsWhatDoesNotFit", func(t *testing.T) {
		p, _ := pair(t, open(t, "memory://orders?capacity=2&full=reject"))
		err := p.Publish(t.Context(), messages(3)...)
		if diff := cmp.Diff([]queue.Outcome{accepted, accepted, rejected}, outcomes(err, 3)); diff != "" || !errors.Is(err, queue.ErrRejected) {
			t.Errorf("got %v (-want +got):\n%s", err, diff)
		}
	})
	t.Run("BlocksUntilAnAckMakesRoom", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, c := pair(t, open(t, "memory://orders?capacity=2"))
			done := make(chan error, 1)
			go func() { done <- p.Publish(t.Context(), messages(3)...) }()
			ds := receive(t, c, 2)
			synctest.Wait()
			select {
			case err := <-done:
				t.Fatalf("Publish of 3 into 2: got %v while 2 are in flight, want it to block", err)
			default:
			}
			if err := c.Ack(t.Context(), ds[0]); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Errorf("Publish: got %v, want nil once there is room", err)
			}
		})
	})
	t.Run("SaysWhatFitBeforeTheContextEnded", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, _ := pair(t, open(t, "memory://orders?capacity=2"))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := p.Publish(ctx, messages(3)...)
			if diff := cmp.Diff([]queue.Outcome{accepted, accepted, rejected}, outcomes(err, 3)); diff != "" || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v (-want +got):\n%s", err, diff)
			}
		})
	})
	t.Run("CloseEndsABlockedPublish", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, _ := pair(t, open(t, "memory://orders?capacity=2"))
			done := make(chan error, 1)
			go func() { done <- p.Publish(t.Context(), messages(3)...) }()
			synctest.Wait()
			p.Close()
			err := <-done
			if diff := cmp.Diff([]queue.Outcome{accepted, accepted, rejected}, outcomes(err, 3)); diff != "" || !errors.Is(err, queue.ErrClosed) {
				t.Errorf("got %v (-want +got):\n%s", err, diff)
			}
		})
	})
	t.Run("DeleteMakesRoom", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := open(t, "memory://orders?capacity=1")
			p, c := pair(t, q)
			done := make(chan error, 1)
			go func() { done <- p.Publish(t.Context(), messages(2)...) }()
			d := receive(t, c, 1)[0]
			synctest.Wait()
			if err := q.Delete(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Errorf("Publish: got %v, want nil", err)
			}
			if err := c.Ack(t.Context(), d); err == nil {
				t.Error("ack of a deleted message: got nil, want an error")
			}
		})
	})
	t.Run("ManyPublishersAndConsumersStallNowhere", func(t *testing.T) {
		q := open(t, "memory://orders?capacity=3")
		var wg sync.WaitGroup
		var got atomic.Int64
		const publishers, each = 8, 200
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 4 {
			_, c := pair(t, q)
			wg.Go(func() {
				for {
					ds, err := c.Receive(ctx, 2)
					if err != nil {
						return
					}
					c.Ack(t.Context(), ds...)
					if got.Add(int64(len(ds))) == publishers*each {
						cancel()
					}
				}
			})
		}
		for range publishers {
			p, _ := pair(t, q)
			wg.Go(func() {
				for _, m := range messages(each) {
					if err := p.Publish(t.Context(), m); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestReturnedMessagesKeepTheirPlace(t *testing.T) {
	p, c := pair(t, open(t, "memory://orders"))
	if err := p.Publish(t.Context(), messages(6)...); err != nil {
		t.Fatal(err)
	}
	ds := receive(t, c, 4)
	if err := c.Nack(t.Context(), ds[2], ds[0]); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range receive(t, c, 10) {
		got = append(got, fmt.Sprintf("%s/%d", d.ID, d.Attempt))
	}
	if diff := cmp.Diff([]string{"m0/2", "m2/2", "m4/1", "m5/1"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// A web framework's strings may point into a buffer that the next request
// reuses, and this queue is where that would show.
func TestPublishCopies(t *testing.T) {
	p, c := pair(t, open(t, "memory://orders"))
	buf := []byte("id key body name value")
	s := func(from, to int) string { return unsafe.String(&buf[from], to-from) }
	m := queue.Message{ID: s(0, 2), Key: s(3, 6), Body: buf[7:11], Headers: map[string]string{s(12, 16): s(17, 22)}}
	want := queue.Message{ID: "id", Key: "key", Body: []byte("body"), Headers: map[string]string{"name": "value"}}
	if err := p.Publish(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	for i := range buf {
		buf[i] = 'X'
	}
	if diff := cmp.Diff(want, receive(t, c, 1)[0].Message); diff != "" {
		t.Errorf("the delivery follows the caller's buffer (-want +got):\n%s", diff)
	}
}

func TestAMessageWithoutAnIDIsRejected(t *testing.T) {
	q := open(t, "memory://orders")
	p, _ := pair(t, q)
	err := p.Publish(t.Context(), queue.Message{ID: "a"}, queue.Message{})
	if diff := cmp.Diff([]queue.Outcome{rejected, rejected}, outcomes(err, 2)); diff != "" {
		t.Errorf("got %v (-want +got):\n%s", err, diff)
	}
	if b, _ := q.(queue.Backlogger).Backlog(t.Context()); b.Ready != 0 {
		t.Errorf("got %d messages in the queue, want 0", b.Ready)
	}
}

func TestBacklogAfterCloseCountsWhatIsLost(t *testing.T) {
	q := open(t, "memory://orders")
	p, c := pair(t, q)
	if err := p.Publish(t.Context(), messages(3)...); err != nil {
		t.Fatal(err)
	}
	receive(t, c, 2)
	q.Close()
	got, err := q.(queue.Backlogger).Backlog(t.Context())
	if want := (queue.Backlog{Ready: 3}); got != want || err != nil {
		t.Errorf("got %+v and %v, want %+v", got, err, want)
	}
}

func TestWrongURLs(t *testing.T) {
	for name, c := range map[string]struct{ url, says string }{
		"WithoutAName":             {"memory://", "name"},
		"WithAPort":                {"memory://orders:1", "letters"},
		"WithAPath":                {"memory://orders/x", "without a path"},
		"WithAUser":                {"memory://u:secret@orders", "without a user"},
		"WithoutRoom":              {"memory://orders?capacity=0", "from 1 to"},
		"WithTooMuchRoom":          {"memory://orders?capacity=99999999999", "from 1 to"},
		"WithAnUnknownFull":        {"memory://orders?full=drop", "block, reject"},
		"WithAGroup":               {"memory://orders?group=a", "capacity, full, preset"},
		"WithAnotherQueuesSetting": {"memory://orders?prefetch=1", "capacity, full, preset"},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := url.Parse(c.url)
			if err != nil {
				t.Fatal(err)
			}
			_, err = memory.Open(t.Context(), u)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: got error %v, want one that says %q", c.url, err, c.says)
			}
		})
	}
}

func BenchmarkPublishReceiveAck(b *testing.B) {
	p, c := pair(b, open(b, "memory://orders"))
	m := queue.Message{ID: "id", Key: "key", Body: make([]byte, 256)}
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Publish(b.Context(), m); err != nil {
			b.Fatal(err)
		}
		if err := c.Ack(b.Context(), receive(b, c, 1)...); err != nil {
			b.Fatal(err)
		}
	}
}
