package sale

import (
	"context"
	"errors"
	"time"
)

// SyncStore is what Sync needs of the database.
type SyncStore interface {
	// SellNow decides a click in one transaction: it looks whether the sale is
	// open, whether the buyer may have one more and whether there is a unit left,
	// takes that and writes the confirmed order. Its verdicts are those of a Gate,
	// and so is the Key; the order of the same id again is Admitted, and nothing
	// more is taken. An error is an *Error with NotFound where there is no such
	// voucher; any other means that the outcome is unknown.
	SellNow(ctx context.Context, c Click) (Answer, error)
}

// UserLock keeps one buyer's clicks apart, among all that share it.
type UserLock interface {
	// TryLock takes the lock of a name, and does not wait: false says that
	// somebody has it. unlock gives it back if it is still ours; it is not nil
	// where ok is true. The lock ends by itself after a while, so that the buyer of
	// a process that died can click again: what it guards must be safe without it.
	TryLock(ctx context.Context, name string) (unlock func(), ok bool, err error)
}

// Sync is the tutorials' first version: each click is decided in its request, in
// one transaction of the database, under a lock of its buyer. There is no stock
// at the gate and nothing in a queue.
//
// The lock is what the tutorials have against a buyer's second click. Here it
// only saves the database from deciding both: a lock that ended too early sells
// nothing twice, because of the unique index of orders.
type Sync struct {
	Service *Service
	Store   SyncStore
	Lock    UserLock
}

// Sell implements Seller.
func (s *Sync) Sell(ctx context.Context, c Click) (ID, error) {
	// A buyer who hangs up must not leave it open whether the order came about.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	began := time.Now()
	unlock, ok, err := s.Lock.TryLock(ctx, c.VoucherID.String()+":"+c.UserID)
	if err != nil {
		return 0, busy("the sale is busy, try again in a moment", err)
	}
	if !ok {
		return 0, busy("another click of yours is being decided, try again in a moment", errors.New("the buyer's lock is taken"))
	}
	defer unlock()
	a, err := s.Store.SellNow(ctx, c)
	switch {
	case CodeOf(err) != "":
		return 0, err
	case err != nil:
		s.Service.Observer.Admission("error", time.Since(began))
		return 0, busy("the sale is busy, try again in a moment", err)
	}
	s.Service.Observer.Admission(a.Verdict.String(), time.Since(began))
	if a.Verdict != Admitted {
		return 0, s.Service.refusal(ctx, c.VoucherID, a)
	}
	if a.Order == c.OrderID {
		r := c.Reservation
		r.Nth = a.Nth
		s.Service.Observer.Decided(Order{Reservation: r, Status: Confirmed}, time.Since(began))
	}
	return a.Order, nil
}
