package sale

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"queuelab/app/trace"
	"queuelab/queue"
)

// Service is the sale's front: everything that a request can ask for.
type Service struct {
	IDs      IDs
	Gate     Gate
	Store    Store
	Life     Life
	Letters  Letters
	Mine     Mine
	Board    *Board
	Starter  *Starter
	Outbox   *Outbox
	Results  *Results
	Loader   *Loader
	Observer Observer
	Log      *slog.Logger
	Tracer   *trace.Tracer // nil: nobody traces
	Seller   Seller        // nil: what the gate admits is queued, and decided by a consumer
	Tallies  *Tallies      // nil: nobody counts
	// MaxInFlight is that of a voucher that is made without one of its own; 0: no bound.
	MaxInFlight int64

	patience patience
	finder   finder
}

// admitTries bounds how often an admission without an answer is asked again,
// with the same order id.
const admitTries = 3

// stepTimeout bounds one step that must be tried even after the buyer is gone.
const stepTimeout = 3 * time.Second

// sellTimeout bounds a click that a Seller takes.
const sellTimeout = 5 * time.Second

// CreateVoucher checks an offer, stores it and opens the gate for it.
func (s *Service) CreateVoucher(ctx context.Context, o Offer) (Voucher, error) {
	if err := o.Validate(); err != nil {
		return Voucher{}, err
	}
	id, err := s.IDs.Next()
	if err != nil {
		return Voucher{}, busy("no ids can be made at the moment", err)
	}
	openAt, err := o.openAt()
	if err != nil {
		return Voucher{}, err
	}
	v := Voucher{ID: id, Title: o.Title, Stock: o.Stock, Left: o.Stock, PayValue: o.PayValue, ActualValue: o.ActualValue,
		Begin: o.Begin.UTC(), End: o.End.UTC(), PayWithin: o.PayWithin,
		PerUser: max(o.PerUser, 1), MaxInFlight: s.inFlight(o), Buckets: max(o.Buckets, 1), Signal: o.Start == BySignal, OpenAt: openAt, Created: time.Now().UTC()}
	if err := s.Store.CreateVoucher(ctx, v); err != nil {
		return Voucher{}, fmt.Errorf("create a voucher: %w", err)
	}
	// The voucher exists from here on; a gate that fails now is loaded by the
	// first click.
	if _, err := s.Gate.Load(ctx, v); err != nil {
		s.Log.Warn("the gate was not opened yet", "voucher", v.ID, "error", err)
	}
	return v, nil
}

// inFlight is how many orders of an offer may wait at a time. Each bucket allows
// its part, so that the bound is at least as many as there are.
func (s *Service) inFlight(o Offer) int64 {
	if o.MaxInFlight > 0 || s.MaxInFlight == 0 {
		return o.MaxInFlight
	}
	return max(s.MaxInFlight, int64(o.Buckets))
}

// Buy is BuyOnce without a key.
func (s *Service) Buy(ctx context.Context, user string, voucher ID) (ID, error) {
	return s.BuyOnce(ctx, user, voucher, "")
}

// BuyOnce takes a click. An order id means that the unit is held for the buyer
// and the order will be decided. Otherwise the error is an *Error and nothing
// is held, with one exception: after CodeBusy because the gate did not answer,
// an order may still come about, and then the next click is CodeAlreadyBought
// with its id.
//
// key is what the buyer's side calls this wish: the same key again gets the same
// order, whatever has become of it since; "" is no key. ctx need not end: a click
// takes a few seconds at most.
func (s *Service) BuyOnce(ctx context.Context, user string, voucher ID, key string) (ID, error) {
	if key != "" {
		if err := CheckKey(key); err != nil {
			return 0, invalid(err.Error())
		}
	}
	order, err := s.IDs.Next()
	if err != nil {
		return 0, busy("no ids can be made at the moment", err)
	}
	c := Click{Reservation: Reservation{OrderID: order, VoucherID: voucher, UserID: user, AtMillis: time.Now().UnixMilli()}, Key: key}
	got, err := s.sell(ctx, c)
	s.Tallies.clicked(voucher, got == order, err)
	return got, err
}

func (s *Service) sell(ctx context.Context, c Click) (ID, error) {
	if s.Seller != nil {
		ctx, cancel := context.WithTimeout(ctx, sellTimeout)
		defer cancel()
		return s.Seller.Sell(ctx, c)
	}
	return s.sellAtGate(ctx, c)
}

// sellAtGate has the gate decide who may buy, and a consumer decide the order.
func (s *Service) sellAtGate(ctx context.Context, c Click) (ID, error) {
	began := time.Now()
	actx, span := s.Tracer.Within(ctx, "admission", trace.Client)
	c.Headers = s.Tracer.Headers(actx)
	a, err := s.click(actx, c)
	if span.Traced() {
		span.Set("order", c.OrderID.String(), "voucher", c.VoucherID.String(), "verdict", a.Verdict.String())
	}
	span.End(err)
	if s.Log.Enabled(ctx, slog.LevelDebug) {
		s.Log.DebugContext(ctx, "clicked", "order", c.OrderID, "voucher", c.VoucherID, "verdict", a.Verdict.String(), "holder", a.Order, "queued", a.Queued)
	}
	switch {
	case err != nil:
		return 0, busy("the sale is busy, try again in a moment", err)
	case a.Verdict != Admitted:
		return 0, s.refusal(ctx, c.VoucherID, a)
	}
	s.finder.note(a.Order, c.VoucherID)
	switch {
	case a.Order != c.OrderID:
		return a.Order, nil
	case a.Queued:
		s.Tallies.queued(c.VoucherID)
		s.Observer.Publish(queue.Accepted.String(), "admission", time.Since(began))
		return c.OrderID, nil
	}
	c.Nth = a.Nth
	return c.OrderID, s.send(ctx, c.Reservation)
}

