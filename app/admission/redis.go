// Package admission holds the gates: who may buy, decided in one atomic step
// before anything is queued. Redis is for real sales; Memory, with the same
// rules, needs nothing installed.
//
// # Keys in Redis
//
// All keys of a voucher share a hash tag, so that they are in one slot of a
// cluster:
//
//	seckill:{VOUCHER}:sale    hash    stock (units left), units (when the sale began), begin, end (Unix ms)
//	seckill:{VOUCHER}:buyers  hash    user -> order that holds the user's unit
//	seckill:{VOUCHER}:marks   hash    order -> "ms|message body", until the order is committed
//	seckill:{VOUCHER}:due     zset    order by the time at which its mark was set, or is looked at again
//
// stock is always the voucher's stock less the number of buyers. Redis must
// not evict keys (maxmemory-policy noeviction).
package admission

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"queuelab/app/sale"
)

var (
	//go:embed admit.lua
	admitSource string
	//go:embed release.lua
	releaseSource string
	//go:embed settle.lua
	settleSource string
	//go:embed withdraw.lua
	withdrawSource string
	//go:embed stale.lua
	staleSource string
	//go:embed load.lua
	loadSource string
)

// Redis is a gate that all instances share.
type Redis struct {
	client                                        *redis.Client
	admit, settle, release, withdraw, stale, open *redis.Script
}

// OpenRedis connects to redis://[user:password@]host:port/db and checks that
// the scripts run there.
func OpenRedis(ctx context.Context, rawURL string) (*Redis, error) {
	if !strings.HasPrefix(rawURL, "redis://") && !strings.HasPrefix(rawURL, "rediss://") && !strings.HasPrefix(rawURL, "unix://") {
		return nil, errors.New("the Redis URL must look like redis://127.0.0.1:6379/0")
	}
	o, err := redis.ParseURL(rawURL)
	if err != nil {
		// The error of url.Parse quotes the whole URL, password and all.
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, fmt.Errorf("the Redis URL: %w", err)
	}
	// A retry of the client would be a second click that nobody sees; ours keep
	// the order id.
	o.MaxRetries, o.DialerRetries = -1, 1
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = time.Second, time.Second, time.Second
	o.ContextTimeoutEnabled = true
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	g := NewRedis(redis.NewClient(o))
	if err := g.Check(ctx); err != nil {
		_ = g.Close()
		return nil, fmt.Errorf("Redis at %s: %w", o.Addr, err)
	}
	return g, nil
}

// NewRedis makes a gate over a client, which must not retry by itself. Close
// closes the client.
func NewRedis(client *redis.Client) *Redis {
	return &Redis{client: client, admit: redis.NewScript(admitSource), release: redis.NewScript(releaseSource),
		settle: redis.NewScript(settleSource), withdraw: redis.NewScript(withdrawSource), stale: redis.NewScript(staleSource), open: redis.NewScript(loadSource)}
}

func key(voucher sale.ID, what string) string { return "seckill:{" + voucher.String() + "}:" + what }

func keys(voucher sale.ID) []string {
	return []string{key(voucher, "sale"), key(voucher, "buyers"), key(voucher, "marks"), key(voucher, "due")}
}

// Admit implements sale.Gate.
func (g *Redis) Admit(ctx context.Context, r sale.Reservation) (sale.Verdict, sale.ID, error) {
	res, err := g.admit.Run(ctx, g.client, keys(r.VoucherID), r.UserID, r.OrderID.String(), r.Encode()).Slice()
	if err != nil {
		return 0, 0, fmt.Errorf("admission script: %w", err)
	}
	if len(res) == 2 {
		code, ok1 := res[0].(int64)
		order, ok2 := res[1].(string)
		if ok1 && ok2 && code >= int64(sale.Admitted) && code <= int64(sale.NotLoaded) {
			if order == "" {
				return sale.Verdict(code), 0, nil
			}
			holder, err := sale.ParseID(order)
			if err != nil {
				return 0, 0, fmt.Errorf("admission script: holder: %w", err)
			}
			return sale.Verdict(code), holder, nil
		}
	}
	return 0, 0, fmt.Errorf("admission script: unexpected answer %v", res)
}

// Settle implements sale.Gate.
func (g *Redis) Settle(ctx context.Context, rs ...sale.Reservation) error {
	args := map[sale.ID][]any{}
	for _, r := range rs {
		args[r.VoucherID] = append(args[r.VoucherID], r.UserID, r.OrderID.String())
	}
	for v, a := range args {
		if err := g.settle.Run(ctx, g.client, keys(v), a...).Err(); err != nil {
			return fmt.Errorf("settle script: %w", err)
		}
	}
	return nil
}

// Release implements sale.Gate.
func (g *Redis) Release(ctx context.Context, r sale.Reservation) (bool, error) {
	n, err := g.release.Run(ctx, g.client, keys(r.VoucherID), r.UserID, r.OrderID.String()).Int()
	if err != nil {
		return false, fmt.Errorf("release script: %w", err)
	}
	return n == 1, nil
}

// Withdraw implements sale.Gate.
func (g *Redis) Withdraw(ctx context.Context, r sale.Reservation) (kept bool, err error) {
	n, err := g.withdraw.Run(ctx, g.client, keys(r.VoucherID), r.UserID, r.OrderID.String()).Int()
	if err != nil {
		return false, fmt.Errorf("withdraw script: %w", err)
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
			got[i] = p.HGet(ctx, key(v, "marks"), order.String())
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
	bodies, err := g.stale.Run(ctx, g.client, keys(voucher)[2:], age.Milliseconds(), limit).StringSlice()
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
			p.HSetNX(ctx, key(r.VoucherID, "buyers"), r.UserID, r.OrderID.String())
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("restore buyers: %w", err)
	}
	return nil
}

// Load implements sale.Gate.
func (g *Redis) Load(ctx context.Context, v sale.Voucher) (bool, error) {
	n, err := g.open.Run(ctx, g.client, keys(v.ID)[:2], v.Stock, v.Left, v.Begin.UnixMilli(), v.End.UnixMilli()).Int()
	if err != nil {
		return false, fmt.Errorf("load script: %w", err)
	}
	return n == 1, nil
}

// Left implements sale.Gate.
func (g *Redis) Left(ctx context.Context, voucher sale.ID) (int64, bool, error) {
	n, err := g.client.HGet(ctx, key(voucher, "sale"), "stock").Int64()
	if errors.Is(err, redis.Nil) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("read stock: %w", err)
	}
	return n, true, nil
}

// Check implements sale.Gate: it runs the admission script on a voucher that
// cannot exist, because a PING says nothing about scripts.
func (g *Redis) Check(ctx context.Context) error {
	v, _, err := g.Admit(ctx, sale.Reservation{UserID: "check"})
	if err == nil && v != sale.NotLoaded {
		err = fmt.Errorf("admission script: voucher 0 is %v", v)
	}
	return err
}

// Close implements sale.Gate.
func (g *Redis) Close() error { return g.client.Close() }
