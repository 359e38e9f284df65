package sale

import (
	"context"
	"sync"
	"time"
)

// patience bounds steps that are to be ended even after the buyer is gone. Steps
// that begin at about the same time share one timer: one for each cost a click as
// much as the rest of what is done for it here. The zero value is ready.
type patience struct {
	mu     sync.Mutex
	shared context.Context
	since  time.Time
	limit  time.Duration      // of shared
	cancel context.CancelFunc // never called: those who share it may wait until it ends by itself
}

// bounded has the values of one context, and the end of another.
type bounded struct {
	context.Context
	values context.Context
}

// Value implements context.Context.
func (b bounded) Value(key any) any { return b.values.Value(key) }

// within is ctx with another end: limit after now, or up to a thirtieth of the
// limit earlier.
func (p *patience) within(ctx context.Context, now time.Time, limit time.Duration) context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shared == nil || limit != p.limit || now.Sub(p.since) >= limit/30 {
		p.since, p.limit = now, limit
		p.shared, p.cancel = context.WithDeadline(context.Background(), now.Add(limit))
	}
	return bounded{p.shared, ctx}
}
