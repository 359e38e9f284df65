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
			r.Log.Error("drift is not put right", "kind", d.Kind, "voucher", d.Voucher, "order", d.Order, "error", err)
			continue
		}
		if done.step == "" {
			continue
		}
		d.Done, d.Did, d.DidFacts = done.words, done.step, done.facts
		if i < logged {
			r.Log.Info("drift is put right", "kind", d.Kind, "voucher", d.Voucher, "order", d.Order, "done", done.words)
		}
		r.mu.Lock()
		r.state.Done[d.Kind]++
		r.state.Repairs = append(r.state.Repairs, *d)
		r.state.Repairs = r.state.Repairs[max(0, len(r.state.Repairs)-keptRepairs):]
		r.mu.Unlock()
	}
}

func last(k Kind) int {
	if k == StockDiffers {
		return 1
	}
	return 0
}

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
	case StockDiffers:
		return r.level(ctx, l, d.Voucher)
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
	if err != nil || held[0].Marked || held[0].Holder != d.Order {
		return done{}, err
	}
	lost := d.reservation
	lost.AtMillis = time.Now().UnixMilli()
	o, err := r.Store.Fail(ctx, lost, ReasonLost)
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

// level corrects the units left, unless the gate does not know all buyers yet:
// then there only seem to be units.
func (r *Reconciler) level(ctx context.Context, l *Look, voucher sale.ID) (done, error) {
	for _, f := range l.Found {
		if f.Voucher == voucher && f.Kind == OrderWithoutBuyer {
			return done{}, nil
		}
	}
	now, err := r.Store.Ledger(ctx, voucher)
	if err != nil {
		return done{}, err
	}
	change, err := r.Gate.Level(ctx, voucher, now.Left)
	if err != nil || change == 0 {
		return done{}, err
	}
	return did(Levelled, "the gate's units were changed by %s", fmt.Sprintf("%+d", change)), nil
}
