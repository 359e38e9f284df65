package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"queuelab/queue"
)

var errBroker = errors.New("connection reset")

func deliveries(n int) []*queue.Delivery {
	ds := make([]*queue.Delivery, n)
	for i := range ds {
		ds[i] = queue.NewDelivery(queue.Message{ID: fmt.Sprint(i)}, 1, i)
	}
	return ds
}

func TestSettle(t *testing.T) {
	for name, c := range map[string]struct {
		before  []int // settled before
		do      error // what the backend says of the fresh ones
		want    []error
		settled []bool // afterwards
	}{
		"AllFreshAndDone":             {nil, nil, []error{nil, nil, nil}, []bool{true, true, true}},
		"AllSettledBefore":            {[]int{0, 1, 2}, nil, []error{queue.ErrSettled, queue.ErrSettled, queue.ErrSettled}, []bool{true, true, true}},
		"SomeSettledBefore":           {[]int{1}, nil, []error{nil, queue.ErrSettled, nil}, []bool{true, true, true}},
		"AFailureLeavesThemUnsettled": {nil, errBroker, []error{errBroker, errBroker, errBroker}, []bool{false, false, false}},
		"AFailureLeavesOnlyTheFreshUnsettled": {[]int{0}, errBroker,
			[]error{queue.ErrSettled, errBroker, errBroker}, []bool{true, false, false}},
		"ALostLeaseIsAnEnd": {nil, queue.ErrLeaseLost, []error{queue.ErrLeaseLost, queue.ErrLeaseLost, queue.ErrLeaseLost}, []bool{true, true, true}},
		"EachHasAnOutcomeOfItsOwn": {nil, &queue.SettleError{Errs: []error{nil, queue.ErrLeaseLost, errBroker}},
			[]error{nil, queue.ErrLeaseLost, errBroker}, []bool{true, true, false}},
		"OutcomesAreThoseOfTheFreshOnes": {[]int{0}, &queue.SettleError{Errs: []error{errBroker, nil}},
			[]error{queue.ErrSettled, errBroker, nil}, []bool{true, false, true}},
		"AWrappedSettleErrorCountsToo": {nil, fmt.Errorf("ack: %w", &queue.SettleError{Errs: []error{errBroker, nil, nil}}),
			[]error{errBroker, nil, nil}, []bool{false, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			ds := deliveries(3)
			for _, i := range c.before {
				queue.Settle(ds[i:i+1], func([]*queue.Delivery) error { return nil })
			}
			err := queue.Settle(ds, func([]*queue.Delivery) error { return c.do })
			got := make([]error, len(ds))
			settled := make([]bool, len(ds))
			for i, d := range ds {
				settled[i] = d.Settled()
				if got[i] = err; err != nil {
					var se *queue.SettleError
					if errors.As(err, &se) {
						got[i] = se.Errs[i]
					}
				}
				if queue.SettledOK(err, i) != (c.want[i] == nil) {
					t.Errorf("SettledOK(%v, %d): got %v, want %v", err, i, queue.SettledOK(err, i), c.want[i] == nil)
				}
			}
			if diff := cmp.Diff(c.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.settled, settled); diff != "" {
				t.Errorf("settled (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("NoneIsNoCall", func(t *testing.T) {
		if err := queue.Settle(nil, func([]*queue.Delivery) error { panic("called") }); err != nil {
			t.Errorf("got %v, want nil", err)
		}
	})
	t.Run("OneTwiceInACallIsSettledOnce", func(t *testing.T) {
		d := deliveries(1)[0]
		var n int
		err := queue.Settle([]*queue.Delivery{d, d}, func(fresh []*queue.Delivery) error { n = len(fresh); return nil })
		if n != 1 || !queue.SettledOK(err, 0) || queue.SettledOK(err, 1) || !errors.Is(err, queue.ErrSettled) {
			t.Errorf("got %d fresh and %v, want 1, nil for the first and ErrSettled for the second", n, err)
		}
	})
	t.Run("AFailedOneCanBeTriedAgain", func(t *testing.T) {
		ds := deliveries(1)
		queue.Settle(ds, func([]*queue.Delivery) error { return errBroker })
		if err := queue.Settle(ds, func([]*queue.Delivery) error { return nil }); err != nil {
			t.Errorf("got %v, want nil", err)
		}
	})
	t.Run("OfManyAtOnceOneWins", func(t *testing.T) {
		ds := deliveries(100)
		var calls atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				queue.Settle(ds, func(fresh []*queue.Delivery) error { calls.Add(int64(len(fresh))); return nil })
			})
		}
		wg.Wait()
		if got, want := calls.Load(), int64(len(ds)); got != want {
			t.Errorf("got %d deliveries handed to the backend, want %d: each once", got, want)
		}
	})
	t.Run("TheReceiptIsTheBackends", func(t *testing.T) {
		if got, want := deliveries(3)[2].Receipt(), 2; got != want {
			t.Errorf("got receipt %v, want %v", got, want)
		}
	})
}

