package sale

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// leftFor is how long the number of units left is believed.
	leftFor = 100 * time.Millisecond
	// lookTimeout bounds how long clicks wait for that number.
	lookTimeout = 250 * time.Millisecond
	// maxLooks bounds the vouchers whose number is remembered.
	maxLooks = 1000
	// ticketsFor is how long the buyers are at least known who queue up here.
	ticketsFor = time.Minute
)

// QueueFirst has buyers queue up first, and the consumer decide about the stock:
// the gate, which holds none, only sees to it that a buyer stands in the line
// once, within the sale window, and that no more stand in it than the voucher's
// MaxInFlight, or the Service's where the voucher was made without one. Both are
// checked in the step that joins the line, so that no two can both be the last.
//
// When the consumer has sold the last unit, the database says so to everybody:
// at most ten looks a second for each voucher and instance, whatever the load.
// Whoever clicks then is refused here, and whoever stands in the line fails in
// bulk; see store.Store.Fulfil. A unit that comes back is on sale again after
// the next look.
type QueueFirst struct {
	Service *Service

	mu          sync.Mutex
	looks       map[ID]*look
	since       time.Time
	young, aged map[ticket]struct{}
}

// look is what the database said last.
type look struct {
	mu   sync.Mutex // held while asking: those who come meanwhile share the answer
	left int64
	at   time.Time
}

type ticket struct {
	voucher ID
	user    string
}

// Sell implements Seller.
func (q *QueueFirst) Sell(ctx context.Context, c Click) (ID, error) {
	left, err := q.left(ctx, c.VoucherID)
	switch {
	case err != nil:
		return 0, err
	case left <= 0 && !q.holds(ctx, c):
		q.Service.Observer.Admission(SoldOut.String()+"_from_memory", 0)
		return 0, q.Service.refusal(ctx, c.VoucherID, Answer{Verdict: SoldOut})
	}
	order, err := q.Service.sellAtGate(ctx, c)
	if err == nil {
		q.note(ticket{c.VoucherID, c.UserID}, time.Now())
	}
	return order, err
}

// left asks the database at most once in leftFor. Only a look that found nothing
// refuses anybody, and nobody is sold to because of one. The error is an *Error.
func (q *QueueFirst) left(ctx context.Context, voucher ID) (int64, error) {
	q.mu.Lock()
	l := q.looks[voucher]
	if l == nil {
		if q.looks == nil || len(q.looks) >= maxLooks { // those in use are back at once
			q.looks = map[ID]*look{}
		}
		l = &look{}
		q.looks[voucher] = l
	}
	q.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.at) < leftFor {
		return l.left, nil
	}
	// It is asked for everybody, not for who came first.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	v, err := q.Service.Store.Voucher(ctx, voucher)
	switch {
	case CodeOf(err) != "":
		return 0, err
	case err != nil:
		// A database that is away decides nothing now, and the line goes on.
		q.Service.Log.Warn("it is not known what is left", "voucher", voucher, "error", err)
		v.Left = 1
	}
	l.left, l.at = v.Left, time.Now()
	return l.left, nil
}

// holds reports whether a buyer has a unit, or asks by a key that may have got an
// order, and so is to be told of that by the gate, and not that all is gone. The database is asked only where that
// may be: about those who queued up here, and about who asks again by a key.
func (q *QueueFirst) holds(ctx context.Context, c Click) bool {
	if c.Key == "" && !q.known(ticket{c.VoucherID, c.UserID}) {
		return false
	}
	own, err := q.Service.Mine.OrdersOf(ctx, c.UserID, []ID{c.VoucherID}, maxMine)
	return err == nil && slices.ContainsFunc(own, func(o Order) bool { return c.Key != "" || o.Status.Holds() })
}

func (q *QueueFirst) known(t ticket) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, young := q.young[t]
	_, aged := q.aged[t]
	return young || aged
}

func (q *QueueFirst) note(t ticket, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.young == nil || now.Sub(q.since) > ticketsFor {
		q.aged, q.young, q.since = q.young, map[ticket]struct{}{}, now
	}
	q.young[t] = struct{}{}
}
