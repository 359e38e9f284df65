package queue

import (
	"errors"
	"sync/atomic"
)

// Delivery is one message in a consumer's hand. It stays valid after it is
// settled; it is never pooled, so that a late Ack is an error and not damage.
type Delivery struct {
	Message
	// Attempt is filled in as Capabilities.Attempts says; 0 means not counted.
	Attempt int

	receipt any
	settled atomic.Bool
}

// NewDelivery is for backends: receipt is what the backend needs to settle.
func NewDelivery(m Message, attempt int, receipt any) *Delivery {
	return &Delivery{Message: m, Attempt: attempt, receipt: receipt}
}

// Init is for backends that allocate the deliveries of a batch at once: it
// makes a zero Delivery what NewDelivery would have returned.
func (d *Delivery) Init(m Message, attempt int, receipt any) {
	d.Message, d.Attempt, d.receipt = m, attempt, receipt
}

// Receipt is for backends: what NewDelivery or Init was given.
func (d *Delivery) Receipt() any { return d.receipt }

// Settled reports whether an Ack or Nack has settled d, or is about to.
func (d *Delivery) Settled() bool { return d.settled.Load() }

// Settle is for backends: settle-once, written once. It marks the deliveries
// that nobody has settled yet and calls do with them, in their order; do
// returns nil, one error for all, or a *SettleError with one per delivery.
// Where do fails with anything but ErrSettled or ErrLeaseLost the mark is taken
// back. The result has ErrSettled for the deliveries that were settled before.
func Settle(ds []*Delivery, do func(fresh []*Delivery) error) error {
	errs := make([]error, len(ds))
	fresh := make([]*Delivery, 0, len(ds))
	index := make([]int, 0, len(ds))
	for i, d := range ds {
		if d.settled.CompareAndSwap(false, true) {
			fresh, index = append(fresh, d), append(index, i)
		} else {
			errs[i] = ErrSettled
		}
	}
	if len(fresh) == 0 {
		if len(ds) == 0 {
			return nil
		}
		return ErrSettled
	}
	err := do(fresh)
	if err == nil && len(fresh) == len(ds) {
		return nil
	}
	var se *SettleError
	perDelivery := errors.As(err, &se)
	for j, i := range index {
		if perDelivery {
			errs[i] = se.Errs[j]
		} else {
			errs[i] = err
		}
		if e := errs[i]; e != nil && !errors.Is(e, ErrLeaseLost) && !errors.Is(e, ErrSettled) {
			fresh[j].settled.Store(false)
		}
	}
	if err != nil && !perDelivery && len(fresh) == len(ds) {
		return err
	}
	return &SettleError{Errs: errs}
}
