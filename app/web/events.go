package web

import (
	"context"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"queuelab/app/sale"
)

const (
	// streamWait is how long a stream about an order goes on unasked, and
	// maxStreamWait how long at most.
	streamWait    = time.Minute
	maxStreamWait = 5 * time.Minute
	// aheadEvery is how often the place in the line is looked at.
	aheadEvery = time.Second
	// maxWatched is the most vouchers that one stream is about.
	maxWatched = 50
)

// eventRoutes are what buyers wait at.
func (s *Server) eventRoutes(api fiber.Router) {
	for _, stream := range []string{"/events", "/orders/:id/events"} {
		api.Head(stream, onlyGet) // there is no end of a stream to tell the length of
	}
	api.Get("/events", s.watch)
	api.Get("/orders/:id/events", s.follow)
	api.Get("/orders", s.ownOrders)
	api.Post("/vouchers/:id/open", s.fire)
}

func onlyGet(c *fiber.Ctx) error {
	c.Set(fiber.HeaderAllow, fiber.MethodGet)
	return fiber.ErrMethodNotAllowed
}

// waiting reads how long somebody wants to wait.
func waiting(c *fiber.Ctx, unasked, most time.Duration) (time.Duration, error) {
	q := c.Query("wait")
	if q == "" {
		return unasked, nil
	}
	wait, err := time.ParseDuration(q)
	if err != nil || wait < 0 {
		return 0, failure(fiber.StatusBadRequest, "invalid", "wait must be a duration such as 10s")
	}
	return min(wait, most), nil
}

// reader is who asks about which order.
func (s *Server) reader(c *fiber.Ctx) (sale.Reader, sale.ID, error) {
	r := sale.Reader{Operator: s.operator(c)}
	if !r.Operator {
		var err error
		if r.User, err = s.user(c); err != nil {
			return r, 0, err
		}
	}
	id, err := sale.ParseID(c.Params("id"))
	if err != nil {
		return r, 0, sale.NoOrder()
	}
	return r, id, nil
}

// ahead adds to the answer how many are decided before.
func (s *Server) ahead(ctx context.Context, a orderAnswer, o sale.Order) orderAnswer {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if n, ok := s.o.Service.Ahead(ctx, o); ok {
		a.Ahead = &n
	}
	return a
}

// follow tells of an order until it is decided.
func (s *Server) follow(c *fiber.Ctx) error {
	reader, id, err := s.reader(c)
	if err != nil {
		return err
	}
	wait, err := waiting(c, streamWait, maxStreamWait)
	if err != nil {
		return err
	}
	ctx, cancel := timed(c)
	defer cancel()
	o, decided, unfollow, err := s.o.Service.Follow(ctx, reader, id)
	if err != nil {
		return err
	}
	st, err := s.streams.begin(reader.User, s.address(c), true)
	if err != nil {
		unfollow()
		return err
	}
	return s.stream(c, st, func(e events) string {
		defer unfollow()
		return s.tellOrder(e, st, o, decided, wait)
	})
}

func (s *Server) tellOrder(e events, st *stream, o sale.Order, decided <-chan sale.Order, wait time.Duration) string {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	look, beat := time.NewTicker(aheadEvery), time.NewTicker(beatEvery)
	defer look.Stop()
	defer beat.Stop()
	told, news := int64(-1), true
	for {
		if o.Status != sale.Queued {
			if !e.send("order", answerOf(o)) {
				return ""
			}
			return endDecided
		}
		if a := s.ahead(context.Background(), answerOf(o), o); news || a.Ahead != nil && *a.Ahead != told {
			if !e.send("order", a) {
				return ""
			}
			if a.Ahead != nil {
				told = *a.Ahead
			}
			news = false
		}
		select {
		case o = <-decided:
		case <-look.C:
		case <-beat.C:
			if !e.beat() {
				return ""
			}
		case <-deadline.C:
			return endDeadline // the last event says that it is still queued
		case why := <-st.end:
			return why
		}
	}
}

type sceneAnswer struct {
	VoucherID sale.ID    `json:"voucherId"`
	Left      *int64     `json:"left"` // null: not known at the moment
	SoldOut   bool       `json:"soldOut"`
	OpenedAt  *time.Time `json:"openedAt"` // null: no start signal was given
}

// watch tells of vouchers: how many units are left, that all are sold, that the
// sale opens. Anybody may watch.
func (s *Server) watch(c *fiber.Ctx) error {
	var ids []sale.ID
	for _, q := range strings.Split(c.Query("voucher"), ",") {
		id, err := sale.ParseID(q)
		if err != nil || len(ids) == maxWatched {
			return failure(fiber.StatusBadRequest, "invalid", "voucher must be up to 50 ids of vouchers, with commas between")
		}
		ids = append(ids, id)
	}
	wait, err := waiting(c, maxStreamWait, maxStreamWait)
	if err != nil {
		return err
	}
	ctx, cancel := timed(c)
	defer cancel()
	watch, err := s.o.Service.Watch(ctx, ids...)
	if err != nil {
		return err
	}
	st, err := s.streams.begin(s.caller(c).user, s.address(c), false)
	if err != nil {
		watch.Close()
		return err
	}
	return s.stream(c, st, func(e events) string {
		defer watch.Close()
		return tellScenes(e, st, watch, wait)
	})
}

func tellScenes(e events, st *stream, watch *sale.Watch, wait time.Duration) string {
	deadline, beat := time.NewTimer(wait), time.NewTicker(beatEvery)
	defer deadline.Stop()
	defer beat.Stop()
	for {
		select {
		case <-watch.C:
			for _, scene := range watch.Changed() {
				if !e.send("voucher", sceneOf(scene)) {
					return ""
				}
			}
		case <-beat.C:
			if !e.beat() {
				return ""
			}
		case <-deadline.C:
			return endDeadline
		case why := <-st.end:
			return why
		}
	}
}

func sceneOf(s sale.Scene) sceneAnswer {
	a := sceneAnswer{VoucherID: s.Voucher}
	if s.Known {
		a.Left, a.SoldOut = &s.Left, s.Left <= 0
	}
	if !s.Opened.IsZero() {
		a.OpenedAt = &s.Opened
	}
	return a
}

type ownOrder struct {
	orderAnswer
	VoucherID sale.ID `json:"voucherId"`
}

// ownOrders lists what the buyer has.
func (s *Server) ownOrders(c *fiber.Ctx) error {
	user, err := s.user(c)
	if err != nil {
		return err
	}
	ctx, cancel := timed(c)
	defer cancel()
	os, err := s.o.Service.OwnOrders(ctx, user)
	if err != nil {
		return err
	}
	out := make([]ownOrder, len(os))
	for i, o := range os {
		out[i] = ownOrder{answerOf(o), o.VoucherID}
	}
	return c.JSON(fiber.Map{"orders": out})
}

// fire gives the start signal of a sale, for an operator.
func (s *Server) fire(c *fiber.Ctx) error {
	if _, err := s.onlyOperator(c); err != nil {
		return err
	}
	id, err := sale.ParseID(c.Params("id"))
	if err != nil {
		return sale.NoVoucher()
	}
	ctx, cancel := timed(c)
	defer cancel()
	v, fired, err := s.o.Service.Starter.Fire(ctx, id)
	if err != nil {
		return err
	}
	s.shelf.changed.Add(1)
	return c.JSON(fiber.Map{"id": v.ID, "openedAt": v.Opened, "fired": fired})
}
