// Package admission holds the gates: who may buy, decided in one atomic step
// before anything is queued. Redis is for real sales; Memory, with the same
// rules, needs nothing installed.
//
// # Keys in Redis
//
// All keys of a voucher share a hash tag, so that they are in one slot of a
// cluster:
//
//	seckill:{VOUCHER}:sale    hash    stock (units left), units (when the sale began), begin, end (Unix ms),
//	                                  each (units that one buyer may have), most (marks; 0: no bound)
//	seckill:{VOUCHER}:buyers  hash    user, user#1, user#2 ... -> order that holds that unit of the user
//	seckill:{VOUCHER}:marks   hash    order -> "ms|message body", until the order is committed
//	seckill:{VOUCHER}:due     zset    order by the time at which its mark was set, or is looked at again
//	seckill:{VOUCHER}:keys    hash    order -> idempotency key of its click, until its unit is given back
//
// And one for all: seckill:ids, a hash, is the counter of Redis.IDs.
//
// Where the script also puts messages into a queue of a cluster (see
// Redis.EnqueueInto), the queue's hash tag takes the place of the voucher's, and
// the keys are seckill:{QUEUE}:VOUCHER:sale and so on.
//
// stock is always the voucher's stock less the number of fields of buyers. Redis
// must not evict keys (maxmemory-policy noeviction).
package admission

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"queuelab/app/sale"
	"queuelab/queue"
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
	line                                          line
	sold                                          soldOut
	places                                        places
	enqueue                                       *queue.ScriptEnqueue // nil: whoever clicks publishes
	tag                                           string               // of all keys; "": each voucher has its own
	left                                          left                 // see Stockless
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
	g := &Redis{client: client, admit: redis.NewScript(admitSource), release: redis.NewScript(releaseSource),
		settle: redis.NewScript(settleSource), withdraw: redis.NewScript(withdrawSource), stale: redis.NewScript(staleSource), open: redis.NewScript(loadSource)}
	g.line.send = g.send
	return g
}

func (g *Redis) key(voucher sale.ID, what string) string {
	if g.tag != "" {
		return "seckill:{" + g.tag + "}:" + voucher.String() + ":" + what
	}
	return "seckill:{" + voucher.String() + "}:" + what
}

func (g *Redis) keys(voucher sale.ID) []string {
	return []string{g.key(voucher, "sale"), g.key(voucher, "buyers"), g.key(voucher, "marks"), g.key(voucher, "due"), g.key(voucher, "keys")}
}

// field is where the order of a buyer's unit is noted.
func field(r sale.Reservation) string {
	if r.Nth == 0 {
		return r.UserID
	}
	return r.UserID + "#" + strconv.Itoa(r.Nth) // no name has a #
}

// Load implements sale.Gate.
func (g *Redis) Load(ctx context.Context, v sale.Voucher) (bool, error) {
	v = g.left.offer(v)
	n, err := g.open.Run(ctx, g.client, g.keys(v.ID)[:2], v.Stock, v.Left, v.Opens().UnixMilli(), v.End.UnixMilli(),
		max(v.PerUser, 1), v.MaxInFlight).Int()
	if err != nil {
		return false, fmt.Errorf("load script: %w", err)
	}
	g.sold.forget(v.ID)
	return n == 1, nil
}

// Left implements sale.Gate.
func (g *Redis) Left(ctx context.Context, voucher sale.ID) (int64, bool, error) {
	n, err := g.client.HGet(ctx, g.key(voucher, "sale"), "stock").Int64()
	if errors.Is(err, redis.Nil) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("read stock: %w", err)
	}
	return g.left.instead(ctx, voucher, n, true)
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
