package web

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"queuelab/app/door"
	"queuelab/app/sale"
)

// lifeRoutes are what is asked for after an order's decision, and the operator's
// care for dead letters.
func (s *Server) lifeRoutes(api fiber.Router) {
	s.moneyRoutes(api)
	api.Post("/orders/:id/cancel", s.cancel)
	api.Post("/orders/:id/refund", s.refund)
	api.Get("/dead-letters", s.deadLetters)
	api.Post("/dead-letters/:id/replay", s.replay)
	api.Post("/dead-letters/:id/discard", s.discard)
}

// timed bounds what a request may wait for.
func timed(c *fiber.Ctx) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.UserContext(), requestTimeout)
}

// param reads a part of the path as it was before it was escaped, and copies it.
func param(c *fiber.Ctx, name string) string {
	p, err := url.PathUnescape(c.Params(name))
	if err != nil {
		return ""
	}
	return strings.Clone(p)
}

// ownOrder is who asks about which order.
func (s *Server) ownOrder(c *fiber.Ctx) (user string, id sale.ID, err error) {
	if user, err = s.user(c); err != nil {
		return "", 0, err
	}
	if id, err = sale.ParseID(c.Params("id")); err != nil {
		return "", 0, sale.NoOrder()
	}
	return user, id, nil
}

// onlyOperator returns the operator's name, or a refusal: 403 for somebody whom
// we know and who is no operator, 401 for anybody else.
func (s *Server) onlyOperator(c *fiber.Ctx) (string, error) {
	w := s.caller(c)
	switch {
	case w.role == door.Operator && w.err == nil:
		return w.user, nil
	case w.role == door.Operator:
		return "operator", nil // the token of the command line is nobody's by name
	case w.err == nil:
		return "", failure(fiber.StatusForbidden, "forbidden", "this is for operators, and "+w.user+" is a buyer: log in with an operator's account")
	case bearer(c) == "":
		return "", failure(fiber.StatusUnauthorized, "unauthorized", "this needs an operator: send Authorization: Bearer TOKEN, with the operator token or that of an operator's login")
	}
	return "", w.err
}

// seconds is a duration that does not become another one when it is too long.
func seconds(n int64) time.Duration {
	return time.Duration(max(-1, min(n, int64(sale.MaxPayWithin/time.Second)+1))) * time.Second
}

func (s *Server) cancel(c *fiber.Ctx) error {
	user, id, err := s.ownOrder(c)
	if err != nil {
		return err
	}
	ctx, cancel := timed(c)
	defer cancel()
	o, err := s.o.Service.Cancel(ctx, user, id)
	if err != nil {
		return err
	}
	return c.JSON(answerOf(o))
}

func (s *Server) refund(c *fiber.Ctx) error {
	if _, err := s.onlyOperator(c); err != nil {
		return err
	}
	id, err := sale.ParseID(c.Params("id"))
	if err != nil {
		return sale.NoOrder()
	}
	ctx, cancel := timed(c)
	defer cancel()
	o, err := s.o.Service.Refund(ctx, id)
	if err != nil {
		return err
	}
	return c.JSON(answerOf(o))
}

// maxPage is the most that one page of a list holds, and what it holds unasked.
const (
	maxPage     = 200
	defaultPage = 50
)

// paging reads the query of a list: its state, one of those that there are, where
// the page begins, and how long it is.
func paging[S ~string](c *fiber.Ctx, from string, states ...S) (state S, begin string, limit int, err error) {
	state, limit = states[0], defaultPage
	if q := c.Query("state"); q != "" {
		known := make([]string, len(states))
		found := false
		for i, k := range states {
			known[i] = string(k)
			if q == known[i] {
				state, found = k, true
			}
		}
		if !found {
			return state, "", 0, failure(fiber.StatusBadRequest, "invalid", "state must be one of "+strings.Join(known, ", "))
		}
	}
	if q := c.Query("limit"); q != "" {
		if limit, err = strconv.Atoi(q); err != nil || limit < 1 || limit > maxPage {
			return state, "", 0, failure(fiber.StatusBadRequest, "invalid", "limit must be from 1 to "+strconv.Itoa(maxPage))
		}
	}
	return state, strings.ToValidUTF8(strings.ReplaceAll(c.Query(from), "\x00", ""), ""), limit, nil
}

type letterAnswer struct {
	ID     string           `json:"id"`
	Body   string           `json:"body"`   // shortened, for people
	Code   sale.LetterCode  `json:"code"`   // why it was given up
	Reason string           `json:"reason"` // the error, in English
	At     time.Time        `json:"at"`
	Times  int              `json:"times"`
	State  sale.LetterState `json:"state"`
	DoneBy string           `json:"doneBy"`
	DoneAt *time.Time       `json:"doneAt"`
	Order  *orderAnswer     `json:"order"`
}

// shownBody bounds what is shown of the body of a message.
const shownBody = 4096

func letterOf(l sale.DeadLetter) letterAnswer {
	a := letterAnswer{ID: l.Message, Body: strings.ToValidUTF8(string(l.Body[:min(len(l.Body), shownBody)]), "\uFFFD"),
		Code: l.Code(), Reason: l.Reason, At: l.At, Times: l.Times, State: l.State, DoneBy: l.DoneBy}
	if !l.Done.IsZero() {
		a.DoneAt = &l.Done
	}
	if l.Order != nil {
		o := answerOf(*l.Order)
		a.Order = &o
	}
	return a
}

func (s *Server) deadLetters(c *fiber.Ctx) error {
	if _, err := s.onlyOperator(c); err != nil {
		return err
	}
	const all = "all"
	state, below, limit, err := paging(c, "below", sale.Open, sale.Replaying, sale.Replayed, sale.Discarded, all)
	if err != nil {
		return err
	}
	if state == all {
		state = ""
	}
	ctx, cancel := timed(c)
	defer cancel()
	ls, err := s.o.Service.DeadLetters(ctx, state, below, limit)
	if err != nil {
		return err
	}
	out := make([]letterAnswer, len(ls))
	for i, l := range ls {
		out[i] = letterOf(l)
	}
	next := ""
	if len(ls) == limit {
		next = ls[limit-1].Message
	}
	return c.JSON(fiber.Map{"letters": out, "next": next})
}

func (s *Server) replay(c *fiber.Ctx) error { return s.care(c, s.o.Service.Replay) }

func (s *Server) discard(c *fiber.Ctx) error { return s.care(c, s.o.Service.Discard) }

func (s *Server) care(c *fiber.Ctx, do func(ctx context.Context, message, by string) (sale.DeadLetter, error)) error {
	by, err := s.onlyOperator(c)
	if err != nil {
		return err
	}
	ctx, cancel := timed(c)
	defer cancel()
	l, err := do(ctx, param(c, "id"), by)
	if err != nil {
		return err
	}
	return c.JSON(letterOf(l))
}
