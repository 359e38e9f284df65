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
	Gate *sale.Book // nil: the gate cannot be seen from here, or not be read
	// Unreadable says what nobody can read of the voucher at the gate; "" is nothing.
	Unreadable string
	// Quiet: no order was on its way while the numbers were read, so that gate and
	// database must agree to the unit.
	Quiet bool
}

// Wrong says in words which of the equations do not hold; none is balanced. What
// is merely on its way is not wrong.
func (a Account) Wrong() (wrong []string) {
	for _, d := range a.Faults() {
		wrong = append(wrong, d.Detail)
	}
	return wrong
}

// Faults is Wrong for programs: kind, facts and words of each.
func (a Account) Faults() []Drift {
	ds := a.drift()
	if a.Unreadable != "" {
		ds = append(ds, a.unreadable())
	}
	g := a.Gate
	if g == nil || !g.Loaded {
		return ds
	}
	if g.Off() != 0 {
		ds = append(ds, a.stockDiffers())
	}
	if a.Quiet && g.Buyers != a.Held() {
		ds = append(ds, said(Uneven, a.ID, "the gate holds units for %d buyers, %d orders have one, and nothing is in flight", g.Buyers, a.Held()))
	}
	return ds
}

func (a Account) unreadable() Drift { return said(GateUnreadable, a.ID, "%s", a.Unreadable) }

func (a Account) stockDiffers() Drift {
	return said(StockDiffers, a.ID, "the gate has %d units left, and %d of %d are held", a.Gate.Left, a.Gate.Buyers, a.Gate.Units)
}

// said is a difference in words.
func said(k Kind, voucher sale.ID, format string, args ...any) Drift {
	d := Drift{Kind: k, Voucher: voucher, Detail: fmt.Sprintf(format, args...)}
	for _, a := range args {
		d.Facts = append(d.Facts, fmt.Sprint(a))
	}
	return d
}

// drift is what is wrong with the database's own numbers.
func (a Account) drift() (ds []Drift) {
	add := func(k Kind, format string, args ...any) {
		ds = append(ds, said(k, a.ID, format, args...))
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
