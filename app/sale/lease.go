package sale

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// LeaseTTL is how long a worker number stays ours without a renewal.
const LeaseTTL = 30 * time.Second

const renewEvery = LeaseTTL / 4

// ErrTaken: another process holds the worker number.
var ErrTaken = errors.New("the worker number is taken")

// LeaseStore keeps who holds which worker number, where all instances see it.
type LeaseStore interface {
	// AcquireWorker gives holder the worker number until the given time. A
	// number below 0 asks for any free one. A number is free when nobody had it,
	// or its lease ended before now. It is ErrTaken when there is none.
	AcquireWorker(ctx context.Context, number int, holder string, now, until time.Time) (int, error)
	// RenewWorker moves the end of a lease that holder has. It is ErrTaken when
	// holder has it no more.
	RenewWorker(ctx context.Context, number int, holder string, until time.Time) error
}

// Lease is a worker number that is ours for a while. Nobody makes an id after
// its lease ended, and nobody gets a number before the lease before it ended:
// so a clock that went back across a restart cannot repeat an id either.
type Lease struct {
	Number int

	store  LeaseStore
	holder string
	until  atomic.Int64 // Unix milliseconds
}

// TakeLease takes a worker number; below 0: any free one.
func TakeLease(ctx context.Context, store LeaseStore, number int) (*Lease, error) {
	l := &Lease{store: store, holder: rand.Text()}
	now := time.Now()
	until := now.Add(LeaseTTL)
	n, err := store.AcquireWorker(ctx, number, l.holder, now, until)
	if err != nil {
		return nil, fmt.Errorf("take a worker number: %w", err)
	}
	l.Number = n
	l.until.Store(until.UnixMilli())
	return l, nil
}

// Holder is the name by which the lease is ours; no other process has it.
func (l *Lease) Holder() string { return l.holder }

func (l *Lease) holds(now time.Time) bool { return l == nil || now.UnixMilli() < l.until.Load() }

// Run renews the lease until ctx ends, then gives it back. failed is told why
// a renewal did not work; ids stop at the end of the lease, not before. The
// error is ErrTaken once somebody else has the number: no id can be made any
// more.
func (l *Lease) Run(ctx context.Context, failed func(error)) error {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			until := time.Now().Add(LeaseTTL)
			err := l.store.RenewWorker(ctx, l.Number, l.holder, until)
			if errors.Is(err, ErrTaken) {
				l.until.Store(0)
				return fmt.Errorf("worker number %d: %w", l.Number, err)
			}
			if err != nil {
				if ctx.Err() == nil {
					failed(fmt.Errorf("renew worker number %d: %w", l.Number, err))
				}
				continue
			}
			l.until.Store(until.UnixMilli())
		case <-ctx.Done():
			l.giveBack(context.WithoutCancel(ctx))
			return nil
		}
	}
}

func (l *Lease) giveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	now := time.Now()
	l.until.Store(now.UnixMilli())
	// Best effort: without it the number is free again after LeaseTTL.
	_ = l.store.RenewWorker(ctx, l.Number, l.holder, now)
}
