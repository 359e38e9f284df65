package sale

import (
	"context"
	"time"
)

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

// Mark is the pending mark of an order.
type Mark struct {
	Reservation
	Age time.Duration // since the click, by the gate's clock
	// Unread: the gate holds no reservation that anybody can read; only OrderID
	// and VoucherID are set.
	Unread bool
}

// Holding is what a gate knows of the unit that a reservation is for.
type Holding struct {
	Holder ID   // the order that holds the unit; 0: none
	Marked bool // the reservation's order has a mark
}

// Auditor is a gate that can be read as a whole, and put right where it
// contradicts itself. Pages are read while clicks come and go: what is there all
// the time is seen, what comes or goes meanwhile may be, and something may be
// seen twice.
type Auditor interface {
	Book(ctx context.Context, voucher ID) (Book, error)

	// Holders reads a page of the units that buyers hold; AtMillis is not known.
	// The first page has cursor 0; there is no next page when next is 0.
	Holders(ctx context.Context, voucher ID, cursor uint64) (rs []Reservation, next uint64, err error)

	// Marked reads a page of the marks, likewise.
	Marked(ctx context.Context, voucher ID, cursor uint64) (ms []Mark, next uint64, err error)

	// Holdings tells what the gate knows of the units of reservations of one
	// voucher, in their order.
	Holdings(ctx context.Context, rs ...Reservation) ([]Holding, error)

	// Level changes the units left by what they are off, in one atomic step with
	// finding that out, so that no click in between is undone: a unit that is in
	// flight is one that a buyer holds. It raises them no further than most. It
	// returns the change.
	Level(ctx context.Context, voucher ID, most int64) (int64, error)

	// Index has Stale find the marks of orders again that it does not know of, and
	// returns how many those were.
	Index(ctx context.Context, voucher ID, orders ...ID) (int64, error)
}
