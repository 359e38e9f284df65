package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"queuelab/app/loop"
	"queuelab/app/sale"
	"queuelab/queue"
)

const (
	// orderPage is how many orders one step of reading the database brings.
	orderPage = 500
	// scrapsMost bounds what one look keeps of what nobody can read in a voucher, and
	// scrapsNamed how much of that it names.
	scrapsMost  = 500
	scrapsNamed = 5
)

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
	if errors.Is(err, sale.ErrUnreadable) {
		a.Unreadable = err.Error()
		a.Ledger, err = r.Store.Ledger(ctx, voucher)
		return a, err
	}
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
	scraps  map[sale.Scrap]bool
	unread  map[sale.ID]sale.Scrap // marks of these orders
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
	if a.Unreadable != "" {
		s.l.Found = append(s.l.Found, a.unreadable())
	}
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
	for _, step := range []func(context.Context) error{s.marks, s.holders, s.orders} {
		if err := step(ctx); errors.Is(err, sale.ErrUnreadable) {
			// Until it can be read, this is all that there is to say.
			s.add(GateUnreadable, sale.Reservation{}, "%s", err)
			return nil
		} else if err != nil {
			return err
		}
	}
	s.addScraps()
	return nil
}

// scrap keeps what nobody can read.
func (s *scan) scrap(x sale.Scrap) {
	if s.scraps == nil {
		s.scraps = map[sale.Scrap]bool{}
	}
	if len(s.scraps) < scrapsMost {
		s.scraps[x] = true
	}
}

func (s *scan) addScraps() {
	// Nobody holds a unit for these orders: only the marks are left.
	for order, x := range s.unread {
		s.markUnreadable(sale.Reservation{OrderID: order, VoucherID: s.voucher}, x)
	}
	if len(s.scraps) == 0 {
		return
	}
	scraps := slices.SortedFunc(maps.Keys(s.scraps), func(a, b sale.Scrap) int { return strings.Compare(a.Name, b.Name) })
	var names []string
	for _, x := range scraps[:min(len(scraps), scrapsNamed)] {
		of := "buyer"
		if x.Mark {
			of = "mark"
		}
		names = append(names, fmt.Sprintf("%s %.40q: %.40q", of, x.Name, x.Text))
	}
	if more := len(scraps) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	s.add(GateUnreadable, sale.Reservation{}, "%s", strings.Join(names, "; "))
	s.l.Found[len(s.l.Found)-1].scraps = scraps
}

func (s *scan) markUnreadable(r sale.Reservation, x sale.Scrap) {
	s.add(MarkUnreadable, r, "nobody can read the mark, so the order waits for ever")
	s.l.Found[len(s.l.Found)-1].scraps = []sale.Scrap{x}
}

// holders looks for units that are held for nobody.
func (s *scan) holders(ctx context.Context) error {
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		hs, next, err := s.r.Gate.Holders(ctx, s.voucher, cursor)
		if err != nil {
			return err
		}
		cursor = next
		rs := make([]sale.Reservation, 0, len(hs))
		for _, h := range hs {
			if h.Unread != nil {
				s.scrap(*h.Unread)
				continue
			}
			rs = append(rs, h.Reservation)
			if x, ok := s.unread[h.OrderID]; ok {
				s.markUnreadable(h.Reservation, x)
				delete(s.unread, h.OrderID)
			}
		}
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
			if m.Unread != nil && m.OrderID == 0 {
				s.scrap(*m.Unread)
				continue
			}
			if m.Unread != nil {
				if s.unread == nil {
					s.unread = map[sale.ID]sale.Scrap{}
				}
				if len(s.unread) < scrapsMost {
					s.unread[m.OrderID] = *m.Unread
				}
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
func (s *scan) overdue(age time.Duration) bool { return s.r.overdue(s.l, age) }

func (r *Reconciler) overdue(l *Look, age time.Duration) bool {
	if r.Strict {
		return true // how long it stands is all that counts
	}
	if q := l.Queue; q != nil && (q.Ready > 0 || q.InFlight > 0) {
		return age > slow*r.Age
	}
	return age == 0 || age > r.Age
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
