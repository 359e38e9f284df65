package admission

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"queuelab/app/sale"
)

var (
	_ sale.Waiter = (*Redis)(nil)
	_ sale.Waiter = (*Memory)(nil)
)

// fields are where a buyer's units may be.
func fields(user string) []string {
	all := make([]string, sale.MaxPerUser)
	for n := range all {
		all[n] = field(sale.Reservation{UserID: user, Nth: n})
	}
	return all
}

// Waiting implements sale.Waiter.
func (g *Redis) Waiting(ctx context.Context, user string, vouchers ...sale.ID) ([]sale.Reservation, error) {
	units := fields(user)
	var rs []sale.Reservation
	for len(vouchers) > 0 {
		step := vouchers[:min(findStep, len(vouchers))]
		vouchers = vouchers[len(step):]
		pipe := g.client.Pipeline()
		held := make([]*redis.SliceCmd, len(step))
		for i, v := range step {
			b, err := g.bucket(ctx, sale.Reservation{VoucherID: v, UserID: user})
			if err != nil {
				return nil, fmt.Errorf("look for a buyer's units: %w", err)
			}
			held[i] = pipe.HMGet(ctx, g.key(b, "buyers"), units...)
		}
		// One that cannot be read hides no other: each has its own error.
		if _, err := pipe.Exec(ctx); err != nil && !wrongType(err) {
			return nil, fmt.Errorf("look for a buyer's units: %w", err)
		}
		var orders, in []sale.ID
		for i, h := range held {
			for _, holder := range h.Val() {
				text, _ := holder.(string)
				if order, err := sale.ParseID(text); err == nil {
					orders, in = append(orders, order), append(in, step[i])
				}
			}
		}
		marked, err := g.FindAll(ctx, orders, in...)
		if err != nil {
			return nil, err
		}
		for _, r := range marked {
			rs = append(rs, r)
		}
	}
	return rs, nil
}

// Waiting implements sale.Waiter.
func (m *Memory) Waiting(_ context.Context, user string, vouchers ...sale.ID) ([]sale.Reservation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	units := fields(user)
	var rs []sale.Reservation
	for _, id := range vouchers {
		v := m.voucher(id)
		for _, unit := range units {
			if k := v.marks[v.buyers[unit]]; k != nil {
				rs = append(rs, k.reservation)
			}
		}
	}
	return rs, nil
}
