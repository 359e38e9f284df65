package postgres

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

func TestAKeyIsOneConsumersAtATime(t *testing.T) {
	for order, want := range map[string][]string{"key": {"b1"}, "consumer": {"a2", "a3", "b1"}} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			q := open(t, brokertest.Start(t, "postgres", ""), "lease=1m&order="+order)
			publish(t, q, append(messages("a", "a1", "a2", "a3"), messages("b", "b1")...)...)
			one, other := newConsumer(t, q), newConsumer(t, q)
			first := take(t, one, 1)
			if diff := cmp.Diff(want, idsOf(take(t, other, 10))); diff != "" {
				t.Errorf("while another consumer holds a1 (-want +got):\n%s", diff)
			}
			if order != "key" {
				return
			}
			if err := one.Ack(soon(t), first...); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"a2", "a3"}, idsOf(take(t, other, 10))); diff != "" {
				t.Errorf("after its ack (-want +got):\n%s", diff)
			}
		})
	}
}

// Several consumers at once, some of whose deliveries come again: those of a key
// are acked in the order of their publishing.
func TestTheOrderOfKeysHoldsForAllConsumersTogether(t *testing.T) {
	t.Parallel()
	const consumers, keys, each = 4, 3, 40
	q := open(t, brokertest.Start(t, "postgres", ""), "lease=1m&poll=5ms&order=key")
	var ms []queue.Message
	for i := range keys * each {
		ms = append(ms, messages(fmt.Sprint("k", i%keys), fmt.Sprintf("%03d", i))...)
	}
	var mu sync.Mutex
	last := map[string]string{}
	nacked := map[string]bool{}
	left := len(ms)
	done := make(chan struct{})
	settling := soon(t)
	ctx, cancel := context.WithCancel(settling)
	var wg sync.WaitGroup
	for range consumers {
		c := newConsumer(t, q)
		wg.Go(func() {
			for {
				ds, err := c.Receive(ctx, 3)
				if err != nil {
					return
				}
				for i, d := range ds {
					mu.Lock()
					back := i == len(ds)-1 && d.ID[2] == '5' && !nacked[d.ID]
					nacked[d.ID] = nacked[d.ID] || back
					if !back {
						if d.ID < last[d.Key] {
							t.Errorf("key %s: %s was acked after %s", d.Key, d.ID, last[d.Key])
						}
						last[d.Key] = d.ID
						if left--; left == 0 {
							close(done)
						}
					}
					mu.Unlock()
					settle := c.Ack
					if back {
						settle = c.Nack
					}
					if err := settle(settling, d); err != nil {
						t.Errorf("settle %s: %v", d.ID, err)
					}
				}
			}
		})
	}
	publish(t, q, ms...)
	select {
	case <-done:
	case <-ctx.Done():
		t.Errorf("%d of %d messages are left", left, len(ms))
	}
	cancel()
	wg.Wait()
}
