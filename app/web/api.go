package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
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
	return failure(fiber.StatusBadRequest, "invalid", fmt.Sprintf("the body is not the JSON object that is wanted: %.200s", inJSON(err)))
}

// inJSON says what is wrong in the words of JSON, not of Go.
func inJSON(err error) string {
	var kind *json.UnmarshalTypeError
	var when *time.ParseError
	switch {
	case errors.As(err, &kind):
		want := "another kind of value"
		switch kind.Type.Kind() {
		case reflect.Int, reflect.Int64:
			want = "a whole number"
		case reflect.String:
			want = "a text"
		case reflect.Struct, reflect.Map:
			want = "an object"
		}
		if kind.Field == "" {
			return "it is a " + kind.Value + ", not " + want
		}
		return fmt.Sprintf("%s is a %s, want %s", kind.Field, kind.Value, want)
	case errors.As(err, &when):
		return fmt.Sprintf("%.60q is no time: write it as 2026-01-31T09:00:00Z", when.Value)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

type voucherRequest struct {
	Title       string    `json:"title"`
	Stock       int64     `json:"stock"`
	PayValue    int64     `json:"payValue"`
	ActualValue int64     `json:"actualValue"`
	BeginTime   time.Time `json:"beginTime"`
	EndTime     time.Time `json:"endTime"`
	PerUser     int       `json:"perUser"`     // units that one buyer may have; 0 is 1
	MaxInFlight int64     `json:"maxInFlight"` // orders that may wait at a time; 0: the bound of the service, see --max-in-flight
	Buckets     int       `json:"buckets"`     // parts of the stock at the gate; 0 is 1
	// PayWithin is how long a confirmed order may stay unpaid; 0: no deadline.
	PayWithin int64 `json:"payWithinSeconds"`
	// Start is what opens the sale; with signal, beginTime is the earliest moment,
	// and OpenFrom and OpenTo say when (see sale.Offer). Readers are not told them.
	Start    sale.StartBy `json:"start"`
	OpenFrom time.Time    `json:"openFrom,omitzero"`
	OpenTo   time.Time    `json:"openTo,omitzero"`
}

type voucherAnswer struct {
	ID sale.ID `json:"id"`
	voucherRequest
	Left     int64      `json:"left"`
	OpenedAt *time.Time `json:"openedAt,omitempty"` // when the start signal was given; absent: not yet, or there is none
}

func (s *Server) createVoucher(c *fiber.Ctx) error {
	if _, err := s.onlyOperator(c); err != nil {
		return err
	}
	var in voucherRequest
	if err := decode(c.BodyRaw(), &in); err != nil {
		return err
	}
	ctx, cancel := timed(c)
	defer cancel()
	v, err := s.o.Service.CreateVoucher(ctx, sale.Offer{Title: in.Title, Stock: in.Stock, PayValue: in.PayValue, ActualValue: in.ActualValue,
		Begin: in.BeginTime, End: in.EndTime, PerUser: in.PerUser, MaxInFlight: in.MaxInFlight, Buckets: in.Buckets, PayWithin: seconds(in.PayWithin),
		Start: in.Start, OpenFrom: in.OpenFrom, OpenTo: in.OpenTo})
	if err != nil {
		return err
	}
	s.shelf.changed.Add(1)
	return c.Status(fiber.StatusCreated).JSON(fiber.Map{"id": v.ID})
}

func voucherOf(v sale.Voucher) voucherAnswer {
	a := voucherAnswer{ID: v.ID, Left: v.Left, voucherRequest: voucherRequest{Title: v.Title, Stock: v.Stock,
		PayValue: v.PayValue, ActualValue: v.ActualValue, BeginTime: v.Begin, EndTime: v.End,
		PerUser: v.PerUser, MaxInFlight: v.MaxInFlight, Buckets: max(v.Buckets, 1), PayWithin: int64(v.PayWithin / time.Second), Start: sale.ByClock}}
	if v.Signal {
		a.Start = sale.BySignal
	}
	if !v.Opened.IsZero() {
		a.OpenedAt = &v.Opened
	}
	return a
}

func (s *Server) buy(c *fiber.Ctx) error {
	user, id, err := s.wanted(c)
	if err != nil {
		return err
	}
	if err := s.passes(c, user, id); err != nil {
		return err
	}
	order, err := s.o.Service.BuyOnce(c.UserContext(), user, id, strings.Clone(c.Get("Idempotency-Key")))
	if sale.CodeOf(err) == sale.CodeSoldOut {
		s.o.Service.Board.SoldOut(id)
	}
	if sale.CodeOf(err) == sale.CodeNotStarted {
		// When it opens is known from the last look, and nobody is asked for it.
		if d := s.shelf.shown.Load(); d != nil && d.of[id] != nil {
			return sale.NotYet(d.of[id].Voucher)
		}
	}
	if err != nil {
		return err
	}
	return bought(c, order)
}

// bought writes the answer to a click that got an order, by hand: it is written
// tens of thousands of times a second.
func bought(c *fiber.Ctx, order sale.ID) error {
	var room [64]byte
	r := c.Response()
	r.SetStatusCode(fiber.StatusAccepted)
	r.Header.SetBytesV(fiber.HeaderLocation, strconv.AppendInt(append(room[:0], "/api/orders/"...), int64(order), 10))
	r.Header.SetContentType(fiber.MIMEApplicationJSON)
	r.SetBody(append(order.AppendJSON(append(room[:0], `{"orderId":`...)), '}'))
	return nil
}

type orderAnswer struct {
	OrderID sale.ID     `json:"orderId"`
	Status  sale.Status `json:"status"`
	Reason  string      `json:"reason"`
	PayBy   *time.Time  `json:"payBy,omitempty"` // while it is to be paid; absent: no deadline
	// Ahead counts the orders that are decided before this one, for those who wait;
	// absent: not known.
	Ahead *int64 `json:"ahead,omitempty"`
}

func answerOf(o sale.Order) orderAnswer {
	a := orderAnswer{OrderID: o.OrderID, Status: o.Status, Reason: o.Reason}
	if o.Status == sale.Confirmed && !o.PayBy.IsZero() {
		a.PayBy = &o.PayBy
	}
	return a
}

func (s *Server) order(c *fiber.Ctx) error {
	reader, id, err := s.reader(c)
	if err != nil {
		return err
	}
	wait, err := waiting(c, 0, maxWait)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), wait+requestTimeout)
	defer cancel()
	o, err := s.o.Service.Order(ctx, reader, id, wait)
	if err != nil {
		return err
	}
	a := answerOf(o)
	if wait > 0 {
		a = s.ahead(c.UserContext(), a, o)
	}
	return c.JSON(a)
}
