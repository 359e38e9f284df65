package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"
)

// work is one lane: it handles batch after batch until the worker stops.
func (r *run) work(lane int) {
	for batch := r.next(lane); batch != nil; batch = r.next(lane) {
		for len(batch) > 0 {
			if r.stopping.Err() != nil {
				return
			}
			again, pause := r.try(batch)
			r.backlog.giveUp(batch, again)
			batch = again
			if len(batch) > 0 && !r.wait(pause) {
				return
			}
		}
	}
}

// next waits for the lane's next batch; nil when the worker stops.
func (r *run) next(lane int) []*Delivery {
	for r.stopping.Err() == nil {
		batch, wait := r.backlog.take(lane)
		if batch != nil {
			return batch
		}
		var late <-chan time.Time
		if wait > 0 {
			late = time.After(wait)
		}
		select {
		case <-r.stopping.Done():
		case <-r.backlog.more:
		case <-late:
		}
	}
	return nil
}

// try handles a batch and settles what it can. It returns what must be tried
// again in this lane, and after which pause.
func (r *run) try(batch []*Delivery) (again []*Delivery, pause time.Duration) {
	attempt, ended := r.attempts(batch)
	errs := make([]error, len(batch))
	ready, index := make([]*Delivery, 0, len(batch)), make([]int, 0, len(batch))
	for i, d := range batch {
		if r.MaxAttempts > 0 && attempt[i] > r.MaxAttempts {
			errs[i] = ErrAttempts
			continue
		}
		ready, index = append(ready, d), append(index, i)
	}
	for j, err := range r.handle(ready) {
		errs[index[j]] = err
	}
	done := make([]*Delivery, 0, len(batch))
	var failed []int
	for i, d := range batch {
		if errs[i] != nil {
			r.report("handle message "+d.ID, errs[i])
		}
		if errs[i] == nil || r.gaveUp(d, attempt[i], errs[i]) {
			done = append(done, d)
		} else {
			failed = append(failed, i)
		}
	}
	left := make([]*Delivery, len(failed))
	for j, i := range failed {
		left[j] = batch[i]
	}
	if err := ended(r.handling, left); err != nil {
		r.report(fmt.Sprintf("end the attempts at %d messages, of which the first is %s", len(batch), batch[0].ID), err)
	}
	var giveBack []*Delivery
	for _, i := range failed {
		d := batch[i]
		if r.stopping.Err() != nil {
			continue // unsettled, so that closing the consumer gives it back
		}
		r.remember(d, attempt[i])
		var wait time.Duration
		if r.Backoff != nil {
			wait = r.Backoff(attempt[i])
		}
		switch {
		case !r.canNack:
			again, pause = append(again, d), max(pause, wait)
		case wait <= 0:
			giveBack = append(giveBack, d)
		default:
			// Outside the lane, since waiting in it would gain nothing: a nack
			// puts the message behind its successors anyhow.
			r.wg.Go(func() {
				if r.wait(wait) {
					r.settle("nack", r.Consumer.Nack, d)
				}
			})
		}
	}
	r.forget(done)
	r.settle("ack", r.Consumer.Ack, done...)
	r.settle("nack", r.Consumer.Nack, giveBack...)
	return again, pause
}

// handle calls Handle and returns one error per delivery. It turns a panic into
// errors: a message that panics would otherwise take the process down with all
// that the other lanes hold, come again, and do so for ever; as an error it is
// counted and dead-lettered like any other.
func (r *run) handle(batch []*Delivery) (errs []error) {
	if len(batch) == 0 {
		return nil
	}
	all := func(err error) []error {
		errs := make([]error, len(batch))
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case error:
			errs = all(fmt.Errorf("the handler panicked: %w\n%s", p, debug.Stack()))
		default:
			errs = all(fmt.Errorf("the handler panicked: %v\n%s", p, debug.Stack()))
		}
	}()
	errs = r.Handle(r.handling, batch)
	if len(errs) != 0 && len(errs) != len(batch) {
		return all(fmt.Errorf("the handler returned %d errors for %d deliveries", len(errs), len(batch)))
	}
	return errs
}

// gaveUp dead-letters a delivery whose attempts are used up. A handler that
// was told to stop has not used up anything.
func (r *run) gaveUp(d *Delivery, attempt int, cause error) bool {
	if r.MaxAttempts == 0 || attempt < r.MaxAttempts || r.handling.Err() != nil {
		return false
	}
	if err := r.DeadLetter(r.handling, d, cause); err != nil {
		r.report("dead-letter message "+d.ID, err)
		return false
	}
	return true
}

// settle is the end of deliveries. It tries again, since one unsettled delivery can
// hold up all that follow it on a queue that remembers only how far it has got, and
// since a queue may keep for this consumer, for as long as it lives, what nobody
// settles. It returns after settleTimeout: then it goes on beside the lane.
func (r *run) settle(op string, do func(context.Context, ...*Delivery) error, ds ...*Delivery) {
	if len(ds) == 0 {
		return
	}
	left, err := r.trySettle(do, ds)
	r.release(len(ds) - len(left))
	if err != nil {
		r.report(op, err)
	}
	if len(left) == 0 {
		return
	}
	r.wg.Go(func() {
		for len(left) > 0 && r.wait(settleAgain) {
			n := len(left)
			left, err = r.trySettle(do, left)
			r.release(n - len(left))
			if err != nil && len(left) == 0 {
				r.report(op, err)
			}
		}
		r.release(len(left))
	})
}

// trySettle returns, with the last error, what is still unsettled and worth another
// try.
func (r *run) trySettle(do func(context.Context, ...*Delivery) error, ds []*Delivery) (left []*Delivery, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.handling), settleTimeout)
	defer cancel()
	left = ds
	for pause := 50 * time.Millisecond; ; pause *= 2 {
		if err = do(ctx, left...); err == nil {
			return nil, nil
		}
		left = slices.DeleteFunc(slices.Clone(left), (*Delivery).Settled)
		if len(left) == 0 || errors.Is(err, ErrClosed) || errors.Is(err, ErrUnsupported) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return left, err
		case <-time.After(pause):
		}
	}
}

// wait reports false when the worker stops first.
func (r *run) wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.stopping.Done():
		return false
	}
}

// attempts numbers the handlings that are about to begin; ended must be called
// after them.
func (r *run) attempts(batch []*Delivery) (numbers []int, ended func(context.Context, []*Delivery) error) {
	ended = func(context.Context, []*Delivery) error { return nil }
	if r.Attempts != nil {
		counted, then, err := r.Attempts(r.handling, batch)
		if then != nil {
			ended = then
		}
		if err == nil && len(counted) != len(batch) {
			err = fmt.Errorf("got %d numbers for %d deliveries", len(counted), len(batch))
		}
		if err == nil {
			return counted, ended
		}
		r.report(fmt.Sprintf("count the attempts at %d messages, of which the first is %s", len(batch), batch[0].ID), err)
	}
	ns := make([]int, len(batch))
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, d := range batch {
		ns[i] = max(d.Attempt, r.failed[d.ID]+1)
	}
	return ns, ended
}

// maxRemembered bounds what a worker remembers of messages that failed here
// and then went to another one.
const maxRemembered = 1 << 16

func (r *run) remember(d *Delivery, attempt int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failed) >= maxRemembered {
		for id := range r.failed { // any one
			delete(r.failed, id)
			break
		}
	}
	r.failed[d.ID] = attempt
}

func (r *run) forget(ds []*Delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range ds {
		delete(r.failed, d.ID)
	}
}
