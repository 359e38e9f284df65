package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"queuelab/app/loop"
	"queuelab/app/sale"
)

// stepTimeout bounds the repair of one difference.
const stepTimeout = 5 * time.Second

// repair does about each difference what can be done, and notes it in Done. Who
// holds what comes before how many units are left, because the one decides the
// other.
func (r *Reconciler) repair(ctx context.Context, l *Look, drift []Drift) {
	slices.SortStableFunc(drift, func(a, b Drift) int { return last(a.Kind) - last(b.Kind) })
	for i := range drift {
		if ctx.Err() != nil {
			return
		}
		loop.Step(ctx) // what is mended has a bound of its own
		d := &drift[i]
		done, err := r.mend(ctx, l, *d)
		if err != nil {
			d.Done, d.Did, d.DidFacts = "not put right: "+err.Error(), NotDone, []string{err.Error()}
			if r.before(*d).Did != NotDone {
				r.Log.Error("drift is not put right", "kind", d.Kind, "voucher", d.Voucher, "order", d.Order, "error", err)
			}
			continue
		}
		if done.step == "" {
			continue
		}
		d.Done, d.Did, d.DidFacts = done.words, done.step, done.facts
		r.mu.Lock()
		r.tried[d.key()] = *d
		r.mu.Unlock()
	}
}

// before is what was done about a difference after the look before.
func (r *Reconciler) before(d Drift) Drift {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.state.Drift {
		if b.key() == d.key() {
			return b
		}
	}
	return Drift{}
}

// gone counts the repairs after which a look found the difference no more. It is
// called with mu held.
func (r *Reconciler) gone(l *Look, seen map[key]Drift) {
	at := map[sale.ID]bool{}
	for _, a := range l.Accounts {
		at[a.ID] = true
	}
	told := 0
	for k, d := range r.tried {
		if _, still := seen[k]; still {
			continue
		}
		delete(r.tried, k)
		if !at[k.voucher] { // nobody looks at it any more
			continue
		}
		if told++; told <= logged {
			r.Log.Info("drift is put right", "kind", d.Kind, "voucher", d.Voucher, "order", d.Order, "done", d.Done)
		}
		r.state.Done[d.Kind]++
		r.state.Repairs = append(r.state.Repairs, d)
	}
	r.state.Repairs = r.state.Repairs[max(0, len(r.state.Repairs)-keptRepairs):]
}

// last orders repairs: who holds what decides what can be dropped, and both how
// many units are left.
func last(k Kind) int { return slices.Index([]Kind{GateUnreadable, UnitsDiffer, StockDiffers}, k) }

// done is what was done; the zero one is nothing.
type done struct {
	step  Step
	words string
	facts []string
}

func did(step Step, format string, facts ...any) done {
	d := done{step: step, words: fmt.Sprintf(format, facts...)}
	for _, f := range facts {
		d.facts = append(d.facts, fmt.Sprint(f))
	}
	return d
}

func (r *Reconciler) mend(ctx context.Context, l *Look, d Drift) (done, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	switch d.Kind {
	case GateNotLoaded:
		if r.Load == nil {
			return done{}, nil
		}
		return did(AskedToLoad, "asked for it to be loaded"), r.Load(ctx, d.Voucher)
	case GateUnreadable:
		return r.drop(ctx, l, d)
	case MarkUnreadable:
		return r.unmark(ctx, l, d)
	case UnitsDiffer, StockDiffers:
		return r.level(ctx, l, d)
	case OrderWithoutBuyer, ClosedOrderHolds, MarkOfDecided:
		return r.tell(ctx, d)
	case BuyerWithoutOrder:
		return r.lost(ctx, d)
	case MarkWithoutBuyer, OrderWaits:
		return r.again(ctx, d)
	}
	return done{}, nil // for people: see Kind
}

// tell has the gate do what the database says of an order now: it may have moved
// since the look.
func (r *Reconciler) tell(ctx context.Context, d Drift) (done, error) {
	os, err := r.Store.Orders(ctx, d.Order)
	if err != nil || len(os) == 0 {
		return done{}, err
	}
	return r.obey(ctx, os[0])
}

func (r *Reconciler) obey(ctx context.Context, o sale.Order) (done, error) {
	if o.Status.Holds() {
		return did(Held, "the gate holds the unit for the order, which is %s", o.Status), r.Gate.Settle(ctx, o.Reservation)
	}
	_, err := r.Gate.Release(ctx, o.Reservation)
	return did(GaveBack, "the gate gave the unit back of the order, which is %s", o.Status), err
}

