package sale

import "context"

// Ledger is what the database says of one voucher, all of it at one moment.
type Ledger struct {
	Voucher
	// Orders by status.
	Confirmed, Paid, Failed, Cancelled, Refunded int64
	Units                                        int64 // distinct ones that buyers hold: each buyer's first, second and so on
	GiveBack                                     int64 // closed orders whose unit the gate may still hold
	// StockLeft is what is left in the database of the stock, where that is another
	// one; nil also while anything is between the two.
	StockLeft *int64
	Between   int // requests to the database of the stock that are not concluded
}

// Held counts the orders that have a unit.
func (l Ledger) Held() int64 { return l.Confirmed + l.Paid }

// Decided counts the orders that have a decision.
func (l Ledger) Decided() int64 { return l.Held() + l.Failed + l.Cancelled + l.Refunded }

// Ledgers is what the comparison of gate, queue and database needs of the
// database.
type Ledgers interface {
	// Ledger is an *Error with NotFound when there is no such voucher.
	Ledger(ctx context.Context, voucher ID) (Ledger, error)
	// Orders and HeldOrders are those of Store.
	Orders(ctx context.Context, ids ...ID) ([]Order, error)
	HeldOrders(ctx context.Context, voucher, after ID, max int) ([]Order, error)
	// Fail decides that an order fails, unless it was decided before, and returns
	// the decision that stands.
	Fail(ctx context.Context, r Reservation, reason string) (Order, error)
}
