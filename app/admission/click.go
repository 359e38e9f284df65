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
	"queuelab/queue"
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
	b, err := g.bucket(ctx, c.Reservation)
	if err != nil {
		return sale.Answer{}, fmt.Errorf("admission: %w", err)
	}
	c.Nth = 0
	for range clickTries {
		a, err := g.line.ask(ctx, c, b)
		if err == nil && a.Verdict == sale.SoldOut && b.of > 1 {
			a, err = g.poor.ask(ctx, c, b)
		}
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

func byBucket(a, b *asking) int {
	return cmp.Or(cmp.Compare(a.bucket.voucher, b.bucket.voucher), cmp.Compare(a.bucket.n, b.bucket.n))
}

// send asks about many clicks in one round trip: one script call per bucket.
func (g *Redis) send(batch []*asking) {
	slices.SortStableFunc(batch, byBucket)
	// No caller's context: the round trip is everybody's. The client's timeouts
	// bound it.
	ctx := context.Background()
	var asks []asked
	var calls []call
	for len(batch) > 0 {
		n := 1
		for n < len(batch) && byBucket(batch[n], batch[0]) == 0 {
			n++
		}
		a := g.admission(ctx, batch[:n])
		asks, calls = append(asks, a), append(calls, a.call)
		batch = batch[n:]
	}
	_ = g.exec(ctx, calls...) // each has its own error
	for _, a := range asks {
		a.read()
	}
}

// asked is one run of the admission script.
type asked struct {
	clicks []*asking
	call
}

// admission asks about clicks of one bucket.
func (g *Redis) admission(ctx context.Context, clicks []*asking) asked {
	keys := g.keys(clicks[0].bucket)
	command := ""
	if g.enqueue != nil {
		keys, command = append(keys, g.enqueue.Key), g.enqueue.Command
	}
	// What is a pointer goes into the arguments without an allocation.
	ids, bodies := make([]string, len(clicks)), make([]text, len(clicks))
	room := make([]byte, 0, 128*len(clicks))
	args := make([]any, 0, 5+len(keys)+13*len(clicks))
	args = append(args, "evalsha", g.scripts.admit.Hash(), len(keys))
	for _, k := range keys {
		args = append(args, k)
	}
	args = append(args, command, len(clicks))
	for i, a := range clicks {
		c := &a.click
		from := len(room)
		room = c.AppendTo(room)
		ids[i], bodies[i] = c.OrderID.String(), room[from:]
		args = append(args, &c.UserID, &ids[i], c.Nth, &c.Key, &bodies[i])
	}
	if g.enqueue != nil {
		for i, a := range clicks {
			own := g.enqueue.Args(queue.Message{ID: ids[i], Key: ids[i], Body: bodies[i], Headers: a.click.Headers})
			args = append(append(args, len(own)), own...)
		}
	}
	return asked{clicks, call{g.scripts.admit, redis.NewCmd(ctx, args...)}}
}

// text is an argument of a command.
type text []byte

// MarshalBinary implements encoding.BinaryMarshaler.
func (t *text) MarshalBinary() ([]byte, error) { return *t, nil }

// read gives every click its own answer; one that makes no sense spoils no
// other.
func (c asked) read() {
	res, err := c.Slice()
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
