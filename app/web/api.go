package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"queuelab/app/sale"
)

// decode reads one JSON object. Everything that a typing error can do is an
// answer 400 that says what is wrong.
func decode(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		err = errors.New("there is something after the object")
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ends too early")
	}
	return failure(fiber.StatusBadRequest, "invalid", fmt.Sprintf("the body is not the JSON object that is wanted: %.200s", err))
}

type loginRequest struct {
	User string `json:"user"`
}

type loginAnswer struct {
	Token     string    `json:"token"`
	User      string    `json:"user"`
	ExpiresAt time.Time `json:"expiresAt"`
}

func (s *Server) login(c *fiber.Ctx) error {
	var in loginRequest
	if err := decode(c.BodyRaw(), &in); err != nil {
		return err
	}
	if err := sale.CheckUser(in.User); err != nil {
		return failure(fiber.StatusBadRequest, "invalid", "user: "+err.Error())
	}
	token, expires, err := s.o.Tokens.Issue(in.User)
	if err != nil {
		return err
	}
	return c.JSON(loginAnswer{Token: token, User: in.User, ExpiresAt: expires.UTC()})
}

type voucherRequest struct {
	Title       string    `json:"title"`
	Stock       int64     `json:"stock"`
	PayValue    int64     `json:"payValue"`
	ActualValue int64     `json:"actualValue"`
	BeginTime   time.Time `json:"beginTime"`
	EndTime     time.Time `json:"endTime"`
	PerUser     int       `json:"perUser"`     // units that one buyer may have; 0 is 1
	MaxInFlight int64     `json:"maxInFlight"` // orders that may wait at a time; 0: no bound
	// PayWithin is how long a confirmed order may stay unpaid; 0: no deadline.
	PayWithin int64 `json:"payWithinSeconds"`
}

type voucherAnswer struct {
	ID sale.ID `json:"id"`
	voucherRequest
	Left int64 `json:"left"`
}

func (s *Server) createVoucher(c *fiber.Ctx) error {
	if !s.operator(c) {
		return failure(fiber.StatusUnauthorized, "unauthorized", "creating a voucher needs the operator token: Authorization: Bearer TOKEN")
	}
	var in voucherRequest
	if err := decode(c.BodyRaw(), &in); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	v, err := s.o.Service.CreateVoucher(ctx, sale.Offer{Title: in.Title, Stock: in.Stock, PayValue: in.PayValue, ActualValue: in.ActualValue,
		Begin: in.BeginTime, End: in.EndTime, PerUser: in.PerUser, MaxInFlight: in.MaxInFlight, PayWithin: seconds(in.PayWithin)})
	if err != nil {
		return err
	}
	return c.Status(fiber.StatusCreated).JSON(fiber.Map{"id": v.ID})
}

func (s *Server) listVouchers(c *fiber.Ctx) error {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	vs, err := s.o.Service.Vouchers(ctx)
	if err != nil {
		return err
	}
	out := make([]voucherAnswer, len(vs))
	for i, v := range vs {
		out[i] = voucherAnswer{ID: v.ID, Left: v.Left, voucherRequest: voucherRequest{Title: v.Title, Stock: v.Stock,
			PayValue: v.PayValue, ActualValue: v.ActualValue, BeginTime: v.Begin, EndTime: v.End,
			PerUser: v.PerUser, MaxInFlight: v.MaxInFlight, PayWithin: int64(v.PayWithin / time.Second)}}
	}
	return c.JSON(out)
}

func (s *Server) buy(c *fiber.Ctx) error {
	user, err := s.user(c)
	if err != nil {
		return err
	}
	id, err := sale.ParseID(c.Params("id"))
	if err != nil {
		return sale.NotFound("no such voucher")
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	order, err := s.o.Service.BuyOnce(ctx, user, id, strings.Clone(c.Get("Idempotency-Key")))
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderLocation, "/api/orders/"+order.String())
	return c.Status(fiber.StatusAccepted).JSON(fiber.Map{"orderId": order})
}

type orderAnswer struct {
	OrderID sale.ID     `json:"orderId"`
	Status  sale.Status `json:"status"`
	Reason  string      `json:"reason"`
	PayBy   *time.Time  `json:"payBy,omitempty"` // while it is to be paid; absent: no deadline
}

func answerOf(o sale.Order) orderAnswer {
	a := orderAnswer{OrderID: o.OrderID, Status: o.Status, Reason: o.Reason}
	if o.Status == sale.Confirmed && !o.PayBy.IsZero() {
		a.PayBy = &o.PayBy
	}
	return a
}

func (s *Server) order(c *fiber.Ctx) error {
	reader := sale.Reader{Operator: s.operator(c)}
	if !reader.Operator {
		user, err := s.user(c)
		if err != nil {
			return err
		}
		reader.User = user
	}
	id, err := sale.ParseID(c.Params("id"))
	if err != nil {
		return sale.NotFound("no such order")
	}
	wait := time.Duration(0)
	if q := c.Query("wait"); q != "" {
		if wait, err = time.ParseDuration(q); err != nil || wait < 0 {
			return failure(fiber.StatusBadRequest, "invalid", "wait must be a duration such as 10s")
		}
	}
	wait = min(wait, maxWait)
	ctx, cancel := context.WithTimeout(context.Background(), wait+requestTimeout)
	defer cancel()
	o, err := s.o.Service.Order(ctx, reader, id, wait)
	if err != nil {
		return err
	}
	return c.JSON(answerOf(o))
}
