package web

import (
	"context"
	"sync"
	"time"

	"queuelab/app/door"
	"queuelab/app/sale"
)

const (
	// maxOld bounds the vouchers that are remembered besides those on the shelf, and
	// maxUnknown the ids that are nobody's.
	maxOld, maxUnknown = 256, 1 << 14
	// olderEach and olderAll bound the queries for what is not on the shelf in a
	// second: those of one address, and of all.
	olderEach, olderAll = 10, 200
	// olderAddresses is how many addresses are remembered.
	olderAddresses = 1 << 14
)

// older is for vouchers that are not on the shelf: their sales are long over, or
// another instance made them just now. Whoever asks for ids that are nobody's is
// held by a limit of his own, and drives nothing from the shelf or from here.
type older struct {
	one       func(context.Context, sale.ID) (sale.Voucher, error)
	each, all door.Limiter

	mu      sync.Mutex
	old     map[sale.ID]oldVoucher
	unknown map[sale.ID]time.Time // when the database said so
}

// oldVoucher is what the database said of a voucher, and when.
type oldVoucher struct {
	*shownVoucher
	at time.Time
}

func newOlder(one func(context.Context, sale.ID) (sale.Voucher, error)) older {
	return older{one: one, old: map[sale.ID]oldVoucher{}, unknown: map[sale.ID]time.Time{},
		each: door.NewLocal(door.Rate{N: olderEach, Per: time.Second}, olderAddresses),
		all:  door.NewLocal(door.Rate{N: olderAll, Per: time.Second}, 1)}
}

func (o *older) find(ctx context.Context, address string, id sale.ID) (*shownVoucher, error) {
	o.mu.Lock()
	known, ok := o.old[id]
	gone := time.Since(o.unknown[id]) < stale
	o.mu.Unlock()
	switch {
	case ok && time.Since(known.at) < fresh:
		return known.shownVoucher, nil
	case gone:
		return nil, sale.NoVoucher()
	}
	err := limited(o.each, "vouchers that are not on sale were asked for from your address", address)
	if err == nil && o.all.Take(ctx, "") > 0 {
		err = &sale.Error{Code: sale.CodeBusy, Message: "too many ask for old vouchers, try again in a moment", RetryAfter: fresh}
	}
	var v sale.Voucher
	if err == nil {
		v, err = o.one(ctx, id)
	}
	switch {
	case sale.CodeOf(err) == sale.CodeNotFound:
		o.miss(id)
		return nil, err
	case err != nil && ok: // a little old, but known
		return known.shownVoucher, nil
	case err != nil:
		return nil, err
	}
	shown, err := showVoucher(v)
	if err == nil {
		o.keep(shown)
	}
	return shown, err
}

func (o *older) miss(id sale.ID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.old, id)
	if len(o.unknown) >= maxUnknown {
		clear(o.unknown)
	}
	o.unknown[id] = time.Now()
}

func (o *older) keep(v *shownVoucher) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, again := o.old[v.ID]; !again && len(o.old) >= maxOld {
		oldest := v.ID
		for id, known := range o.old {
			if oldest == v.ID || known.at.Before(o.old[oldest].at) {
				oldest = id
			}
		}
		delete(o.old, oldest)
	}
	o.old[v.ID] = oldVoucher{v, time.Now()}
}