// lost decides an order of which nothing is left, so that its buyer has an answer
// and its unit another one. Should its message come after all, it finds that
// decision.
func (r *Reconciler) lost(ctx context.Context, d Drift) (done, error) {
	held, err := r.Gate.Holdings(ctx, d.reservation)
	if err != nil || held[0].Marked && d.Kind != MarkUnreadable || held[0].Holder != d.Order {
		return done{}, err
	}
	lost := d.reservation
	lost.AtMillis = time.Now().UnixMilli()
	o, err := r.Store.Fail(ctx, lost, sale.ReasonLost)
	if err != nil {
		return done{}, err
	}
	return r.obey(ctx, o)
}

// again has the order decided: the database makes its effect one, however often
// its message comes.
func (r *Reconciler) again(ctx context.Context, d Drift) (done, error) {
	os, err := r.Store.Orders(ctx, d.Order)
	if err != nil {
		return done{}, err
	}
	if len(os) > 0 {
		return r.obey(ctx, os[0])
	}
	n, err := r.Gate.Index(ctx, d.Voucher, d.Order)
	if err != nil {
		return done{}, err
	}
	if r.Publish == nil {
		if n > 0 {
			return did(ToBeFound, "a rescan finds the order again"), nil
		}
		return done{}, nil
	}
	return did(Republished, "published again"), r.Publish(ctx, d.reservation)
}

// forgotten reports that the gate does not hold the unit of an order: then there
// only seem to be units that nobody has.
func forgotten(l *Look, voucher sale.ID) bool {
	return slices.ContainsFunc(l.Found, func(f Drift) bool { return f.Voucher == voucher && f.Kind == OrderWithoutBuyer })
}

// level has the gate's units be those of the database, and corrects what is left of
// them, in one step: what is left by other units would be sold to nobody.
func (r *Reconciler) level(ctx context.Context, l *Look, d Drift) (done, error) {
	if forgotten(l, d.Voucher) {
		return done{}, nil
	}
	now, err := r.Store.Ledger(ctx, d.Voucher)
	if err != nil {
		return done{}, err
	}
	change, err := r.Gate.Level(ctx, d.Voucher, now.Stock, now.Left)
	switch by := fmt.Sprintf("%+d", change); {
	case err != nil:
		return done{}, err
	case d.Kind == UnitsDiffer:
		return did(UnitsSet, "the gate was told of %d units, and those left were changed by %s", now.Stock, by), nil
	case change == 0:
		return done{}, nil
	default:
		return did(Levelled, "the gate's units were changed by %s", by), nil
	}
}

// drop removes what nobody can read: a mark of no order at once, and a key that is
// none of the gate's, since no click gets past it. A buyer's entry holds a unit, so
// it is for when every order has its own, and the gate waits until none is in flight.
func (r *Reconciler) drop(ctx context.Context, l *Look, d Drift) (done, error) {
	scraps := d.scraps
	if forgotten(l, d.Voucher) {
		scraps = slices.DeleteFunc(slices.Clone(scraps), func(x sale.Scrap) bool { return !x.Mark })
	}
	n, err := r.Gate.Drop(ctx, d.Voucher, scraps...)
	if err != nil || n == 0 {
		return done{}, err
	}
	b, err := r.Gate.Book(ctx, d.Voucher)
	if err == nil && !b.Loaded && r.Load != nil {
		err = r.Load(ctx, d.Voucher)
	}
	return did(Dropped, "%d entries were removed", n), err
}

// unmark ends an order's wait that no rescan ends. Its message may still be in the
// queue, so it is lost only once that is empty.
func (r *Reconciler) unmark(ctx context.Context, l *Look, d Drift) (done, error) {
	os, err := r.Store.Orders(ctx, d.Order)
	switch {
	case err != nil:
		return done{}, err
	case len(os) > 0:
		return r.obey(ctx, os[0])
	case !r.overdue(l, 0):
		return done{}, nil
	case d.reservation.UserID != "":
		return r.lost(ctx, d)
	}
	// No unit is held for it, and nobody knows whose it was.
	n, err := r.Gate.Drop(ctx, d.Voucher, d.scraps...)
	if err != nil || n == 0 {
		return done{}, err
	}
	return did(Dropped, "%d entries were removed", n), nil
}
