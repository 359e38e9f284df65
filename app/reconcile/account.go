package reconcile

import (
	"fmt"

	"queuelab/app/sale"
)

// Account is the ledger of one voucher:
//
//	stock  = left + held                      in the database
//	units  = left + buyers                    at the gate, where it holds stock
//	buyers = held + in flight + to give back  while nothing happens
//
// where held are the confirmed and paid orders, in flight those with a mark, and
// to give back the closed ones whose unit the gate may still hold.
type Account struct {
	sale.Ledger
	Gate *sale.Book // nil: the gate cannot be seen from here
	// Quiet: no order was on its way while the numbers were read, so that gate and
	// database must agree to the unit.
	Quiet bool
}

// Wrong says in words which of the equations do not hold; none is balanced. What
// is merely on its way is not wrong.
func (a Account) Wrong() (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, d := range a.drift() {
		say("%s", d.Detail)
	}
	g := a.Gate
	if g == nil || !g.Loaded {
		return wrong
	}
	if g.Off() != 0 {
		say("the gate has %d units left, and %d of %d are held", g.Left, g.Buyers, g.Units)
	}
	if a.Quiet && g.Buyers != a.Held() {
		say("the gate holds units for %d buyers, %d orders have one, and nothing is in flight", g.Buyers, a.Held())
	}
	return wrong
}

// drift is what is wrong with the database's own numbers.
func (a Account) drift() (ds []Drift) {
	add := func(k Kind, format string, args ...any) {
		ds = append(ds, Drift{Kind: k, Voucher: a.ID, Detail: fmt.Sprintf(format, args...)})
	}
	if a.Held() > a.Stock {
		add(Oversold, "%d orders have one of %d units", a.Held(), a.Stock)
	}
	if a.Units != a.Held() {
		add(SoldTwice, "%d orders have %d different units of their buyers", a.Held(), a.Units)
	}
	if a.Left+a.Held() != a.Stock {
		add(StockSumDiffers, "%d left and %d held are not the stock of %d", a.Left, a.Held(), a.Stock)
	}
	if a.StockLeft != nil && *a.StockLeft != a.Left {
		add(DatabasesDiffer, "%d left in the database of the stock and %d in that of the orders", *a.StockLeft, a.Left)
	}
	return ds
}
