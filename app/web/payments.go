package web

import (
	"errors"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"queuelab/app/door"
	"queuelab/app/sale"
)

// signatureHeader is where the payment provider signs, see door.Provider.
const signatureHeader = "X-Payment-Signature"

// moneyRoutes are how payments are told, and the operator's care for them.
func (s *Server) moneyRoutes(api fiber.Router) {
	api.Post("/orders/:id/pay", s.pay)
	api.Post("/orders/:id/checkout", s.checkout)
	api.Get("/payments", s.payments)
	api.Post("/orders/:id/payments/:payment/refund", s.refundPayment)
}

type payRequest struct {
	PaymentID string `json:"paymentId"`
	Cents     *int64 `json:"cents"`
}

// pay takes the payment provider's word, or an operator's: a buyer's word is no
// money.
func (s *Server) pay(c *fiber.Ctx) error {
	id, err := sale.ParseID(c.Params("id"))
	if err != nil {
		return sale.NoOrder()
	}
	var in payRequest
	if err := decode(c.BodyRaw(), &in); err != nil {
		return err
	}
	if in.Cents == nil {
		return failure(fiber.StatusBadRequest, "invalid", "cents is missing: what was paid, as a number")
	}
	p := sale.Payment{ID: in.PaymentID, OrderID: id, Cents: *in.Cents}
	if err := s.vouched(c, p, c.Get(signatureHeader)); err != nil {
		return err
	}
	return s.paid(c, p)
}

// vouched is a refusal where nobody stands for a payment who may.
func (s *Server) vouched(c *fiber.Ctx, p sale.Payment, signature string) error {
	if s.operator(c) {
		return nil
	}
	provider := s.o.Door.Provider
	if provider == nil {
		return failure(fiber.StatusForbidden, "forbidden", "only operators tell of payments here: for the payment provider set --payment-key")
	}
	switch err := provider.Check(p, signature, time.Now()); {
	case errors.Is(err, door.ErrSignedLong):
		return failure(fiber.StatusForbidden, "payment_signature", err.Error()+": sign the payment again, with the time of now")
	case err != nil:
		return failure(fiber.StatusForbidden, "payment_signature", err.Error()+": only it tells of payments, with "+signatureHeader)
	}
	return nil
}

// paid tells of a payment that somebody stands for.
func (s *Server) paid(c *fiber.Ctx, p sale.Payment) error {
	ctx, cancel := timed(c)
	defer cancel()
	o, err := s.o.Service.Pay(ctx, p)
	if err != nil {
		return err
	}
	return c.JSON(answerOf(o))
}

// checkout is what a stand-in for a payment provider does once the buyer has paid:
// it tells of the price, with one id for each order, so that paying twice pays once.
func (s *Server) checkout(c *fiber.Ctx) error {
	user, id, err := s.ownOrder(c)
	if err != nil {
		return err
	}
	provider := s.o.Door.Provider
	if provider == nil || !provider.StandIn {
		return failure(fiber.StatusConflict, "wrong_state", "there is no stand-in for a payment provider here: pay with the shop's provider, or start the lab with --payments=stand-in")
	}
	ctx, cancel := timed(c)
	defer cancel()
	cents, err := s.o.Service.Price(ctx, user, id)
	if err != nil {
		return err
	}
	p := sale.Payment{ID: "stand-in-" + id.String(), OrderID: id, Cents: cents}
	if err := s.vouched(c, p, provider.Sign(p, time.Now())); err != nil {
		return err
	}
	return s.paid(c, p)
}

type paymentAnswer struct {
	PaymentID string            `json:"paymentId"`
	OrderID   sale.ID           `json:"orderId"`
	Cents     int64             `json:"cents"`
	State     sale.PaymentState `json:"state"`
	Reason    string            `json:"reason"`
	At        time.Time         `json:"at"`
}

func paymentOf(p sale.Payment) paymentAnswer {
	return paymentAnswer{PaymentID: p.ID, OrderID: p.OrderID, Cents: p.Cents, State: p.State, Reason: p.Reason, At: p.At}
}

func (s *Server) refundPayment(c *fiber.Ctx) error {
	if _, err := s.onlyOperator(c); err != nil {
		return err
	}
	order, err := sale.ParseID(c.Params("id"))
	if err != nil {
		return sale.NoOrder()
	}
	id := param(c, "payment")
	if sale.CheckPaymentID(id) != nil {
		return sale.NotFound("no such payment of this order: GET /api/payments lists them")
	}
	ctx, cancel := timed(c)
	defer cancel()
	p, err := s.o.Service.RefundPayment(ctx, order, id)
	if err != nil {
		return err
	}
	return c.JSON(paymentOf(p))
}

// afterPayment reads where a page of payments begins.
func afterPayment(cursor string) (sale.Payment, error) {
	if cursor == "" {
		return sale.Payment{}, nil
	}
	order, id, _ := strings.Cut(cursor, "-")
	o, err := sale.ParseID(order)
	if err != nil {
		return sale.Payment{}, failure(fiber.StatusBadRequest, "invalid", "after is not one that a list gave: begin again without it")
	}
	return sale.Payment{OrderID: o, ID: id}, nil
}

func (s *Server) payments(c *fiber.Ctx) error {
	if _, err := s.onlyOperator(c); err != nil {
		return err
	}
	state, after, limit, err := paging(c, "after", sale.RefundDue, sale.Taken, sale.MoneyBack)
	if err != nil {
		return err
	}
	from, err := afterPayment(after)
	if err != nil {
		return err
	}
	ctx, cancel := timed(c)
	defer cancel()
	ps, err := s.o.Service.Life.Payments(ctx, state, from, limit)
	if err != nil {
		return err
	}
	out := make([]paymentAnswer, len(ps))
	for i, p := range ps {
		out[i] = paymentOf(p)
	}
	next := ""
	if len(ps) == limit {
		next = ps[limit-1].OrderID.String() + "-" + ps[limit-1].ID
	}
	return c.JSON(fiber.Map{"payments": out, "next": next})
}
