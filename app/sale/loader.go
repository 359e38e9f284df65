package sale

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"queuelab/app/loop"
	"queuelab/queue"
)

const (
	maxWanted  = 256
	restoreMax = 500
)

// Loader keeps the gate loaded: with each voucher when it is created, with all
// open ones at the start, and again with what the gate lost (a Redis that
// restarted empty).
//
// What the gate lost it also forgot about orders in flight: reserved, queued,
// not committed. Their units are still in the database's stock, so loading
// that number would sell them twice. The gate therefore stays closed (clicks
// are busy) until the queue says that nothing is in flight, at most DrainWait.
// What slips through (a queue that cannot tell, or does not get empty) is
// caught by the database: its stock never goes below zero, and the order that
// finds none fails and says so. Settle then puts the gate right.
type Loader struct {
	Gate      Gate
	Store     Store
	Backlog   queue.Backlogger // nil: the queue cannot tell
	DrainWait time.Duration
	Log       *slog.Logger

	mu     sync.Mutex
	wanted map[ID]bool
	queue  chan Voucher
	waited time.Time // when the last wait for a drain ended; only Run reads it
	recent recent
}

// NewLoader makes a Loader; Run does its work.
func NewLoader(gate Gate, store Store, backlog queue.Backlogger, drainWait time.Duration, log *slog.Logger) *Loader {
	return &Loader{Gate: gate, Store: store, Backlog: backlog, DrainWait: drainWait, Log: log,
		wanted: map[ID]bool{}, queue: make(chan Voucher, maxWanted)}
}

// Want asks for a voucher to be loaded, soon. Asking again meanwhile costs
// nothing, and what does not fit is asked for again by the next click.
func (l *Loader) Want(v Voucher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wanted[v.ID] {
		return
	}
	select {
	case l.queue <- v:
		l.wanted[v.ID] = true
	default:
	}
}

// Run loads what is open, and then what is wanted, until ctx ends.
func (l *Loader) Run(ctx context.Context) {
	vs, err := l.open(ctx)
	if err != nil {
		// Every voucher is then loaded by its first click.
		l.Log.Error("the open vouchers were not loaded at the start", "error", err)
	}
	for _, v := range vs {
		l.load(ctx, v)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case v := <-l.queue:
			l.load(ctx, v)
			l.mu.Lock()
			delete(l.wanted, v.ID)
			l.mu.Unlock()
		}
	}
}

func (l *Loader) open(ctx context.Context) ([]Voucher, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return AllVouchers(ctx, l.Store, time.Now(), math.MaxInt64)
}

func (l *Loader) load(ctx context.Context, v Voucher) {
	if ctx.Err() != nil {
		return
	}
	loaded := false
	err := loop.Within(ctx, 0, func(ctx context.Context) (err error) {
		loaded, err = l.reload(ctx, v.ID)
		return err
	})
	switch {
	case err != nil && ctx.Err() == nil:
		l.Log.Error("a voucher was not loaded", "voucher", v.ID, "error", err)
	case loaded:
		l.Log.Info("a voucher was loaded from the database", "voucher", v.ID)
	}
}

func (l *Loader) reload(ctx context.Context, id ID) (bool, error) {
	if _, ok, err := l.Gate.Left(ctx, id); err != nil || ok {
		return false, err
	}
	l.awaitDrain(ctx)
	for after := ID(0); ; {
		os, err := l.Store.HeldOrders(ctx, id, after, restoreMax)
		if err != nil {
			return false, fmt.Errorf("read the buyers of voucher %s: %w", id, err)
		}
		if len(os) == 0 {
			break
		}
		rs := make([]Reservation, len(os))
		for i, o := range os {
			rs[i] = o.Reservation
		}
		if err := l.Gate.Restore(ctx, rs...); err != nil {
			return false, fmt.Errorf("restore the buyers of voucher %s: %w", id, err)
		}
		loop.Step(ctx)
		after = os[len(os)-1].OrderID
	}
	// Read last: an order committed meanwhile is then counted.
	v, err := l.Store.Voucher(ctx, id)
	if err != nil {
		return false, err
	}
	return l.Gate.Load(ctx, v)
}

func (l *Loader) awaitDrain(ctx context.Context) {
	// Vouchers that were lost together share one wait.
	if l.Backlog == nil || time.Since(l.waited) < l.DrainWait {
		return
	}
	defer func() { l.waited = time.Now() }()
	ctx, cancel := context.WithTimeout(ctx, l.DrainWait)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		loop.Step(ctx)
		// -1 is a number that the queue does not tell.
		if b, err := l.Backlog.Backlog(ctx); err == nil && b.Ready <= 0 && b.InFlight <= 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
