// Package admission holds the gates: who may buy, decided in one atomic step
// before anything is queued. Redis is for real sales; Memory, with the same
// rules, needs nothing installed.
//
// # Keys in Redis
//
// A voucher has one bucket or several (sale.Voucher.Buckets), and a buyer belongs
// to one of them, by a hash of the name. All keys of a bucket share a hash tag, so
// that they are in one slot of a cluster, and those of other buckets in others:
//
//	seckill:{BUCKET}:sale    hash    stock (units left), units (when the sale began, and what was moved since), begin,
//	                                 end (Unix ms), each (units that one buyer may have), most (marks; 0: no bound)
//	seckill:{BUCKET}:buyers  hash    user, user#1, user#2 ... -> order that holds that unit of the user
//	seckill:{BUCKET}:marks   hash    order -> "ms|message body", until the order is committed
//	seckill:{BUCKET}:due     zset    order by the time at which its mark was set, or is looked at again
//	seckill:{BUCKET}:keys    hash    order -> idempotency key of its click, until its unit is given back
//
// BUCKET is the voucher's id, and for all buckets but the first a dot and a number
// after it. Where there are several, sale also has the move of units that is under
// way to another bucket (out:N), the last one from each (in:N) and how the units
// were shared out when the voucher was loaded.
//
// And one for all: seckill:ids, a hash, is the counter of Redis.IDs.
//
// Where the script also puts messages into a queue of a cluster (see
// Redis.EnqueueInto), the queue's hash tag takes the place of the bucket's, and
// the keys are seckill:{QUEUE}:BUCKET:sale and so on.
//
// stock is always units less the number of fields of buyers, in each bucket. Redis
// must not evict keys (maxmemory-policy noeviction).
package admission

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"queuelab/app/sale"
	"queuelab/queue"
)

// Redis is a gate that all instances share.
type Redis struct {
	client  redis.UniversalClient
	scripts scripts
	line    line
	poor    line // of clicks whose bucket is empty
	counts  counts
	sold    soldOut
	places  places
	turn    atomic.Uint32        // of the buckets, in Stale
	enqueue *queue.ScriptEnqueue // nil: whoever clicks publishes
	tag     string               // of all keys; "": each bucket has its own
	left    left                 // see Stockless
}

// OpenRedis connects to redis://[user:password@]host:port/db, or to a cluster at
// redis+cluster://[user:password@]host:port,host:port, and checks that the scripts
// run there.
func OpenRedis(ctx context.Context, rawURL string) (*Redis, error) {
	client, addr, err := open(rawURL)
	if err != nil {
		return nil, err
	}
	g := NewRedis(client)
	if err := g.Check(ctx); err != nil {
		_ = g.Close()
		return nil, fmt.Errorf("Redis at %s: %w", addr, err)
	}
	return g, nil
}

// NewRedis makes a gate over a client, which must not retry by itself. Close
// closes the client.
func NewRedis(client redis.UniversalClient) *Redis {
	g := &Redis{client: client, scripts: newScripts()}
	g.line.send = g.send
	g.poor.send = g.sendPoor
	return g
}

// field is where the order of a buyer's unit is noted.
func field(r sale.Reservation) string {
	if r.Nth == 0 {
		return r.UserID
	}
	return r.UserID + "#" + strconv.Itoa(r.Nth) // no name has a #
}

// Left implements sale.Gate.
func (g *Redis) Left(ctx context.Context, voucher sale.ID) (int64, bool, error) {
	bs, err := g.buckets(ctx, voucher)
	if err != nil {
		return 0, false, err
	}
	ps, err := g.look(ctx, bs)
	if err != nil {
		return 0, false, fmt.Errorf("read stock: %w", err)
	}
	b := ps.book()
	return g.left.instead(ctx, voucher, b.Left, b.Loaded)
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
