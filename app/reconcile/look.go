package reconcile

import (
	"context"
	"fmt"
	"time"

	"queuelab/app/loop"
	"queuelab/app/sale"
	"queuelab/queue"
)

// orderPage is how many orders one step of reading the database brings.
const orderPage = 500

// Look is what one look saw.
type Look struct {
	At       time.Time
	Accounts []Account
	Queue    *queue.Backlog // nil: the queue cannot tell
	Waiting  int            // orders with a mark and without a decision
	Found    []Drift
}

// Ledger reads the numbers of now of the newest vouchers, and compares no orders.
func (r *Reconciler) Ledger(ctx context.Context, most int) (*Look, error) {
	return r.look(ctx, most, func(sale.ID) bool { return true }, func(context.Context, *scan, Account) error { return nil })
}

// look has compare look at each voucher that is wanted. What that finds may be an
// order between two steps.
func (r *Reconciler) look(ctx context.Context, most int, wanted func(sale.ID) bool, compare func(context.Context, *scan, Account) error) (*Look, error) {
	l := &Look{At: time.Now()}
	if r.Backlog != nil {
		// A queue that does not answer is one that does not tell: gate and database
		// can be compared all the same.
		b, err := r.Backlog.Backlog(ctx)
		if err == nil {
			l.Queue = &b
		}
		r.noteQueue(err)
	}
	vouchers, err := r.Vouchers(ctx, l.At)
	if err != nil {
		return nil, fmt.Errorf("reconcile: list vouchers: %w", err)
	}
	for _, v := range vouchers[:min(most, len(vouchers))] {
		if !wanted(v) {
			continue
		}
		a, err := r.account(ctx, v)
		if err == nil {
			l.Accounts = append(l.Accounts, a)
			err = compare(ctx, &scan{r: r, l: l, voucher: v}, a)
		}
		if err != nil {
			return nil, fmt.Errorf("reconcile voucher %s: %w", v, err)
		}
		loop.Step(ctx)
	}
	return l, nil
}

func (r *Reconciler) noteQueue(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.silent.Tell == nil {
		r.silent.Tell = loop.Say(r.Log, "the queue does not tell what it holds")
	}
	r.silent.Note(err)
}

func (r *Reconciler) account(ctx context.Context, voucher sale.ID) (a Account, err error) {
	if r.Gate == nil {
		a.Ledger, err = r.Store.Ledger(ctx, voucher)
		return a, err
	}
	before, err := r.Gate.Book(ctx, voucher)
	if err != nil {
		return a, err
	}
	if a.Ledger, err = r.Store.Ledger(ctx, voucher); err != nil {
		return a, err
	}
	// Whatever happened in between shows at the gate.
	after, err := r.Gate.Book(ctx, voucher)
	a.Gate, a.Quiet = &after, before == after && after.Marks == 0 && a.GiveBack == 0
	return a, err
}

// scan reads gate and database page by page, so that a sale of millions needs no
// more memory than a small one. An order goes from gate to database, and its mark
// goes when it is there: so the gate is always read first.
type scan struct {
	r       *Reconciler
	l       *Look
	voucher sale.ID
}

func (s *scan) add(k Kind, r sale.Reservation, format string, args ...any) {
	d := said(k, s.voucher, format, args...)
	d.Order, d.reservation = r.OrderID, r
	s.l.Found = append(s.l.Found, d)
}

