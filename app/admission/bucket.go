package admission

import (
	"context"
	"fmt"
	"hash/crc32"
	"strconv"
	"sync"
	"sync/atomic"

	"queuelab/app/sale"
)

// bucket is a part of a voucher's stock with keys of its own, which can be on
// another node than those of the other parts. A buyer belongs to one for ever, so
// that what is true of a buyer is still decided in one step.
type bucket struct {
	voucher sale.ID
	n, of   int
}

// buckets lists those of a voucher.
func buckets(voucher sale.ID, of int) []bucket {
	bs := make([]bucket, of)
	for n := range bs {
		bs[n] = bucket{voucher, n, of}
	}
	return bs
}

// bucketOf is where a user's units are. It must never change: orders of years
// ago are given back there.
func bucketOf(voucher sale.ID, of int, user string) bucket {
	if of == 1 {
		return bucket{voucher, 0, 1}
	}
	return bucket{voucher, int(crc32.ChecksumIEEE([]byte(user)) % uint32(of)), of}
}

// String is the bucket's part of its keys. The first has the voucher's own name,
// so that a voucher with one bucket has the keys that it always had.
func (b bucket) String() string {
	if b.n == 0 {
		return b.voucher.String()
	}
	return b.voucher.String() + "." + strconv.Itoa(b.n)
}

func (g *Redis) key(b bucket, what string) string {
	if g.tag != "" {
		return "seckill:{" + g.tag + "}:" + b.String() + ":" + what
	}
	return "seckill:{" + b.String() + "}:" + what
}

func (g *Redis) keys(b bucket) []string {
	return []string{g.key(b, "sale"), g.key(b, "buyers"), g.key(b, "marks"), g.key(b, "due"), g.key(b, "keys")}
}

// countsMost bounds the vouchers whose number of buckets is remembered.
const countsMost = 100_000

// counts remembers how many buckets vouchers have, which never changes. The zero
// value is ready.
type counts struct {
	ask func(ctx context.Context, voucher sale.ID) (int, error) // nil: nobody knows more than Redis

	mu    sync.RWMutex
	known map[sale.ID]*count
}

type count struct {
	mu sync.Mutex // held while it is asked for
	n  atomic.Int64
}

// AskBuckets tells the gate who knows how many buckets a voucher has, wherever
// Redis does not: it lost its keys, or the voucher was never loaded. A refusal
// with sale.CodeNotFound means that there is no such voucher. It is to be called
// before the gate is used; without it such a voucher has one.
func (g *Redis) AskBuckets(ask func(ctx context.Context, voucher sale.ID) (int, error)) {
	g.counts.ask = ask
}

func (c *counts) of(voucher sale.ID) *count {
	c.mu.RLock()
	k := c.known[voucher]
	c.mu.RUnlock()
	if k != nil {
		return k
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.known[voucher]; k != nil {
		return k
	}
	if c.known == nil || len(c.known) >= countsMost {
		c.known = map[sale.ID]*count{}
	}
	k = &count{}
	c.known[voucher] = k
	return k
}

// count is how many buckets a voucher has.
func (g *Redis) count(ctx context.Context, voucher sale.ID) (int, error) {
	if voucher <= 0 {
		return 1, nil // see Check
	}
	k := g.counts.of(voucher)
	if n := k.n.Load(); n > 0 {
		return int(n), nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := k.n.Load(); n > 0 {
		return int(n), nil
	}
	n, sure, err := g.askCount(ctx, voucher)
	if err != nil {
		return 0, fmt.Errorf("number of buckets of voucher %s: %w", voucher, err)
	}
	if sure {
		k.n.Store(int64(n))
	}
	return n, nil
}

// askCount asks Redis first, so that a sale that runs goes on without a database.
func (g *Redis) askCount(ctx context.Context, voucher sale.ID) (n int, sure bool, err error) {
	noted, err := g.client.HMGet(ctx, g.key(bucket{voucher, 0, 1}, "sale"), "buckets", "stock").Result()
	if wrongType(err) {
		noted, err = make([]any, 2), nil
	}
	if err != nil {
		return 0, false, err
	}
	if s, ok := noted[0].(string); ok {
		if n, err = strconv.Atoi(s); err == nil && (n < 1 || n > sale.MaxBuckets) {
			err = fmt.Errorf("%w: %q", errAnswer, s)
		}
		return n, true, err
	}
	if _, loaded := noted[1].(string); loaded {
		return 1, true, nil
	}
	if g.counts.ask == nil {
		return 1, false, nil
	}
	n, err = g.counts.ask(ctx, voucher)
	if sale.CodeOf(err) == sale.CodeNotFound {
		return 1, false, nil
	}
	return max(n, 1), true, err
}

// buckets are those of a voucher.
func (g *Redis) buckets(ctx context.Context, voucher sale.ID) ([]bucket, error) {
	of, err := g.count(ctx, voucher)
	if err != nil {
		return nil, err
	}
	return buckets(voucher, of), nil
}

// bucket is where a reservation's unit is.
func (g *Redis) bucket(ctx context.Context, r sale.Reservation) (bucket, error) {
	of, err := g.count(ctx, r.VoucherID)
	if err != nil {
		return bucket{}, err
	}
	return bucketOf(r.VoucherID, of, r.UserID), nil
}

// byBucket sorts what belongs to reservations into their buckets.
func (g *Redis) byBucket(ctx context.Context, rs []sale.Reservation) (map[bucket][]int, error) {
	in := map[bucket][]int{}
	for i, r := range rs {
		b, err := g.bucket(ctx, r)
		if err != nil {
			return nil, err
		}
		in[b] = append(in[b], i)
	}
	return in, nil
}
