package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/app/sale"
)

// Settle implements sale.Gate.
func (g *Redis) Settle(ctx context.Context, rs ...sale.Reservation) error {
	in, err := g.byBucket(ctx, rs)
	if err != nil || len(in) == 0 {
		return err
	}
	var bs []bucket
	var calls []call
	for b, at := range in {
		args := make([]any, 0, 2*len(at))
		for _, i := range at {
			args = append(args, field(rs[i]), rs[i].OrderID.String())
		}
		bs, calls = append(bs, b), append(calls, run(ctx, g.scripts.settle, g.keys(b), args...))
	}
	if err := g.exec(ctx, calls...); err != nil {
		return fmt.Errorf("settle script: %w", err)
	}
	// A buyer without a unit in one bucket gets one of another, before it is sold.
	uneven := map[sale.ID]int{}
	for i, c := range calls {
		if n, err := c.Int(); err != nil {
			return fmt.Errorf("settle script: %w", err)
		} else if n == lacking {
			uneven[bs[i].voucher] = bs[i].of
		}
	}
	for voucher, of := range uneven {
		if _, err := g.even(ctx, buckets(voucher, of)); err != nil {
			return err
		}
	}
	return nil
}

// Answers of scripts that change who holds what.
const (
	given   = 1 // the unit was given back
	lacking = 2 // of settle.lua: more is held in this bucket than it has
	kept    = 2 // of withdraw.lua: the order stands
)

// Release implements sale.Gate.
func (g *Redis) Release(ctx context.Context, r sale.Reservation) (bool, error) {
	n, err := g.giveBack(ctx, g.scripts.release, r)
	if err != nil {
		return false, fmt.Errorf("release script: %w", err)
	}
	return n == given, nil
}

// Withdraw implements sale.Gate.
func (g *Redis) Withdraw(ctx context.Context, r sale.Reservation) (bool, error) {
	n, err := g.giveBack(ctx, g.scripts.withdraw, r)
	if err != nil {
		return false, fmt.Errorf("withdraw script: %w", err)
	}
	return n == kept, nil
}

func (g *Redis) giveBack(ctx context.Context, s *redis.Script, r sale.Reservation) (int64, error) {
	b, err := g.bucket(ctx, r)
	if err != nil {
		return 0, err
	}
	c := run(ctx, s, g.keys(b), field(r), r.OrderID.String())
	if err := g.exec(ctx, c); err != nil {
		return 0, err
	}
	got, err := c.Int64Slice()
	if err == nil && len(got) != 2 {
		err = fmt.Errorf("%w: %v", errAnswer, got)
	}
	if err != nil {
		return 0, err
	}
	if got[0] == given {
		g.sold.forget(r.VoucherID)
	}
	if got[1] == 1 {
		if _, err := g.even(ctx, buckets(b.voucher, b.of)); err != nil {
			return 0, err
		}
	}
	return got[0], nil
}

// Find implements sale.Gate.
func (g *Redis) Find(ctx context.Context, order sale.ID, vouchers ...sale.ID) (sale.Reservation, bool, error) {
	found, err := g.FindAll(ctx, []sale.ID{order}, vouchers...)
	r, ok := found[order]
	return r, ok, err
}

// findStep is how many buckets one round trip of FindAll asks.
const findStep = 256

// FindAll implements sale.Gate.
func (g *Redis) FindAll(ctx context.Context, orders []sale.ID, vouchers ...sale.ID) (map[sale.ID]sale.Reservation, error) {
	found := make(map[sale.ID]sale.Reservation)
	if len(orders) == 0 {
		return found, nil
	}
	fields := make([]string, len(orders))
	for i, o := range orders {
		fields[i] = o.String()
	}
	var in []bucket // whose they are nobody says
	for _, v := range vouchers {
		bs, err := g.buckets(ctx, v)
		if err != nil {
			return nil, err
		}
		in = append(in, bs...)
	}
	for step := range slices.Chunk(in, findStep) {
		marks := make([]*redis.SliceCmd, len(step))
		_, _ = g.client.Pipelined(ctx, func(p redis.Pipeliner) error { // the first error of those that each command has
			for i, b := range step {
				marks[i] = p.HMGet(ctx, g.key(b, "marks"), fields...)
			}
			return nil
		})
		for i, b := range step {
			if err := marks[i].Err(); err != nil && !redis.HasErrorPrefix(err, "WRONGTYPE") {
				return nil, fmt.Errorf("find marks: %w", err)
			}
			for j, mark := range marks[i].Val() {
				text, _ := mark.(string)
				_, body, marked := strings.Cut(text, "|")
				if r, err := sale.DecodeReservation([]byte(body)); marked && err == nil && r.OrderID == orders[j] && r.VoucherID == b.voucher {
					found[r.OrderID] = r
				}
			}
		}
	}
	return found, nil
}

// Stale implements sale.Gate.
func (g *Redis) Stale(ctx context.Context, voucher sale.ID, age time.Duration, limit int) ([]sale.Reservation, error) {
	bs, err := g.buckets(ctx, voucher)
	if err != nil {
		return nil, err
	}
	var rs []sale.Reservation
	var errs error
	seen := 0
	// Each time another bucket first, as one may have more than are asked for.
	first := int(g.turn.Add(1)) % len(bs)
	for _, b := range append(bs[first:len(bs):len(bs)], bs[:first]...) {
		if seen >= limit {
			break
		}
		// One after the other: what is returned is not due again for a while.
		bodies, err := g.scripts.stale.Run(ctx, g.client, g.keys(b)[2:4], age.Milliseconds(), limit-seen).StringSlice()
		if err != nil {
			errs = errors.Join(errs, unreadable(voucher, fmt.Errorf("stale script: %w", err)))
			break
		}
		seen += len(bodies)
		for _, body := range bodies {
			r, err := sale.DecodeReservation([]byte(body))
			if err != nil {
				errs = errors.Join(errs, fmt.Errorf("%w: mark of voucher %s: %w", sale.ErrUnreadable, voucher, err))
				continue
			}
			rs = append(rs, r)
		}
	}
	return rs, errs
}

// Restore implements sale.Gate.
func (g *Redis) Restore(ctx context.Context, rs ...sale.Reservation) error {
	in, err := g.byBucket(ctx, rs)
	if err != nil || len(in) == 0 {
		return err
	}
	_, err = g.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for b, at := range in {
			for _, i := range at {
				p.HSetNX(ctx, g.key(b, "buyers"), field(rs[i]), rs[i].OrderID.String())
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("restore buyers: %w", err)
	}
	return nil
}
