package sale

import (
	"context"
	"fmt"
	"time"
)

// PaymentState is where the money of a payment is.
type PaymentState string

const (
	// Taken: the payment pays its order.
	Taken PaymentState = "taken"
	// RefundDue: the payment came too late, or the order was paid already, so that
	// the money is to go back.
	RefundDue PaymentState = "refund_due"
	// MoneyBack: the money went back.
	MoneyBack PaymentState = "refunded"
)

// Payment is money that was paid for an order, as the payment provider tells it.
type Payment struct {
	ID      string // of all payments of its order: one that is told twice is one
	OrderID ID
	Cents   int64
	State   PaymentState
	Reason  string // why it pays nothing; empty for one that pays, or paid
	At      time.Time
}

// MaxPaymentID bounds the id of a payment, in bytes.
const MaxPaymentID = 64

// MaxPayments bounds the payments that are kept of one order.
const MaxPayments = 20

// CheckPaymentID says what is wrong with the id of a payment, if anything.
func CheckPaymentID(s string) error {
	if len(s) == 0 || len(s) > MaxPaymentID {
		return invalid(fmt.Sprintf("paymentId has 1 to %d characters", MaxPaymentID))
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return invalid("paymentId has only visible ASCII characters")
		}
	}
	return nil
}

// Life is what the life of an order after its decision needs of the database.
// Every step is a conditional one: of two that exclude each other, at the same
// time, one happens.
type Life interface {
	// Pay keeps the payment and has it pay its order: a confirmed one whose time to
	// pay has not ended, by the database's clock. Otherwise the payment is kept as
	// RefundDue. It returns both as they are then. A payment that is told again
	// changes nothing. An *Error means that nothing was kept: NotFound where there is
	// no such decided order, CodeInvalid where the amount is not the price or the
	// order has MaxPayments already.
	Pay(ctx context.Context, p Payment) (Order, Payment, error)

	// CloseOrder cancels a confirmed order or refunds a paid one, money and all,
	// and gives its unit back to the stock. It returns the order as it is then,
	// and whether this call closed it.
	CloseOrder(ctx context.Context, id ID, to Status, reason string) (o Order, closed bool, err error)

	// RefundPayment notes that the money of a payment went back. One that pays an
	// order closes that order. It returns the payment as it is then, and whether
	// this call did it; NotFound where there is none.
	RefundPayment(ctx context.Context, order ID, id string) (p Payment, did bool, err error)

	// Payments lists payments in a state by order and id, those after the given one,
	// at most max.
	Payments(ctx context.Context, state PaymentState, after Payment, max int) ([]Payment, error)
}

// wrongState refuses a step that the order's status does not allow.
func wrongState(message string) error { return &Error{Code: CodeWrongState, Message: message} }

// own returns an order of the reader, whatever its status.
func (s *Service) own(ctx context.Context, reader Reader, id ID) (Order, error) {
	o, err := s.lookup(ctx, id)
	if err == nil && !reader.may(o) {
		err = NoOrder()
	}
	return o, err
}

// Pay tells of a payment for an order: whoever calls it has made sure that there
// is that money. nil means that the payment pays the order, now or since it was
// told first. With CodeTooLate and CodeAlreadyPaid the payment is kept, and its
// money is to go back.
func (s *Service) Pay(ctx context.Context, p Payment) (Order, error) {
	if err := CheckPaymentID(p.ID); err != nil {
		return Order{}, err
	}
	if p.Cents < 0 || p.Cents > MaxMoney {
		return Order{}, invalid(fmt.Sprintf("cents must be from 0 to %d", int64(MaxMoney)))
	}
	o, kept, err := s.Life.Pay(ctx, p)
	if CodeOf(err) == CodeNotFound {
		if o, err := s.own(ctx, Reader{Operator: true}, p.OrderID); err == nil && o.Status == Queued {
			return Order{}, wrongState("the order is not decided yet, so there is nothing to pay")
		}
	}
	if err != nil {
		return Order{}, err
	}
	switch kept.Reason {
	case "":
		s.Results.Decided(o)
		return o, nil
	case ReasonPaid:
		return Order{}, &Error{Code: CodeAlreadyPaid, Message: "the order is paid already: this payment was kept, and its money is to go back"}
	default:
		return Order{}, &Error{Code: CodeTooLate, Message: fmt.Sprintf("the order is %s, or its time to pay has ended: this payment was kept, and its money is to go back", o.Status)}
	}
}

// Price is what one of this buyer's orders costs, in cents.
func (s *Service) Price(ctx context.Context, user string, id ID) (int64, error) {
	o, err := s.own(ctx, Reader{User: user}, id)
	if err != nil {
		return 0, err
	}
	v, err := s.Store.Voucher(ctx, o.VoucherID)
	return v.PayValue, err
}

// Cancel closes an unpaid order by its buyer's wish. A cancelled one stays as it
// is, without an error.
func (s *Service) Cancel(ctx context.Context, user string, id ID) (Order, error) {
	o, err := s.own(ctx, Reader{User: user}, id)
	if err != nil {
		return Order{}, err
	}
	if o.Status == Confirmed {
		if o, err = s.close(ctx, id, Cancelled, ReasonByBuyer); err != nil {
			return Order{}, err
		}
	}
	switch o.Status {
	case Cancelled:
		return o, nil
	case Queued:
		return Order{}, wrongState("the order is not decided yet: wait for that, then cancel it")
	case Paid:
		return Order{}, wrongState("the order is paid: ask for a refund")
	default:
		return Order{}, wrongState(fmt.Sprintf("the order is %s", o.Status))
	}
}

// Refund gives back the money and the unit of a paid order, for an operator. A
// refunded one stays as it is, without an error.
func (s *Service) Refund(ctx context.Context, id ID) (Order, error) {
	o, err := s.own(ctx, Reader{Operator: true}, id)
	if err != nil {
		return Order{}, err
	}
	if o.Status == Paid {
		if o, err = s.close(ctx, id, Refunded, ReasonByOperator); err != nil {
			return Order{}, err
		}
	}
	if o.Status != Refunded {
		return Order{}, wrongState(fmt.Sprintf("the order is %s: only a paid one is refunded", o.Status))
	}
	return o, nil
}

// RefundPayment gives the money of one payment back, for an operator: also of
// one that pays nothing. One that went back already stays as it is.
func (s *Service) RefundPayment(ctx context.Context, order ID, id string) (Payment, error) {
	p, did, err := s.Life.RefundPayment(ctx, order, id)
	if err == nil && did && p.Reason == "" {
		if o, ok, err := s.decided(ctx, p.OrderID); err == nil && ok {
			s.closed(ctx, o)
		}
	}
	return p, err
}

func (s *Service) close(ctx context.Context, id ID, to Status, reason string) (Order, error) {
	o, closed, err := s.Life.CloseOrder(ctx, id, to, reason)
	if err == nil && closed {
		s.closed(ctx, o)
	}
	return o, err
}

// closed gives the unit back at the gate at once, so that the buyer or another
// one can click now. The order is on the list of what is to be given back all
// the same: what fails here is done by the sweep.
func (s *Service) closed(ctx context.Context, o Order) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	if _, err := s.Gate.Release(ctx, o.Reservation); err != nil {
		s.Log.Warn("a closed order keeps its unit at the gate for now", "order", o.OrderID, "error", err)
	}
	s.Results.Decided(o)
}