// compare looks at everything that is known of a voucher; less than full leaves
// out what its numbers say is right.
func (s *scan) compare(ctx context.Context, a Account, full bool) error {
	s.l.Found = append(s.l.Found, a.drift()...)
	// What is between two databases waits; most of it has a mark too.
	waiting := s.l.Waiting
	defer func() { s.l.Waiting = max(s.l.Waiting, waiting+a.Between) }()
	g := a.Gate
	if g == nil {
		return nil
	}
	if !g.Loaded {
		if s.l.At.Before(a.End) {
			s.add(GateNotLoaded, sale.Reservation{}, "the voucher is on sale, and clicks are busy until its gate is loaded")
		}
		return nil
	}
	if !g.Stockless() && g.Units != a.Stock {
		s.add(UnitsDiffer, sale.Reservation{}, "the gate began with %d units and the stock is %d", g.Units, a.Stock)
	}
	if g.Off() != 0 {
		s.l.Found = append(s.l.Found, a.stockDiffers())
	}
	// Numbers that agree while nothing is in flight say that the orders do, but for
	// two faults that cancel out.
	if !full && a.Quiet && g.Buyers == a.Held() && g.Off() == 0 {
		return nil
	}
	for _, step := range []func(context.Context) error{s.holders, s.marks, s.orders} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// holders looks for units that are held for nobody.
func (s *scan) holders(ctx context.Context) error {
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		rs, next, err := s.r.Gate.Holders(ctx, s.voucher, cursor)
		if err != nil {
			return err
		}
		cursor = next
		loop.Step(ctx)
		held, err := s.r.Gate.Holdings(ctx, rs...)
		if err != nil {
			return err
		}
		var asked []sale.Reservation
		for i, r := range rs {
			if held[i].Holder == r.OrderID && !held[i].Marked {
				asked = append(asked, r)
			}
		}
		decided, err := s.decided(ctx, asked)
		if err != nil {
			return err
		}
		for _, r := range asked {
			switch o, ok := decided[r.OrderID]; {
			case !ok:
				if s.overdue(0) {
					s.add(BuyerWithoutOrder, r, "a unit of buyer %s is held for an order that nobody knows", r.UserID)
				}
			case !o.Status.Holds():
				s.add(ClosedOrderHolds, r, "the order is %s, and the gate holds a unit of buyer %s for it", o.Status, r.UserID)
			}
		}
	}
	return nil
}

// marks looks for orders that wait in vain.
func (s *scan) marks(ctx context.Context) error {
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		ms, next, err := s.r.Gate.Marked(ctx, s.voucher, cursor)
		if err != nil {
			return err
		}
		cursor = next
		loop.Step(ctx)
		var asked []sale.Reservation
		age := map[sale.ID]time.Duration{}
		for _, m := range ms {
			if m.Unread {
				s.add(MarkUnreadable, m.Reservation, "nobody can read the mark, so the order waits for ever")
				continue
			}
			asked, age[m.OrderID] = append(asked, m.Reservation), m.Age
		}
		held, err := s.r.Gate.Holdings(ctx, asked...)
		if err != nil {
			return err
		}
		decided, err := s.decided(ctx, asked)
		if err != nil {
			return err
		}
		for i, r := range asked {
			o, ok := decided[r.OrderID]
			switch {
			case !held[i].Marked: // cleared meanwhile
			case ok:
				s.add(MarkOfDecided, r, "the order is %s, and counts as in flight", o.Status)
			default:
				s.l.Waiting++
				if held[i].Holder != r.OrderID {
					s.add(MarkWithoutBuyer, r, "the order waits for its decision, and its unit is not held for it")
				}
				if s.overdue(age[r.OrderID]) {
					s.add(OrderWaits, r, "buyer %s waits for a decision since %v", r.UserID, age[r.OrderID].Round(time.Millisecond))
				}
			}
		}
	}
	return nil
}

// overdue reports whether an order without a decision should have had one by
// now. A queue that holds messages is merely slow, for a while.
func (s *scan) overdue(age time.Duration) bool {
	if s.r.Strict {
		return true // how long it stands is all that counts
	}
	if q := s.l.Queue; q != nil && (q.Ready > 0 || q.InFlight > 0) {
		return age > slow*s.r.Age
	}
	return age == 0 || age > s.r.Age
}

// orders looks for orders that the gate forgot.
func (s *scan) orders(ctx context.Context) error {
	for after := sale.ID(0); ; {
		os, err := s.r.Store.HeldOrders(ctx, s.voucher, after, orderPage)
		if err != nil || len(os) == 0 {
			return err
		}
		loop.Step(ctx)
		rs := make([]sale.Reservation, len(os))
		for i, o := range os {
			rs[i] = o.Reservation
		}
		held, err := s.r.Gate.Holdings(ctx, rs...)
		if err != nil {
			return err
		}
		for i, r := range rs {
			if held[i].Holder != r.OrderID {
				s.add(OrderWithoutBuyer, r, "buyer %s has the order, and the gate holds no unit for it", r.UserID)
			}
		}
		after = rs[len(rs)-1].OrderID
	}
}

func (s *scan) decided(ctx context.Context, rs []sale.Reservation) (map[sale.ID]sale.Order, error) {
	ids := make([]sale.ID, len(rs))
	for i, r := range rs {
		ids[i] = r.OrderID
	}
	os, err := s.r.Store.Orders(ctx, ids...)
	if err != nil {
		return nil, err
	}
	decided := make(map[sale.ID]sale.Order, len(os))
	for _, o := range os {
		decided[o.OrderID] = o
	}
	return decided, nil
}
