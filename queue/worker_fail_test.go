package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/queue"
)

// noNack is a consumer of a queue that cannot nack.
type noNack struct{ queue.Consumer }

func (noNack) Nack(context.Context, ...*queue.Delivery) error { return queue.ErrUnsupported }

// failing notes each handling and fails those whose id begins with "bad".
func (r *rig) failing(_ context.Context, ds []*queue.Delivery) []error {
	errs := make([]error, len(ds))
	for i, d := range ds {
		r.note("handle %s/%d", d.ID, d.Attempt)
		if strings.HasPrefix(d.ID, "bad") {
			errs[i] = errors.New("cannot do " + d.ID)
		}
	}
	return errs
}

func (r *rig) deadLetter(_ context.Context, d *queue.Delivery, cause error) error {
	r.note("dead %s: %v", d.ID, cause)
	return nil
}

func TestWorkerGivesUp(t *testing.T) {
	t.Run("AfterMaxAttemptsTheMessageIsDeadLetteredAndAcked", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("bad")
			r.run(&queue.Worker{Handle: r.failing, MaxAttempts: 3, DeadLetter: r.deadLetter}, time.Minute)
			r.want("handle bad/1", "handle bad/2", "handle bad/3", "dead bad: cannot do bad")
			r.wantLeft()
		})
	})
	t.Run("WithoutNackItIsRetriedInItsLane", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("bad@k", "good@k")
			start := time.Now()
			r.run(&queue.Worker{
				Consumer: noNack{r.c}, MaxAttempts: 3, DeadLetter: r.deadLetter,
				Backoff: func(attempt int) time.Duration { return time.Duration(attempt) * time.Second },
				Handle: func(ctx context.Context, ds []*queue.Delivery) []error {
					r.note("at %v", time.Since(start))
					return r.failing(ctx, ds)
				}}, time.Minute)
			// The next of the key waits, so that its order holds.
			r.want("at 0s", "handle bad/1", "at 1s", "handle bad/1", "at 3s", "handle bad/1", "dead bad: cannot do bad",
				"at 3s", "handle good/1")
			r.wantLeft()
		})
	})
	t.Run("AttemptsAreCountedBeforeHandling", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("bad", "killer")
			counts := map[string]int{"killer": 2} // which took the process down twice
			r.run(&queue.Worker{
				Handle: r.failing, MaxAttempts: 2, DeadLetter: r.deadLetter,
				Attempts: func(_ context.Context, ds []*queue.Delivery) ([]int, func(context.Context, []*queue.Delivery) error, error) {
					ns := make([]int, len(ds))
					for i, d := range ds {
						counts[d.ID]++
						r.note("count %s", d.ID)
						ns[i] = counts[d.ID]
					}
					return ns, func(_ context.Context, failed []*queue.Delivery) error {
						for _, d := range ds {
							how := "done"
							if slices.Contains(failed, d) {
								how = "failed"
							}
							r.note("%s was %s", d.ID, how)
						}
						return nil
					}, nil
				}}, time.Minute)
			if got, want := slices.Index(r.log, "dead killer: "+queue.ErrAttempts.Error()) >= 0, true; got != want {
				t.Errorf("got log %q, want killer dead-lettered because of ErrAttempts", r.log)
			}
			if slices.ContainsFunc(r.log, func(s string) bool { return strings.HasPrefix(s, "handle killer") }) {
				t.Errorf("got log %q, want killer not handled again", r.log)
			}
			if got, want := slices.Index(r.log, "count bad"), slices.Index(r.log, "handle bad/1"); got > want {
				t.Errorf("got log %q, want bad counted before it is handled", r.log)
			}
			ended := slices.DeleteFunc(slices.Clone(r.log), func(s string) bool { return !strings.Contains(s, " was ") })
			if d := cmp.Diff([]string{"bad was failed", "killer was done", "bad was done"}, ended); d != "" {
				t.Errorf("what was said of the attempts' ends (-want +got):\n%s", d)
			}
			r.wantLeft()
		})
	})
	t.Run("WhereCountingFailsTheWorkerCountsItself", func(t *testing.T) {
		for heard, count := range map[string]func(context.Context, []*queue.Delivery) ([]int, func(context.Context, []*queue.Delivery) error, error){
			"no database": func(context.Context, []*queue.Delivery) ([]int, func(context.Context, []*queue.Delivery) error, error) {
				return nil, nil, errors.New("no database")
			},
			"got 2 numbers for 1 deliveries": func(context.Context, []*queue.Delivery) ([]int, func(context.Context, []*queue.Delivery) error, error) {
				return []int{1, 1}, nil, nil
			},
		} {
			bubble(t, func(r *rig) {
				r.publish("bad")
				r.run(&queue.Worker{Consumer: noNack{r.c}, Handle: r.failing, MaxAttempts: 2, DeadLetter: r.deadLetter, Attempts: count}, time.Minute)
				r.want("handle bad/1", "handle bad/1", "dead bad: cannot do bad")
				r.heard(heard)
				r.wantLeft()
			})
		}
	})
	t.Run("WhereDeadLetterFailsTheMessageIsKept", func(t *testing.T) {
		for _, nack := range []bool{true, false} {
			t.Run(fmt.Sprintf("nack=%v", nack), func(t *testing.T) {
				bubble(t, func(r *rig) {
					r.publish("bad")
					tries := 0
					w := &queue.Worker{
						Handle: r.failing, MaxAttempts: 1, Backoff: func(int) time.Duration { return time.Second },
						DeadLetter: func(ctx context.Context, d *queue.Delivery, cause error) error {
							if tries++; tries < 3 {
								return errors.New("no dead letters today")
							}
							return r.deadLetter(ctx, d, cause)
						}}
					if !nack {
						w.Consumer = noNack{r.c}
					}
					r.run(w, time.Minute)
					r.want("handle bad/1", "dead bad: "+queue.ErrAttempts.Error())
					r.heard("no dead letters today")
					r.wantLeft()
				})
			})
		}
	})
	t.Run("APanicIsAnErrorOfItsDeliveries", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("bad", "good")
			cause := errors.New("nil map")
			var dead error
			r.run(&queue.Worker{
				MaxAttempts: 2,
				Handle: func(ctx context.Context, ds []*queue.Delivery) []error {
					if ds[0].ID == "bad" {
						panic(cause)
					}
					return nil
				},
				DeadLetter: func(_ context.Context, d *queue.Delivery, cause error) error {
					dead = cause
					return nil
				}}, time.Minute)
			if !errors.Is(dead, cause) || !strings.Contains(dead.Error(), "worker_fail_test.go") {
				t.Errorf("dead letter: got cause %v, want what the handler panicked with, and where", dead)
			}
			r.wantLeft()
		})
	})
	t.Run("AHandlerThatWasToldToStopHasUsedUpNothing", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("a")
			r.run(&queue.Worker{MaxAttempts: 1, DeadLetter: r.deadLetter, Handle: func(ctx context.Context, _ []*queue.Delivery) []error {
				<-ctx.Done()
				return []error{ctx.Err()}
			}}, time.Second)
			r.want()
			r.wantLeft("a/2")
		})
	})
	t.Run("ASecondCopyStartsWithAFreshCount", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("copy")
			n := 0
			r.run(&queue.Worker{MaxAttempts: 2, DeadLetter: r.deadLetter, Handle: func(ctx context.Context, ds []*queue.Delivery) []error {
				n++
				r.note("handle %s/%d", ds[0].ID, ds[0].Attempt)
				if n == 2 {
					r.publish("copy") // a publisher that did not hear the first answer
				}
				if n%2 == 1 {
					return []error{errors.New("not yet")}
				}
				return nil
			}}, time.Minute)
			r.want("handle copy/1", "handle copy/2", "handle copy/1", "handle copy/2")
			r.wantLeft()
		})
	})
	t.Run("AFailureWhileDrainingIsLeftToClose", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("bad")
			nacks := &flaky{Consumer: r.c, nack: 1 << 30}
			r.run(&queue.Worker{Consumer: nacks, DrainTimeout: time.Minute, Handle: func(ctx context.Context, ds []*queue.Delivery) []error {
				time.Sleep(2 * time.Second)
				return r.failing(ctx, ds)
			}}, time.Second)
			if got, want := nacks.nack, 1<<30; got != want {
				t.Errorf("got %d nacks after the stop, want none", want-got)
			}
			r.wantLeft("bad/2")
		})
	})
	t.Run("InABatchEachHasItsOwnEnd", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("killer", "bad", "good")
			r.run(&queue.Worker{
				Consumer: &inOneGo{Consumer: r.c}, Batch: 3, Handle: r.failing, MaxAttempts: 1, DeadLetter: r.deadLetter,
				Attempts: func(context.Context, []*queue.Delivery) ([]int, func(context.Context, []*queue.Delivery) error, error) {
					return []int{2, 1, 1}, nil, nil
				}}, time.Minute)
			r.want("handle bad/1", "handle good/1", "dead killer: "+queue.ErrAttempts.Error(), "dead bad: cannot do bad")
			r.wantLeft()
		})
	})
	t.Run("AWrongNumberOfErrorsFailsTheBatch", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("a")
			r.run(&queue.Worker{MaxAttempts: 1, DeadLetter: r.deadLetter, Handle: func(context.Context, []*queue.Delivery) []error {
				return make([]error, 3)
			}}, time.Minute)
			r.want("dead a: the handler returned 3 errors for 1 deliveries")
		})
	})
}

