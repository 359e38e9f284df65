// Package reconcile compares the gate, the queue and the database while a sale
// runs, names how they differ, and puts right what can be put right.
//
// Nothing of a sale stands still: an order is at the gate, then in the queue,
// then in the database, and between two steps the three differ. So only what one
// look finds and all looks for as long as Age find again is drift; the rest is in
// flight. And nothing is ever set to a number that was read before: the gate's
// units are changed by what they are off, its buyers by the gate's own steps, and
// an order gets its decision in the database.
package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"queuelab/app/loop"
	"queuelab/app/sale"
	"queuelab/queue"
)

const (
	// slow is how many times Age an order may wait while the queue holds messages.
	slow = 10
	// fullEvery is how often a look also reads what its numbers say is right.
	fullEvery = 20
	// keptRepairs is how many repairs State remembers.
	keptRepairs = 100
	// logged is how many differences of one look are written to the log one by one.
	logged = 10
)

// Gate is what the comparison needs of the gate.
type Gate interface {
	sale.Auditor
	Settle(ctx context.Context, rs ...sale.Reservation) error
	Release(ctx context.Context, r sale.Reservation) (bool, error)
}

// Reconciler compares; its fields must not change once it is used.
type Reconciler struct {
	Gate     Gate // nil: it cannot be seen from here, and only the database is looked at
	Store    sale.Ledgers
	Vouchers func(ctx context.Context, asOf time.Time) ([]sale.ID, error) // those to look at
	Backlog  queue.Backlogger                                             // nil: the queue cannot tell
	// Publish queues an order again under its id. Nil: orders that wait are left.
	Publish func(ctx context.Context, r sale.Reservation) error
	// Load asks for a voucher to be loaded into the gate. Nil: it is left.
	Load func(ctx context.Context, voucher sale.ID) error
	Log  *slog.Logger

	// Age is how long a difference must stand to be drift. It must be longer than
	// any step takes, a rescan included.
	Age time.Duration
	// Every is the pause between two looks of Run.
	Every time.Duration
	// Repair puts drift right.
	Repair bool
	// Strict takes an order that waits for Age for drift, also while the queue
	// holds messages.
	Strict bool

	mu    sync.Mutex
	looks int
	seen  map[key]Drift // of the last look
	// resting are vouchers that ended a while ago and agreed then: only full looks
	// look at them again.
	resting map[sale.ID]bool
	state   State
	tried   map[key]Drift // what something was done about, until it is seen to be gone
	silent  loop.Outage   // of the queue
}

// State is what is known since the start.
type State struct {
	Look
	Drift   []Drift // what stands; Look.Found less this may be in flight
	Repairs []Drift // the last ones, the newest last
	Seen    map[Kind]int64
	Done    map[Kind]int64 // repairs after which the difference was gone
	Err     error          // why the last look ended early; what is known is then older
}

// State returns what the last looks found.
func (r *Reconciler) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.state
	s.Drift, s.Repairs = slices.Clone(s.Drift), slices.Clone(s.Repairs)
	s.Seen, s.Done = maps.Clone(s.Seen), maps.Clone(s.Done)
	return s
}

// Run looks until ctx ends.
func (r *Reconciler) Run(ctx context.Context) {
	look := func(ctx context.Context) (time.Duration, error) {
		_, err := r.Once(ctx)
		return 0, err
	}
	loop.Loop{Look: look, Every: r.Every, Tell: loop.Say(r.Log, "gate, queue and database are not compared")}.Run(ctx)
}

// Once looks once, and returns what is known then. An error means that the look
// did not get to its end, and changed nothing of what is known; errors of repairs
// are in what was done.
func (r *Reconciler) Once(ctx context.Context) (State, error) {
	r.mu.Lock()
	r.looks++
	full := r.Strict || r.looks%fullEvery == 1
	at := map[sale.ID]bool{} // vouchers of which something was found
	for k := range r.seen {
		at[k.voucher] = true
	}
	r.mu.Unlock()
	l, err := r.look(ctx, math.MaxInt, func(v sale.ID) bool { return full || at[v] || !r.rests(v) }, func(ctx context.Context, s *scan, a Account) error {
		return s.compare(ctx, a, full || at[a.ID])
	})
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.state.Err = err
		return r.state, err
	}
	drift, fresh := r.note(l)
	for i, d := range fresh {
		if i == logged {
			r.Log.Warn("drift", "more", len(fresh)-logged)
			break
		}
		r.Log.Warn("drift", "kind", d.Kind, "voucher", d.Voucher, "order", d.Order, "detail", d.Detail, "since", d.Since)
	}
	if r.Repair && len(drift) > 0 {
		r.repair(ctx, l, drift)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Drift = drift
	return r.state, nil
}

func (r *Reconciler) rests(voucher sale.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.resting[voucher]
}

// note keeps what was found, and returns what stands, and what of it did not
// stand at the look before.
func (r *Reconciler) note(l *Look) (drift, fresh []Drift) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state.Seen == nil {
		r.state.Seen, r.state.Done, r.tried = map[Kind]int64{}, map[Kind]int64{}, map[key]Drift{}
	}
	stood := map[key]bool{}
	for _, d := range r.state.Drift {
		stood[d.key()] = true
	}
	seen := make(map[key]Drift, len(l.Found))
	for _, d := range l.Found {
		if _, twice := seen[d.key()]; twice {
			continue // a page was read again
		}
		before, again := r.seen[d.key()]
		if d.Since = l.At; again {
			d.Since = before.Since
		}
		seen[d.key()] = d
		if d.Kind.Sure() || again && l.At.Sub(d.Since) >= r.Age {
			drift = append(drift, d)
			if !stood[d.key()] {
				r.state.Seen[d.Kind]++
				fresh = append(fresh, d)
			}
		}
	}
	l.Found = slices.Collect(maps.Values(seen))
	r.gone(l, seen)
	if r.resting == nil {
		r.resting = map[sale.ID]bool{}
	}
	for _, a := range l.Accounts {
		r.resting[a.ID] = a.Quiet && l.At.After(a.End.Add(slow*r.Age)) && len(a.Wrong()) == 0
	}
	r.seen, r.state.Look, r.state.Err = seen, *l, nil
	return drift, fresh
}

// Verify looks until gate, queue and database agree and no order waits, or until
// what differs has stood for Age and, where that is wanted, was put right or could
// not be. State.Drift is then what is wrong.
func (r *Reconciler) Verify(ctx context.Context) (State, error) {
	pause := min(max(r.Age/60, 50*time.Millisecond), 500*time.Millisecond)
	began, first, repaired := time.Now(), time.Time{}, false
	for {
		var s State
		err := loop.Within(ctx, 0, func(ctx context.Context) (err error) {
			s, err = r.Once(ctx)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return s, ctx.Err()
		case err != nil && (time.Since(began) >= r.Age || sale.CodeOf(err) != ""): // no waiting makes a voucher
			return s, fmt.Errorf("verify: %w", err)
		case err != nil: // something may be away for a moment
		case s.Waiting == 0 && !slices.ContainsFunc(s.Found, func(d Drift) bool { return !d.Kind.Sure() }):
			return s, nil // what is left, if anything, no waiting makes better
		case first.IsZero():
			first = s.At
		case s.At.Sub(first) < r.Age:
		case r.Repair && !repaired && r.didSomething():
			// Once more as long, for what was put right to be seen.
			repaired, first = true, s.At
		default:
			return s, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (r *Reconciler) didSomething() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.tried)+len(r.state.Repairs) > 0
}
