package sale

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Positioner is a gate that knows how long the line is.
type Positioner interface {
	// Position counts the orders of the same voucher that were admitted before this
	// one and wait for their decision as well. The number may be a second old.
	Position(ctx context.Context, r Reservation) (int64, error)
}

// Mine finds what somebody bought.
type Mine interface {
	// OrdersOf lists a buyer's decided orders of these vouchers, the newest first, at
	// most max.
	OrdersOf(ctx context.Context, user string, vouchers []ID, max int) ([]Order, error)
}

// maxMine is the most orders that a buyer is shown.
const maxMine = 100

// Follow is Order for those who wait by themselves: decided brings the order's
// next change, if the order it returned is still queued. cancel must be called.
func (s *Service) Follow(ctx context.Context, reader Reader, id ID) (o Order, decided <-chan Order, cancel func(), err error) {
	// Subscribed before looking, so that a decision in between is not missed.
	decided, cancel = s.Results.subscribe(id)
	if o, err = s.lookup(ctx, id); err == nil && !reader.may(o) {
		err = NoOrder()
	}
	if err != nil {
		cancel()
		return Order{}, nil, nil, err
	}
	return o, decided, cancel, nil
}

// Ahead tells how many orders are decided before this one, as long as it is
// queued; false: it is not, or the gate cannot tell.
func (s *Service) Ahead(ctx context.Context, o Order) (int64, bool) {
	g, ok := s.Gate.(Positioner)
	if !ok || o.Status != Queued {
		return 0, false
	}
	n, err := g.Position(ctx, o.Reservation)
	return n, err == nil
}

// Waiter is a Gate that can tell which of a buyer's orders wait for their decision.
type Waiter interface {
	// Waiting returns the reservations of this buyer that have a mark, in no order.
	Waiting(ctx context.Context, user string, vouchers ...ID) ([]Reservation, error)
}

// OwnOrders lists a buyer's orders of the vouchers of late, the newest first and at
// most 100: those that are decided, whatever has become of them, and those that
// wait.
func (s *Service) OwnOrders(ctx context.Context, user string) ([]Order, error) {
	vouchers, err := s.Loader.Recent(ctx, time.Now().Add(-time.Second))
	if err != nil {
		return nil, fmt.Errorf("list the orders of a buyer: %w", err)
	}
	if len(vouchers) == 0 {
		return nil, nil
	}
	var waiting []Reservation
	if g, ok := s.Gate.(Waiter); ok {
		// The gate before the database: what is decided in between is in both.
		if waiting, err = g.Waiting(ctx, user, vouchers...); err != nil {
			return nil, busy("your orders cannot be listed at the moment, try again soon", err)
		}
	}
	all, err := s.Mine.OrdersOf(ctx, user, vouchers, maxMine)
	if err != nil {
		return nil, err
	}
	for _, r := range waiting {
		if !slices.ContainsFunc(all, func(o Order) bool { return o.OrderID == r.OrderID }) {
			all = append(all, Order{Reservation: r, Status: Queued})
		}
	}
	slices.SortFunc(all, func(a, b Order) int { return cmp.Compare(b.OrderID, a.OrderID) })
	return all[:min(len(all), maxMine)], nil
}

// Watch begins to watch sales: those of the vouchers that are of late. It is
// NotFound where one of them is not.
func (s *Service) Watch(ctx context.Context, ids ...ID) (*Watch, error) {
	now := time.Now()
	for _, asOf := range []time.Time{now.Add(-time.Second), now} {
		recent, err := s.Loader.Recent(ctx, asOf)
		if err != nil {
			return nil, fmt.Errorf("watch vouchers: %w", err)
		}
		known := make(map[ID]bool, len(recent))
		for _, id := range recent {
			known[id] = true
		}
		missing := false
		for _, id := range ids {
			missing = missing || !known[id]
		}
		if !missing {
			return s.Board.Watch(ids...), nil
		}
	}
	return nil, NotFound("no such voucher, or its sale is long over")
}