// refusal is what a buyer is told who was not admitted.
func (s *Service) refusal(ctx context.Context, voucher ID, a Answer) error {
	switch a.Verdict {
	case AlreadyBought:
		return &Error{Code: CodeAlreadyBought, Message: "you have bought already: order " + a.Order.String(), OrderID: a.Order}
	case SoldOut:
		return &Error{Code: CodeSoldOut, Message: "sold out: a unit that is given back goes on sale again, and an order of yours is at GET /api/orders"}
	case NotStarted:
		return NotYet(Voucher{})
	case HasEnded:
		return Over()
	case NotLoaded:
		return s.notLoaded(ctx, voucher)
	case Crowded:
		return busy("too many orders are waiting, try again in a moment", errors.New("the voucher's bound of orders in flight is reached"))
	}
	return fmt.Errorf("buy: the gate gave verdict %d", a.Verdict)
}

// click asks the gate until it answers: a time-out is unknown, and asking again
// with the same order id takes nothing twice.
func (s *Service) click(ctx context.Context, c Click) (Answer, error) {
	began := time.Now()
	ctx = s.patience.within(ctx, began, stepTimeout)
	var errs error
	for try := range admitTries {
		if try > 0 {
			select {
			case <-ctx.Done():
				errs = errors.Join(errs, ctx.Err())
			case <-time.After(time.Duration(try) * 20 * time.Millisecond):
			}
		}
		if ctx.Err() != nil {
			break
		}
		a, err := s.Gate.Click(ctx, c)
		if err == nil {
			name := a.Verdict.String()
			if a.FromMemory {
				name += "_from_memory"
			}
			s.Observer.Admission(name, time.Since(began))
			return a, nil
		}
		errs = errors.Join(errs, err)
		c.Again = true
	}
	s.Observer.Admission("error", time.Since(began))
	return Answer{}, fmt.Errorf("admit: %w", errs)
}

// send publishes a reservation. Only a certain rejection gives the unit back:
// an unknown publish may be in the queue, so the reservation stays, and the
// rescan publishes the same id again; what the rescan has taken up already
// stays as well.
func (s *Service) send(ctx context.Context, r Reservation) error {
	outcome, err := s.Outbox.Send(ctx, r, "click")
	if outcome == queue.Accepted {
		s.Tallies.queued(r.VoucherID)
	}
	if s.Log.Enabled(ctx, slog.LevelDebug) {
		s.Log.DebugContext(ctx, "published", "order", r.OrderID, "message", r.OrderID, "voucher", r.VoucherID, "outcome", outcome.String())
	}
	if outcome != queue.Rejected {
		if err != nil {
			s.Log.WarnContext(ctx, "publish without an answer: the reservation stays", "order", r.OrderID, "message", r.OrderID, "voucher", r.VoucherID, "error", err)
		}
		return nil
	}
	rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	kept, rerr := s.Gate.Withdraw(rctx, r)
	if kept {
		return nil
	}
	if rerr != nil {
		// The mark is still there, or the release is done: the rescan finds out.
		s.Log.Warn("the unit of a rejected publish was not given back yet", "order", r.OrderID, "error", rerr)
	}
	return busy("the sale is busy, try again in a moment", fmt.Errorf("publish: %w", err))
}

// notLoaded tells a voucher that does not exist from one whose keys are gone,
// and has the latter loaded again.
func (s *Service) notLoaded(ctx context.Context, id ID) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	v, err := s.Store.Voucher(ctx, id)
	switch {
	case CodeOf(err) == CodeNotFound:
		return err
	case err != nil:
		return busy("the sale is busy, try again in a moment", fmt.Errorf("look up voucher %s: %w", id, err))
	case !time.Now().Before(v.End):
		return Over()
	}
	s.Loader.Want(v)
	return busy("the sale is being prepared, try again in a moment", errors.New("voucher is not loaded"))
}

// Vouchers lists the newest 200 vouchers, and of the others all whose sale is not
// over, the newest first. Where somebody watches a sale, what is left is what they
// see: the gate's number, which is ahead of the database's.
func (s *Service) Vouchers(ctx context.Context) ([]Voucher, error) {
	const newest = 200
	vs, err := s.Store.VouchersBelow(ctx, time.Time{}, math.MaxInt64, newest)
	if err == nil && len(vs) == newest {
		var others []Voucher
		others, err = AllVouchers(ctx, s.Store, time.Now(), vs[newest-1].ID)
		vs = append(vs, others...)
	}
	s.Board.leave(vs)
	return vs, err
}

// Reader is who asks for an order.
type Reader struct {
	User     string
	Operator bool
}

func (r Reader) may(o Order) bool { return r.Operator || r.User == o.UserID }

// Order tells where an order stands, and waits for its decision as long as
// asked. Someone else's order is not found, like one that never was.
func (s *Service) Order(ctx context.Context, reader Reader, id ID, wait time.Duration) (Order, error) {
	// Subscribed before looking, so that a decision in between is not missed.
	decided, cancel := s.Results.subscribe(id)
	defer cancel()
	o, err := s.lookup(ctx, id)
	if err != nil {
		return Order{}, err
	}
	if !reader.may(o) {
		return Order{}, NoOrder()
	}
	if o.Status != Queued || wait <= 0 {
		return o, nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case d := <-decided:
		return d, nil
	case <-timer.C:
	case <-ctx.Done():
	case <-s.Results.closed:
	}
	return o, nil
}