func TestOutcomeOf(t *testing.T) {
	partial := &queue.PublishError{
		Outcomes: []queue.Outcome{queue.Accepted, queue.Rejected, queue.Unknown},
		Err:      fmt.Errorf("full: %w", queue.ErrRejected),
	}
	for name, c := range map[string]struct {
		err  error
		want [3]queue.Outcome
	}{
		"NilIsAccepted":                 {nil, [3]queue.Outcome{}},
		"ErrRejectedRejectsAll":         {queue.Reject(errBroker), [3]queue.Outcome{queue.Rejected, queue.Rejected, queue.Rejected}},
		"ErrClosedRejectsAll":           {fmt.Errorf("x: %w", queue.ErrClosed), [3]queue.Outcome{queue.Rejected, queue.Rejected, queue.Rejected}},
		"ATimeOutIsUnknown":             {context.DeadlineExceeded, [3]queue.Outcome{queue.Unknown, queue.Unknown, queue.Unknown}},
		"AResetIsUnknown":               {errBroker, [3]queue.Outcome{queue.Unknown, queue.Unknown, queue.Unknown}},
		"APublishErrorSaysEach":         {partial, [3]queue.Outcome{queue.Accepted, queue.Rejected, queue.Unknown}},
		"AWrappedPublishErrorToo":       {fmt.Errorf("x: %w", partial), [3]queue.Outcome{queue.Accepted, queue.Rejected, queue.Unknown}},
		"WhatAnErrorLeavesOutIsUnknown": {&queue.PublishError{Outcomes: []queue.Outcome{queue.Rejected}, Err: errBroker}, [3]queue.Outcome{queue.Rejected, queue.Unknown, queue.Unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			var got [3]queue.Outcome
			for i := range got {
				got[i] = queue.OutcomeOf(c.err, i)
			}
			if got != c.want {
				t.Errorf("%v: got %v, want %v", c.err, got, c.want)
			}
		})
	}
	if !errors.Is(queue.Reject(errBroker), errBroker) || !errors.Is(partial, queue.ErrRejected) {
		t.Error("the cause of a rejection must stay reachable")
	}
}

func TestLossy(t *testing.T) {
	safe := queue.Capabilities{Guarantee: queue.AtLeastOnce, Durable: true, Confirm: queue.ConfirmOS}
	for name, c := range map[string]struct {
		change func(*queue.Capabilities)
		want   bool
	}{
		"AtLeastOnceDurableConfirmed": {func(*queue.Capabilities) {}, false},
		"AtMostOnce":                  {func(c *queue.Capabilities) { c.Guarantee = queue.AtMostOnce }, true},
		"NotDurable":                  {func(c *queue.Capabilities) { c.Durable = false }, true},
		"ConfirmedByMemoryOnly":       {func(c *queue.Capabilities) { c.Confirm = queue.ConfirmMemory }, true},
		"DropsTheOldest":              {func(c *queue.Capabilities) { c.DropsOldest = true }, true},
	} {
		caps := safe
		c.change(&caps)
		if got := caps.Lossy(); got != c.want {
			t.Errorf("%s: got lossy %v, want %v", name, got, c.want)
		}
	}
}
