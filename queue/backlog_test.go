package queue_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"queuelab/queue"
)

// batches is a handler that notes what it gets, and takes a second over it.
func (r *rig) batches(_ context.Context, ds []*queue.Delivery) []error {
	ids := make([]string, len(ds))
	for i, d := range ds {
		ids[i] = d.ID
	}
	r.note("%s", strings.Join(ids, " "))
	time.Sleep(time.Second)
	return nil
}

func TestWorkerBatches(t *testing.T) {
	t.Run("WhatLiesTogetherIsHandledTogetherWhateverItsKeys", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("a@1", "b@2", "c@3", "d@4", "e", "f@6")
			r.run(&queue.Worker{Consumer: &inOneGo{Consumer: r.c}, Lanes: 1, Batch: 3, Handle: r.batches}, time.Minute)
			r.want("a b c", "d e f")
		})
	})
	t.Run("AKeyThatALaneHasIsPassedOverAndComesNext", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("a@k", "b@k", "c", "d@k", "e")
			var mu sync.Mutex
			held := 0
			r.run(&queue.Worker{Consumer: &inOneGo{Consumer: r.c}, Lanes: 3, Batch: 1, Handle: func(ctx context.Context, ds []*queue.Delivery) []error {
				if ds[0].Key == "k" {
					mu.Lock()
					held++
					if held != 1 {
						t.Errorf("got %d lanes with the key at once, want one", held)
					}
					mu.Unlock()
					defer func() {
						mu.Lock()
						defer mu.Unlock()
						held--
					}()
				}
				return r.batches(ctx, ds)
			}}, 1500*time.Millisecond)
			r.mu.Lock()
			defer r.mu.Unlock()
			if got := fmt.Sprint(r.log); len(r.log) != 4 || r.log[3] != "b" || strings.Contains(got, "d") {
				t.Errorf("got %s, want a, c and e at once, and then b", got)
			}
		})
	})
	t.Run("WhatComesBehindAKeyInHandIsHandledAtOnce", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("a@k")
			time.AfterFunc(50*time.Millisecond, func() { r.publish("b@k") })
			time.AfterFunc(100*time.Millisecond, func() { r.publish("c") })
			r.run(&queue.Worker{Consumer: r.c, Lanes: 2, Batch: 3, Handle: r.batches}, 200*time.Millisecond)
			r.want("a", "c")
		})
	})
	t.Run("WhileOthersWorkABatchWaitsForMoreButNotForLong", func(t *testing.T) {
		bubble(t, func(r *rig) {
			done := make(chan error, 1)
			go func() {
				done <- (&queue.Worker{Consumer: r.c, Lanes: 3, Batch: 3, Linger: 100 * time.Millisecond, Handle: r.batches}).Run(r.ctx)
			}()
			synctest.Wait()
			for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
				r.publish(id) // a has nobody to wait for, and b, c and d are full
				synctest.Wait()
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(70 * time.Millisecond)
			synctest.Wait()
			r.want("a", "b c d")
			time.Sleep(30 * time.Millisecond)
			synctest.Wait()
			r.want("a", "b c d", "e f")
			r.end()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("WhatWaitsIsHandledOnceAllOthersAreDone", func(t *testing.T) {
		bubble(t, func(r *rig) {
			began := time.Now()
			r.publish("a", "b", "c")
			r.run(&queue.Worker{Consumer: &inOneGo{Consumer: r.c}, Lanes: 2, Batch: 2, Linger: time.Hour, Handle: func(ctx context.Context, ds []*queue.Delivery) []error {
				if len(ds) == 1 && time.Since(began) != time.Second {
					t.Errorf("got the rest after %v, want it after the second of the others", time.Since(began))
				}
				return r.batches(ctx, ds)
			}}, time.Minute)
			r.want("a b", "c")
		})
	})
}
