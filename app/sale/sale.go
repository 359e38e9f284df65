// Package sale is the flash sale itself: what a voucher, a reservation and an
// order are, and how one becomes the next. It knows no database, no Redis and
// no web framework; it says in small interfaces what it needs of them.
//
// A click becomes a reservation at the Gate, a message in the queue, and an
// order in the Store. The Gate's stock is always the voucher's stock less the
// buyers that hold a reservation or an order; the Store is the truth.
package sale

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Voucher is what is sold. Money is in cents.
type Voucher struct {
	ID          ID
	Title       string
	Stock       int64 // units when the sale began
	Left        int64 // units without a confirmed order
	PayValue    int64
	ActualValue int64
	Begin, End  time.Time
	PayWithin   time.Duration // a confirmed order not paid by then is cancelled; 0: no deadline
	PerUser     int           // units that one buyer may have
	MaxInFlight int64         // orders that may wait for their decision at a time; 0: no bound
	Buckets     int           // parts of the stock that the gate keeps apart; never changed, and 0 is one
	Signal      bool          // the sale opens by a signal (see Starter), at Begin at the earliest
	OpenAt      time.Time     // when the signal is due; zero: when the operator gives it
	Opened      time.Time     // when it was given; zero: not yet
	Created     time.Time
}

// Opens is the first moment at which the gate takes clicks: the end, as long as
// nobody knows better.
func (v Voucher) Opens() time.Time {
	switch {
	case !v.Signal:
		return v.Begin
	case v.Opened.IsZero():
		return v.End
	}
	return v.Opened
}

// Status is where an order stands.
type Status string

const (
	Queued    Status = "queued"    // reserved, no decision yet
	Confirmed Status = "confirmed" // sold: a row in the database; to be paid
	Failed    Status = "failed"    // not sold, and the unit was given back
	Paid      Status = "paid"
	Cancelled Status = "cancelled" // not paid, by its buyer's wish or in time: the unit was given back
	Refunded  Status = "refunded"  // paid, and both money and unit were given back
)

// Holds reports whether an order in this status has a unit of the stock in the
// database.
func (s Status) Holds() bool { return s == Confirmed || s == Paid }

// MayBecome reports whether an order may go from one status to another. No
// status comes twice, so a transition that was made is never made again.
func (s Status) MayBecome(to Status) bool {
	switch s {
	case Queued:
		return to == Confirmed || to == Failed
	case Confirmed:
		return to == Paid || to == Cancelled
	case Paid:
		return to == Refunded
	}
	return false
}

// Order is a reservation and what became of it.
type Order struct {
	Reservation
	Status  Status
	Reason  string // why it failed, was cancelled or refunded
	Decided time.Time
	PayBy   time.Time // zero: no deadline
	Paid    time.Time // zero: never
	Closed  time.Time // when it was cancelled or refunded; zero: never
}

// Decision is an order's decision, and whether it had been taken before: then
// its message came again.
type Decision struct {
	Order
	Again bool
}

// Reservation is one unit held for one buyer, and the body of its message.
type Reservation struct {
	OrderID   ID     `json:"orderId"`
	VoucherID ID     `json:"voucherId"`
	UserID    string `json:"userId"`
	Nth       int    `json:"nth,omitempty"` // which of the units that one buyer may have, from 0
	AtMillis  int64  `json:"at"`            // when the service took the click, Unix milliseconds
}

// Encode writes a reservation as the body of a message: as encoding/json does,
// and several times as fast, since every click needs it.
func (r Reservation) Encode() []byte { return r.AppendTo(make([]byte, 0, 96+len(r.UserID))) }

// AppendTo appends what Encode writes.
func (r Reservation) AppendTo(b []byte) []byte {
	b = append(b, `{"orderId":"`...)
	b = strconv.AppendInt(b, int64(r.OrderID), 10)
	b = append(b, `","voucherId":"`...)
	b = strconv.AppendInt(b, int64(r.VoucherID), 10)
	b = append(b, `","userId":`...)
	if CheckUser(r.UserID) == nil { // nothing in it needs an escape
		b = append(b, '"')
		b = append(b, r.UserID...)
		b = append(b, '"')
	} else if user, err := json.Marshal(r.UserID); err == nil {
		b = append(b, user...)
	}
	if r.Nth != 0 {
		b = append(b, `,"nth":`...)
		b = strconv.AppendInt(b, int64(r.Nth), 10)
	}
	b = append(b, `,"at":`...)
	b = strconv.AppendInt(b, r.AtMillis, 10)
	return append(b, '}')
}

// DecodeReservation reads what Encode wrote.
func DecodeReservation(b []byte) (Reservation, error) {
	r, ok := scan(b)
	if !ok {
		r = Reservation{}
		if err := json.Unmarshal(b, &r); err != nil {
			return r, fmt.Errorf("decode a reservation: %w", err)
		}
	}
	if r.OrderID <= 0 || r.VoucherID <= 0 || r.Nth < 0 {
		return r, fmt.Errorf("decode a reservation: no order id, no voucher id, or a negative unit")
	}
	if err := CheckUser(r.UserID); err != nil {
		return r, fmt.Errorf("decode a reservation: %w", err)
	}
	return r, nil
}

// scan reads what Encode writes, letter for letter, and leaves all else to
// encoding/json: every order's message is read, and this is many times as fast.
func scan(b []byte) (r Reservation, ok bool) {
	rest := bytes.TrimPrefix(b, []byte(`{"orderId":"`))
	order, rest, _ := bytes.Cut(rest, []byte(`","voucherId":"`))
	voucher, rest, _ := bytes.Cut(rest, []byte(`","userId":"`))
	user, rest, _ := bytes.Cut(rest, []byte(`"`))
	nth, at, _ := bytes.Cut(rest, []byte(`,"at":`))
	number := func(digits []byte) int64 {
		n, _ := strconv.ParseInt(string(digits), 10, 64)
		return n
	}
	r = Reservation{OrderID: ID(number(order)), VoucherID: ID(number(voucher)), UserID: string(user), AtMillis: number(bytes.TrimSuffix(at, []byte("}")))}
	if len(nth) > 0 {
		r.Nth = int(number(bytes.TrimPrefix(nth, []byte(`,"nth":`))))
	}
	// Whatever was misread above is written differently here.
	return r, bytes.Equal(r.Encode(), b)
}

// Store is what the sale needs of the database.
type Store interface {
	CreateVoucher(ctx context.Context, v Voucher) error
	// Voucher is an *Error with NotFound when there is none.
	Voucher(ctx context.Context, id ID) (Voucher, error)
	// VouchersBelow lists the newest first, at most max, that end after the given
	// time and have an id below the given one. See AllVouchers.
	VouchersBelow(ctx context.Context, endAfter time.Time, below ID, max int) ([]Voucher, error)
	// Orders returns those of the orders that were decided, in any order.
	Orders(ctx context.Context, ids ...ID) ([]Order, error)
	// HeldOrders lists a voucher's orders that have a unit, with ids above after, by id, at most max.
	HeldOrders(ctx context.Context, voucher, after ID, max int) ([]Order, error)
}
