package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/app/sale"
)

// Settle implements sale.Gate.
func (g *Redis) Settle(ctx context.Context, rs ...sale.Reservation) error {
	args := map[sale.ID][]any{}
	for _, r := range rs {
		args[r.VoucherID] = append(args[r.VoucherID], field(r), r.OrderID.String())
	}
	for v, a := range args {
		if err := g.settle.Run(ctx, g.client, g.keys(v), a...).Err(); err != nil {
			return fmt.Errorf("settle script: %w", err)
		}
	}
	return nil
}

// Release implements sale.Gate.
func (g *Redis) Release(ctx context.Context, r sale.Reservation) (bool, error) {
	n, err := g.release.Run(ctx, g.client, g.keys(r.VoucherID), field(r), r.OrderID.String()).Int()
	if err != nil {
		return false, fmt.Errorf("release script: %w", err)
	}
	if n == 1 {
		g.sold.forget(r.VoucherID)
	}
	return n == 1, nil
}

// Withdraw implements sale.Gate.
func (g *Redis) Withdraw(ctx context.Context, r sale.Reservation) (kept bool, err error) {
	n, err := g.withdraw.Run(ctx, g.client, g.keys(r.VoucherID), field(r), r.OrderID.String()).Int()
	if err != nil {
		return false, fmt.Errorf("withdraw script: %w", err)
	}
	if n == 1 {
		g.sold.forget(r.VoucherID)
	}
	return n == 2, nil
}

// Find implements sale.Gate.
func (g *Redis) Find(ctx context.Context, order sale.ID, vouchers ...sale.ID) (sale.Reservation, bool, error) {
	if len(vouchers) == 0 {
		return sale.Reservation{}, false, nil
	}
	got := make([]*redis.StringCmd, len(vouchers))
	_, err := g.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, v := range vouchers {
			got[i] = p.HGet(ctx, g.key(v, "marks"), order.String())
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return sale.Reservation{}, false, fmt.Errorf("find mark: %w", err)
	}
	for _, c := range got {
		mark, err := c.Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return sale.Reservation{}, false, fmt.Errorf("find mark: %w", err)
		}
		_, body, _ := strings.Cut(mark, "|")
		r, err := sale.DecodeReservation([]byte(body))
		return r, err == nil, err
	}
	return sale.Reservation{}, false, nil
}

// Stale implements sale.Gate.
func (g *Redis) Stale(ctx context.Context, voucher sale.ID, age time.Duration, limit int) ([]sale.Reservation, error) {
	bodies, err := g.stale.Run(ctx, g.client, g.keys(voucher)[2:4], age.Milliseconds(), limit).StringSlice()
	if err != nil {
		return nil, fmt.Errorf("stale script: %w", err)
	}
	rs := make([]sale.Reservation, 0, len(bodies))
	var errs error
	for _, b := range bodies {
		r, err := sale.DecodeReservation([]byte(b))
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("mark of voucher %s: %w", voucher, err))
			continue
		}
		rs = append(rs, r)
	}
	return rs, errs
}

// Restore implements sale.Gate.
func (g *Redis) Restore(ctx context.Context, rs ...sale.Reservation) error {
	if len(rs) == 0 {
		return nil
	}
	_, err := g.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, r := range rs {
			p.HSetNX(ctx, g.key(r.VoucherID, "buyers"), field(r), r.OrderID.String())
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("restore buyers: %w", err)
	}
	return nil
}
