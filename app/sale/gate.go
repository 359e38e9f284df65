package sale

import (
	"context"
	"time"
)

// Verdict is the gate's answer to a click.
type Verdict int

const (
	// Admitted: the unit is held for the buyer, and a pending mark is set.
	Admitted Verdict = iota + 1
	AlreadyBought
	SoldOut
	NotStarted
	HasEnded
	// NotLoaded: the gate knows nothing of the voucher, or not any more.
	NotLoaded
	// Crowded: as many orders wait for their decision as the voucher allows, and
	// nothing was taken.
	Crowded
)

func (v Verdict) String() string {
	switch v {
	case Admitted:
		return "admitted"
	case AlreadyBought:
		return string(CodeAlreadyBought)
	case SoldOut:
		return string(CodeSoldOut)
	case NotStarted:
		return string(CodeNotStarted)
	case HasEnded:
		return string(CodeEnded)
	case NotLoaded:
		return "not_loaded"
	case Crowded:
		return "crowded"
	}
	return "unknown"
}

// Click is a buyer's wish for one unit.
type Click struct {
	// Reservation is what is held if the click is admitted. Its Nth is the gate's
	// to choose: the first that the buyer does not have yet.
	Reservation
	// Key is what the buyer's side calls this wish, so that asking twice is one
	// wish; "" is none.
	Key string
	// Again says that a try with the same order id had no answer.
	Again bool
	// Headers go with the order's message, if the gate queues it; nil is none.
	Headers map[string]string
}

// Answer is what became of a click.
type Answer struct {
	Verdict Verdict
	// Order holds the buyer's unit, with Admitted and AlreadyBought. With Admitted
	// it is the click's own, or the one that an earlier click with the same Key
	// got: then nothing was taken now.
	Order ID
	Nth   int // which of the buyer's units it is, with Admitted and the click's own order
	// Queued: the message of the order is in the queue already.
	Queued bool
	// FromMemory: this process knew the answer, and nobody was asked.
	FromMemory bool
}

// Gate decides who may buy, before anything is queued. Each method is one
// atomic step. All are safe for concurrent use, by other instances too where
// the gate is shared.
//
// An error means that the outcome is unknown: the step may or may not have
// been taken. Every method may then be called again with the same arguments.
type Gate interface {
	// Click holds one unit for the buyer and sets the pending mark of the order.
	// A buyer who has as many units as the voucher allows is AlreadyBought. The
	// same order id gets Admitted again and nothing more is taken. A buyer's Key
	// that got an order gets that one again, whatever has become of it since, unless
	// it was withdrawn: a late copy of a click must not buy again. The last 16 Keys of
	// a buyer are remembered where the buyers are.
	//
	// SoldOut may be up to 100 ms old, for clicks without Key and Again.
	Click(ctx context.Context, c Click) (Answer, error)

	// Admit is Click for those who need no more than the verdict and the order
	// that holds the unit.
	Admit(ctx context.Context, r Reservation) (Verdict, ID, error)

	// Settle clears the pending marks of orders that are confirmed in the
	// database. Their buyers keep their units, and get them where the gate does
	// not know of the order: it forgot, or gave the unit back too early. From
	// then on its stock is right again.
	Settle(ctx context.Context, rs ...Reservation) error

	// Release gives the unit back and clears the buyer and the mark, if this
	// very order holds the unit; it reports whether it did. So a second call
	// gives nothing back.
	Release(ctx context.Context, r Reservation) (bool, error)

	// Withdraw is Release for an order whose publish was rejected. It changes
	// nothing and reports kept when Stale has returned the order meanwhile: then
	// its message may be in the queue, so the order stands.
	Withdraw(ctx context.Context, r Reservation) (kept bool, err error)

	// Find looks for the pending mark of an order among the vouchers.
	Find(ctx context.Context, order ID, vouchers ...ID) (Reservation, bool, error)

	// FindAll is Find for many orders, and costs hardly more than for one. Those
	// that have no mark, or one that nobody can read, are not in the answer.
	FindAll(ctx context.Context, orders []ID, vouchers ...ID) (map[ID]Reservation, error)

	// Stale returns at most max reservations of the voucher whose mark is due,
	// and makes each due again later: after age, and then after twice as long
	// each time, up to ten ages. So instances that look at the same time share the work, and a
	// queue that is merely slow is not flooded. A mark is first due age after
	// it was set.
	Stale(ctx context.Context, voucher ID, age time.Duration, max int) ([]Reservation, error)

	// Restore notes buyers that have a confirmed order, before Load.
	Restore(ctx context.Context, rs ...Reservation) error

	// Load opens the gate for a voucher that is not loaded, with as many units
	// as its stock less its known buyers, and no more than v.Left. It reports
	// whether it did; on a loaded voucher it changes nothing.
	Load(ctx context.Context, v Voucher) (bool, error)

	// Left tells the units left; false when the voucher is not loaded.
	Left(ctx context.Context, voucher ID) (int64, bool, error)

	// Check fails when clicks would fail, without taking anything.
	Check(ctx context.Context) error

	Close() error
}