func (r *rig) heard(part string) {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.ContainsFunc(r.errs, func(s string) bool { return strings.Contains(s, part) }) {
		r.Errorf("OnError heard %q, want something with %q", r.errs, part)
	}
}

func TestWorkerBackoff(t *testing.T) {
	t.Run("AWaitingMessageHoldsUpNobody", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("bad@k", "good1@k", "good2@other", "good3")
			start := time.Now()
			r.run(&queue.Worker{
				Backoff: func(attempt int) time.Duration { return time.Duration(attempt) * time.Minute },
				Handle: func(ctx context.Context, ds []*queue.Delivery) []error {
					r.note("at %v", time.Since(start))
					return r.failing(ctx, ds)
				}}, 4*time.Minute)
			r.want("at 0s", "handle bad/1", "at 0s", "handle good1/1", "at 0s", "handle good2/1", "at 0s", "handle good3/1",
				"at 1m0s", "handle bad/2", "at 3m0s", "handle bad/3")
			r.wantLeft("bad/4")
		})
	})
	t.Run("WithoutNackOtherLanesGoOn", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("bad@k")
			for i := range 40 {
				r.publish(fmt.Sprintf("good%d", i))
			}
			start, goods := time.Now(), 0
			r.run(&queue.Worker{
				Lanes: 8, Consumer: noNack{r.c}, Backoff: func(int) time.Duration { return time.Hour },
				Handle: func(ctx context.Context, ds []*queue.Delivery) []error {
					r.mu.Lock()
					if ds[0].ID != "bad" && time.Since(start) == 0 {
						goods++
					}
					r.mu.Unlock()
					return r.failing(ctx, ds)
				}}, time.Minute)
			// Those without a key that fell to the waiting lane must wait too.
			if want := 40 * 6 / 8; goods < want {
				t.Errorf("got %d of 40 other messages handled while one waits, want at least %d", goods, want)
			}
		})
	})
}

