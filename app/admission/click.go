package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/app/sale"
)

// otherUnit is the script's answer to a click that asked for a unit which the
// buyer has: it should ask for another one.
const otherUnit = sale.Crowded + 1

// clickTries bounds how often a click asks for another unit. Each time one of
// the buyer's other clicks was faster.
const clickTries = 2 * sale.MaxPerUser

// Admit implements sale.Gate.
func (g *Redis) Admit(ctx context.Context, r sale.Reservation) (sale.Verdict, sale.ID, error) {
	a, err := g.Click(ctx, sale.Click{Reservation: r})
	return a.Verdict, a.Order, err
}

// Click implements sale.Gate.
func (g *Redis) Click(ctx context.Context, c sale.Click) (sale.Answer, error) {
	now := time.Now()
	if g.sold.says(c, now) {
		return sale.Answer{Verdict: sale.SoldOut, FromMemory: true}, nil
	}
	c.Nth = 0
	for range clickTries {
		a, err := g.line.ask(ctx, c)
		if err != nil {
			return sale.Answer{}, fmt.Errorf("admission: %w", err)
		}
		if a.Verdict != otherUnit {
			a.Queued = g.enqueue != nil && a.Verdict == sale.Admitted && a.Order == c.OrderID
			g.sold.note(c, a.Verdict, now)
			return a, nil
		}
		c.Nth = a.Nth
	}
	return sale.Answer{}, fmt.Errorf("admission: %d other clicks of buyer %s were faster", clickTries, c.UserID)
}

// send asks about many clicks in one round trip: one script call per voucher.
func (g *Redis) send(batch []*asking) {
	slices.SortStableFunc(batch, func(a, b *asking) int { return cmp.Compare(a.click.VoucherID, b.click.VoucherID) })
	// No caller's context: the round trip is everybody's. The client's timeouts
	// bound it.
	ctx := context.Background()
	var calls []call
	for len(batch) > 0 {
		n := 1
		for n < len(batch) && batch[n].click.VoucherID == batch[0].click.VoucherID {
			n++
		}
		calls = append(calls, g.call(ctx, batch[:n]))
		batch = batch[n:]
	}
	g.process(ctx, calls)
	if missing := slices.DeleteFunc(slices.Clone(calls), func(c call) bool { return !redis.HasErrorPrefix(c.cmd.Err(), "NOSCRIPT") }); len(missing) > 0 {
		if err := g.admit.Load(ctx, g.client).Err(); err == nil {
			for i := range missing {
				missing[i].cmd.SetErr(nil)
			}
			g.process(ctx, missing)
		}
	}
	for _, c := range calls {
		c.read()
	}
}

// call is one run of the script.
type call struct {
	clicks []*asking
	cmd    *redis.SliceCmd
}

func (g *Redis) call(ctx context.Context, clicks []*asking) call {
	keys := g.keys(clicks[0].click.VoucherID)
	command := ""
	if g.enqueue != nil {
		keys, command = append(keys, g.enqueue.Key), g.enqueue.Command
	}
	args := make([]any, 0, 5+len(keys)+5*len(clicks))
	args = append(args, "evalsha", g.admit.Hash(), len(keys))
	for _, k := range keys {
		args = append(args, k)
	}
	args = append(args, command, len(clicks))
	var more []any
	for _, a := range clicks {
		c := &a.click
		m := c.Message()
		args = append(args, c.UserID, m.ID, c.Nth, c.Key, m.Body)
		if g.enqueue != nil {
			m.Headers = c.Headers
			own := g.enqueue.Args(m)
			more = append(append(more, len(own)), own...)
		}
	}
	args = append(args, more...)
	return call{clicks, redis.NewSliceCmd(ctx, args...)}
}

func (g *Redis) process(ctx context.Context, calls []call) {
	if len(calls) == 1 {
		_ = g.client.Process(ctx, calls[0].cmd) // the command has its error
		return
	}
	pipe := g.client.Pipeline()
	for _, c := range calls {
		_ = pipe.Process(ctx, c.cmd) // only queues it
	}
	_, _ = pipe.Exec(ctx) // the first error of those that each command has
}

// read gives every click its own answer; one that makes no sense spoils no
// other.
func (c call) read() {
	res, err := c.cmd.Result()
	if err == nil && len(res) != 3*len(c.clicks) {
		err = fmt.Errorf("%d values for %d clicks", len(res), len(c.clicks))
	}
	for i, a := range c.clicks {
		if err != nil {
			a.err = fmt.Errorf("admission script: %w", err)
			continue
		}
		a.answer, a.err = parseAnswer(res[3*i : 3*i+3])
	}
}

var errAnswer = errors.New("unexpected answer")

func parseAnswer(res []any) (sale.Answer, error) {
	code, ok1 := res[0].(int64)
	order, ok2 := res[1].(string)
	nth, ok3 := res[2].(int64)
	if !ok1 || !ok2 || !ok3 || code < int64(sale.Admitted) || code > int64(otherUnit) || nth < 0 || nth >= sale.MaxPerUser {
		return sale.Answer{}, fmt.Errorf("admission script: %w %v", errAnswer, strconv.Quote(fmt.Sprint(res)))
	}
	a := sale.Answer{Verdict: sale.Verdict(code), Nth: int(nth)}
	if order == "" && a.Verdict != sale.Admitted && a.Verdict != sale.AlreadyBought {
		return a, nil
	}
	var err error
	if a.Order, err = sale.ParseID(order); err != nil {
		return sale.Answer{}, fmt.Errorf("admission script: holder: %w", err)
	}
	return a, nil
}
