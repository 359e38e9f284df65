package console

import (
	"queuelab/app/reconcile"
	"queuelab/app/sale"
)

// funnel is how far the clicks on one voucher came. Two know something of it and
// neither knows all: the instances counted what happened, but one that was killed
// took its last second with it; gate and database know every order that stands,
// but not those whose unit was given back. So the larger number of the two is
// the truer one.
func funnel(a reconcile.Account, t *sale.Tally, queueUsed bool) Funnel {
	committed, paid := a.Held()+a.Cancelled+a.Refunded, a.Paid+a.Refunded
	f := Funnel{Committed: &committed, Paid: &paid}
	if t == nil {
		return f
	}
	f.Refused = &Refused{SoldOut: t.SoldOut, AlreadyBought: t.AlreadyBought, Busy: t.Busy}
	admitted := max(t.Admitted, a.Decided())
	if g := a.Gate; g != nil {
		// Not the marks: an order that was just decided may still have one.
		admitted = max(admitted, g.Buyers)
	}
	clicked := max(t.Clicked, admitted)
	f.Clicked, f.Admitted = &clicked, &admitted
	if queueUsed {
		queued := max(t.Queued, committed)
		f.Queued = &queued
	}
	return f
}

// sum adds up funnels; what is unknown of one is unknown of all.
func sum(vs []Voucher) Funnel {
	var zero [5]int64
	total := Funnel{Clicked: &zero[0], Admitted: &zero[1], Queued: &zero[2], Committed: &zero[3], Paid: &zero[4], Refused: &Refused{}}
	add := func(to **int64, n *int64) {
		switch {
		case *to == nil || n == nil:
			*to = nil
		default:
			**to += *n
		}
	}
	for _, v := range vs {
		f := v.Funnel
		add(&total.Clicked, f.Clicked)
		add(&total.Admitted, f.Admitted)
		add(&total.Queued, f.Queued)
		add(&total.Committed, f.Committed)
		add(&total.Paid, f.Paid)
		switch {
		case total.Refused == nil || f.Refused == nil:
			total.Refused = nil
		default:
			total.Refused.SoldOut += f.Refused.SoldOut
			total.Refused.AlreadyBought += f.Refused.AlreadyBought
			total.Refused.Busy += f.Refused.Busy
		}
	}
	return total
}
