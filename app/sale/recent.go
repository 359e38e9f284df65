package sale

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"queuelab/app/loop"
)

const (
	// keepAfterEnd is how long after its end a voucher's marks are looked at.
	keepAfterEnd = 7 * 24 * time.Hour
	// voucherPage is how many vouchers one query brings.
	voucherPage = 1000
	// restTimes is how many times as long as it took a look at all vouchers rests,
	// but restMost at most: whoever asks for what nobody has must not keep the
	// database or the gate busy with it.
	restTimes = 4
	restMost  = time.Second
)

// AllVouchers lists all vouchers that end after the given time and have an id
// below the given one, the newest first, in as many queries as that takes. None
// that was there at the start is missing.
func AllVouchers(ctx context.Context, s interface {
	VouchersBelow(ctx context.Context, endAfter time.Time, below ID, max int) ([]Voucher, error)
}, endAfter time.Time, below ID) ([]Voucher, error) {
	var all []Voucher
	for {
		page, err := s.VouchersBelow(ctx, endAfter, below, voucherPage)
		if err != nil {
			return nil, err
		}
		if all = append(all, page...); len(page) < voucherPage {
			return all, nil
		}
		below = page[len(page)-1].ID
		loop.Step(ctx)
	}
}

// rest is how long to rest after a look that took so long.
func rest(took time.Duration) time.Duration { return min(restTimes*took, restMost) }

// recent is the last list of the vouchers of late. Its lock is held for no query:
// a database that is frozen would hold up whoever only wants the last list, and
// clicks with it.
type recent struct {
	mu      sync.Mutex
	ids     []ID
	at      time.Time // when the query of ids began
	next    time.Time // when another query may begin
	running *listing  // nil: none
}

// listing is one query for all who wait for done.
type listing struct {
	done chan struct{}
	err  error // once done is closed
}

// Recent lists the vouchers whose orders may still be undecided, all of them, as
// the database had them at the given time or later. Callers that want the
// list at the same time share one query, which does not end with any of them.
func (l *Loader) Recent(ctx context.Context, asOf time.Time) ([]ID, error) {
	r := &l.recent
	for {
		r.mu.Lock()
		if !r.at.Before(asOf) {
			ids := slices.Clone(r.ids)
			r.mu.Unlock()
			return ids, nil
		}
		q := r.running
		if q == nil {
			q = &listing{done: make(chan struct{})}
			r.running = q
			go l.list(context.WithoutCancel(ctx), q, time.Until(r.next))
		}
		r.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("list the vouchers of late: %w", ctx.Err())
		case <-q.done:
		}
		if q.err != nil {
			return nil, q.err
		}
		// It may have begun before asOf: then the next one is asked for.
	}
}

func (l *Loader) list(ctx context.Context, q *listing, wait time.Duration) {
	time.Sleep(wait)
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	began := time.Now()
	vs, err := AllVouchers(ctx, l.Store, began.Add(-keepAfterEnd), math.MaxInt64)
	ids := make([]ID, len(vs))
	for i, v := range vs {
		ids[i] = v.ID
	}
	l.recent.mu.Lock()
	defer l.recent.mu.Unlock()
	if err == nil {
		l.recent.ids, l.recent.at = ids, began
	}
	l.recent.next = time.Now().Add(rest(time.Since(began)))
	q.err, l.recent.running = err, nil
	close(q.done)
}