// flaky fails the first calls of each operation.
type flaky struct {
	queue.Consumer
	mu                 sync.Mutex
	receive, ack, nack int
}

var errFlaky = errors.New("broker is away")

func (f *flaky) fails(left *int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	*left--
	return *left >= 0
}

func (f *flaky) Receive(ctx context.Context, max int) ([]*queue.Delivery, error) {
	if f.fails(&f.receive) {
		return nil, errFlaky
	}
	return f.Consumer.Receive(ctx, max)
}

func (f *flaky) Ack(ctx context.Context, ds ...*queue.Delivery) error {
	if f.fails(&f.ack) {
		return errFlaky
	}
	return f.Consumer.Ack(ctx, ds...)
}

func (f *flaky) Nack(ctx context.Context, ds ...*queue.Delivery) error {
	if len(ds) > 0 && f.fails(&f.nack) {
		return errFlaky
	}
	return f.Consumer.Nack(ctx, ds...)
}

func TestWorkerSurvivesErrorsOfTheQueue(t *testing.T) {
	t.Run("AFailedReceiveIsReportedAndTriedAgain", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("a")
			r.run(&queue.Worker{Consumer: &flaky{Consumer: r.c, receive: 2}, Handle: r.failing}, time.Minute)
			r.want("handle a/1")
			r.heard("receive: broker is away")
			r.wantLeft()
		})
	})
	t.Run("AFailedAckIsTriedAgain", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("a")
			r.run(&queue.Worker{Consumer: &flaky{Consumer: r.c, ack: 3}, Handle: r.failing}, time.Minute)
			r.want("handle a/1")
			r.wantLeft()
		})
	})
	t.Run("AFailedNackIsTriedAgain", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("bad")
			r.run(&queue.Worker{Consumer: &flaky{Consumer: r.c, nack: 1}, Handle: r.failing, MaxAttempts: 2, DeadLetter: r.deadLetter}, time.Minute)
			r.want("handle bad/1", "handle bad/2", "dead bad: cannot do bad")
			r.wantLeft()
		})
	})
	for _, tries := range []int{5, 12, 25} { // within its time, and beyond it
		t.Run(fmt.Sprintf("WhatFails%dTimesIsSettledAllTheSame", tries), func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.publish("bad", "good")
				r.run(&queue.Worker{Consumer: &flaky{Consumer: r.c, nack: tries, ack: tries}, Handle: r.failing, MaxAttempts: 2, DeadLetter: r.deadLetter}, 5*time.Minute)
				r.want("handle bad/1", "handle good/1", "handle bad/2", "dead bad: cannot do bad")
				r.wantLeft()
			})
		})
	}
	t.Run("WhatIsNotSettledYetIsHeld", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("1", "2", "3", "4", "5", "6")
			r.run(&queue.Worker{Consumer: &flaky{Consumer: r.c, ack: 1 << 30}, Handle: r.failing}, 5*time.Minute)
			r.want("handle 1/1", "handle 2/1", "handle 3/1", "handle 4/1") // as many as it may hold
			r.wantLeft("1/2", "2/2", "3/2", "4/2", "5/1", "6/1")
		})
	})
	t.Run("AnAckThatNeverSucceedsIsReported", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.publish("a")
			r.run(&queue.Worker{Consumer: &flaky{Consumer: r.c, ack: 1 << 30}, Handle: r.failing}, time.Minute)
			r.heard("ack: broker is away")
			r.wantLeft("a/2")
		})
	})
}
