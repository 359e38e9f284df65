package sale

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// keepAfterEnd is how long after its end a voucher's marks are looked at.
	keepAfterEnd = 7 * 24 * time.Hour
	maxRecent    = 1000
)

// recent is the last list of the vouchers of late. Its lock is held for no query:
// a database that is frozen would hold up whoever only wants the last list, and
// clicks with it.
type recent struct {
	mu      sync.Mutex
	ids     []ID
	at      time.Time // when the query of ids began
	running *listing  // nil: none
}

// listing is one query for all who wait for done.
type listing struct {
	done chan struct{}
	err  error // once done is closed
}

// Recent lists the vouchers whose orders may still be undecided, at most 1000,
// as the database had them at the given time or later. Callers that want the
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
			go l.list(context.WithoutCancel(ctx), q)
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

func (l *Loader) list(ctx context.Context, q *listing) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	began := time.Now()
	vs, err := l.Store.Vouchers(ctx, began.Add(-keepAfterEnd), maxRecent)
	ids := make([]ID, len(vs))
	for i, v := range vs {
		ids[i] = v.ID
	}
	l.recent.mu.Lock()
	defer l.recent.mu.Unlock()
	if err == nil {
		l.recent.ids, l.recent.at = ids, began
	}
	q.err, l.recent.running = err, nil
	close(q.done)
}
