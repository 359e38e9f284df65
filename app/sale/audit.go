package sale

import (
	"context"
	"errors"
	"time"
)

// ErrUnreadable: a gate holds something of a voucher that nobody can read, as when
// somebody changed it by hand. It says nothing about other vouchers.
var ErrUnreadable = errors.New("nobody can read what the gate holds")

// Book is what a gate says of one voucher, all of it at one moment.
type Book struct {
	Loaded bool
	Units  int64 // when the sale began
	Left   int64
	Buyers int64 // units that buyers hold
	Marks  int64 // orders that are not known to be decided
}

// NoStock is the units of a gate that holds no stock and leaves it to whoever
// decides the orders. It is far from the numbers that Lua no longer counts exactly.
const NoStock = 1 << 50

// Stockless reports whether the gate holds no stock of the voucher: then Units and
// Left say nothing.
func (b Book) Stockless() bool { return b.Units >= NoStock }

// Off is by how much the units left differ from those that nobody holds: 0 in a
// gate that is right, or holds no stock. Where more are held than there are, none
// should be left.
func (b Book) Off() int64 {
	if b.Stockless() {
		return 0
	}
	return b.Left - max(0, b.Units-b.Buyers)
}

// Scrap is an entry of a gate that nobody can read, as it is there.
type Scrap struct {
	Mark       bool // else it is a buyer's
	Name, Text string
}

// Holder is a unit that a buyer holds; AtMillis is not known.
type Holder struct {
	Reservation
	Unread *Scrap // nobody can read it; only VoucherID is set
}

// Mark is the pending mark of an order.
type Mark struct {
	Reservation
	Age time.Duration // since the click, by the gate's clock
	// Unread: the gate holds no reservation that anybody can read; only VoucherID
	// is set, and OrderID where that can be read.
	Unread *Scrap
}

// markPages bounds how much of the marks of a voucher OldestMark reads.
const markPages = 8

// OldestMark tells how long ago the buyer clicked whose order waits longest; 0:
// none waits. A line that is too long to be read as a whole may have an older one:
// then more is true.
func OldestMark(ctx context.Context, gate Auditor, voucher ID) (oldest time.Duration, more bool, err error) {
	cursor := uint64(0)
	for range markPages {
		ms, next, err := gate.Marked(ctx, voucher, cursor)
		if err != nil {
			return 0, false, err
		}
		for _, m := range ms {
			oldest = max(oldest, m.Age)
		}
		if cursor = next; cursor == 0 {
			return oldest, false, nil
		}
	}
	return oldest, true, nil
}

// Holding is what a gate knows of the unit that a reservation is for.
type Holding struct {
	Holder ID   // the order that holds the unit; 0: none
	Marked bool // the reservation's order has a mark
}

// Auditor is a gate that can be read as a whole, and put right where it
// contradicts itself. Pages are read while clicks come and go: what is there all
// the time is seen, what comes or goes meanwhile may be, and something may be
// seen twice. Where the gate holds what is no book at all, its methods return an
// ErrUnreadable.
type Auditor interface {
	Book(ctx context.Context, voucher ID) (Book, error)

	// Holders reads a page of the units that buyers hold.
	// The first page has cursor 0; there is no next page when next is 0.
	Holders(ctx context.Context, voucher ID, cursor uint64) (hs []Holder, next uint64, err error)

	// Marked reads a page of the marks, likewise.
	Marked(ctx context.Context, voucher ID, cursor uint64) (ms []Mark, next uint64, err error)

	// Holdings tells what the gate knows of the units of reservations of one
	// voucher, in their order.
	Holdings(ctx context.Context, rs ...Reservation) ([]Holding, error)

	// Level has the gate know how many units there were when the sale began, and
	// changes the units left by what they are off then, in one atomic step with
	// finding that out, so that no click in between is undone: a unit that is in
	// flight is one that a buyer holds. It raises them no further than most. It
	// returns the change of the units left.
	Level(ctx context.Context, voucher ID, units, most int64) (int64, error)

	// Drop removes the scraps, and whatever keeps the gate from reading the voucher
	// at all, and returns how much that was. A buyer's scrap, whose unit is then to be
	// had again, it leaves while an order is in flight, which may be that buyer's. Who
	// calls it has seen that each order that has a unit holds it at the gate. Where
	// the gate has lost its buyers, the voucher is not loaded any more.
	Drop(ctx context.Context, voucher ID, scraps ...Scrap) (int64, error)

	// Index has Stale find the marks of orders again that it does not know of, and
	// returns how many those were.
	Index(ctx context.Context, voucher ID, orders ...ID) (int64, error)
}
