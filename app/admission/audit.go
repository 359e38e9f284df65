package admission

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/app/sale"
)

// auditPage is about how many entries one step of reading a gate brings.
const auditPage = 500

var (
	_ sale.Auditor = (*Redis)(nil)
	_ sale.Auditor = (*Memory)(nil)
)

// Book implements sale.Auditor. Where a voucher has several buckets each is read
// at a moment of its own, at which it is right by itself; the sum is right but for
// units that were given back or sold in between.
func (g *Redis) Book(ctx context.Context, voucher sale.ID) (sale.Book, error) {
	bs, err := g.buckets(ctx, voucher)
	if err != nil {
		return sale.Book{}, err
	}
	ps, err := g.still(ctx, bs)
	if err != nil {
		return sale.Book{}, err
	}
	return ps.book(), nil
}

// holding reads an entry of the buyers: see field.
func holding(voucher sale.ID, name, order string) (sale.Reservation, error) {
	user, nth, more := strings.Cut(name, "#")
	r := sale.Reservation{VoucherID: voucher, UserID: user}
	var err error
	if more {
		if r.Nth, err = strconv.Atoi(nth); err != nil {
			return r, fmt.Errorf("buyer %q of voucher %s: %w", name, voucher, err)
		}
	}
	if r.OrderID, err = sale.ParseID(order); err != nil {
		return r, fmt.Errorf("order of buyer %q of voucher %s: %w", name, voucher, err)
	}
	return r, nil
}

// cursorBits are those of a page's cursor that Redis uses; the bucket is above.
const cursorBits = 56

// page is where the bucket and the cursor are that a reader came to.
func (g *Redis) page(ctx context.Context, voucher sale.ID, cursor uint64) (b bucket, at uint64, err error) {
	of, err := g.count(ctx, voucher)
	if n := int(cursor >> cursorBits); err == nil && n >= of {
		err = fmt.Errorf("cursor %d of voucher %s: it has %d buckets", cursor, voucher, of)
	}
	return bucket{voucher, int(cursor >> cursorBits), of}, cursor & (1<<cursorBits - 1), err
}

// next is the cursor after that of a bucket; 0: there is no more.
func (b bucket) next(cursor uint64) (uint64, error) {
	switch {
	case cursor>>cursorBits != 0:
		return 0, fmt.Errorf("%w: cursor %d", errAnswer, cursor)
	case cursor != 0:
		return uint64(b.n)<<cursorBits | cursor, nil
	case b.n+1 < b.of:
		return uint64(b.n+1) << cursorBits, nil
	}
	return 0, nil
}

// Holders implements sale.Auditor.
func (g *Redis) Holders(ctx context.Context, voucher sale.ID, cursor uint64) ([]sale.Reservation, uint64, error) {
	b, at, err := g.page(ctx, voucher, cursor)
	if err != nil {
		return nil, 0, err
	}
	pairs, next, err := g.client.HScan(ctx, g.key(b, "buyers"), at, "", auditPage).Result()
	if err != nil {
		return nil, 0, fmt.Errorf("read the buyers of voucher %s: %w", voucher, err)
	}
	rs := make([]sale.Reservation, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		r, err := holding(voucher, pairs[i], pairs[i+1])
		if err != nil {
			return nil, 0, err
		}
		rs = append(rs, r)
	}
	next, err = b.next(next)
	return rs, next, err
}

// Marked implements sale.Auditor.
func (g *Redis) Marked(ctx context.Context, voucher sale.ID, cursor uint64) ([]sale.Mark, uint64, error) {
	b, at, err := g.page(ctx, voucher, cursor)
	if err != nil {
		return nil, 0, err
	}
	node, err := g.node(ctx, g.key(b, "marks")) // marks are by its clock
	if err != nil {
		return nil, 0, fmt.Errorf("find the Redis of voucher %s: %w", voucher, err)
	}
	now, err := node.Time(ctx).Result()
	if err != nil {
		return nil, 0, fmt.Errorf("ask Redis the time: %w", err)
	}
	pairs, next, err := g.client.HScan(ctx, g.key(b, "marks"), at, "", auditPage).Result()
	if err != nil {
		return nil, 0, fmt.Errorf("read the marks of voucher %s: %w", voucher, err)
	}
	ms := make([]sale.Mark, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		order, err := sale.ParseID(pairs[i])
		if err != nil {
			return nil, 0, fmt.Errorf("mark of voucher %s: %w", voucher, err)
		}
		set, body, _ := strings.Cut(pairs[i+1], "|")
		ms = append(ms, readMark(voucher, order, set, body, now))
	}
	next, err = b.next(next)
	return ms, next, err
}

func readMark(voucher, order sale.ID, set, body string, now time.Time) sale.Mark {
	r, err := sale.DecodeReservation([]byte(body))
	ms, err2 := strconv.ParseInt(set, 10, 64)
	if err != nil || err2 != nil || r.OrderID != order || r.VoucherID != voucher {
		return sale.Mark{Reservation: sale.Reservation{OrderID: order, VoucherID: voucher}, Unread: true}
	}
	return sale.Mark{Reservation: r, Age: now.Sub(time.UnixMilli(ms))}
}

// Holdings implements sale.Auditor.
func (g *Redis) Holdings(ctx context.Context, rs ...sale.Reservation) ([]sale.Holding, error) {
	in, err := g.byBucket(ctx, rs)
	if err != nil {
		return nil, err
	}
	hs := make([]sale.Holding, len(rs))
	for b, at := range in {
		if err := g.holdings(ctx, b, rs, at, hs); err != nil {
			return nil, fmt.Errorf("read the holders of voucher %s: %w", b.voucher, err)
		}
	}
	return hs, nil
}

// holdings is for those of a bucket.
func (g *Redis) holdings(ctx context.Context, b bucket, rs []sale.Reservation, at []int, hs []sale.Holding) error {
	fields, orders := make([]string, len(at)), make([]string, len(at))
	for j, i := range at {
		fields[j], orders[j] = field(rs[i]), rs[i].OrderID.String()
	}
	var holders, marks *redis.SliceCmd
	// In one transaction: an order whose mark was cleared between the two answers
	// would be one that nobody knows.
	_, err := g.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		holders = p.HMGet(ctx, g.key(b, "buyers"), fields...)
		marks = p.HMGet(ctx, g.key(b, "marks"), orders...)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	for j, i := range at {
		if s, ok := holders.Val()[j].(string); ok {
			if hs[i].Holder, err = sale.ParseID(s); err != nil {
				return err
			}
		}
		_, hs[i].Marked = marks.Val()[j].(string)
	}
	return nil
}

// Level implements sale.Auditor. Where a voucher has several buckets each is
// changed in a step of its own, after units went where buyers lack them.
func (g *Redis) Level(ctx context.Context, voucher sale.ID, most int64) (int64, error) {
	bs, err := g.buckets(ctx, voucher)
	if err != nil {
		return 0, err
	}
	covered, err := g.even(ctx, bs)
	if err != nil {
		return 0, err
	}
	ps, err := g.look(ctx, bs)
	if err != nil {
		return 0, err
	}
	change, left := -covered, ps.book().Left
	// Down first: what one has too many another may have too few.
	for _, up := range []bool{false, true} {
		for i, b := range bs {
			limit := int64(0) // nothing is raised
			if up {
				limit = ps[i].left + max(0, most-left)
			}
			n, err := g.scripts.level.Run(ctx, g.client, g.keys(b)[:2], limit).Int64()
			if err != nil {
				return 0, fmt.Errorf("level script: %w", err)
			}
			change, left, ps[i].left = change+n, left+n, ps[i].left+n
		}
	}
	if change > 0 {
		g.sold.forget(voucher)
	}
	return change, nil
}

// Index implements sale.Auditor.
func (g *Redis) Index(ctx context.Context, voucher sale.ID, orders ...sale.ID) (int64, error) {
	bs, err := g.buckets(ctx, voucher)
	if err != nil || len(orders) == 0 {
		return 0, err
	}
	args := make([]any, len(orders))
	for i, o := range orders {
		args[i] = o.String()
	}
	calls := make([]call, len(bs))
	for i, b := range bs { // whose they are nobody says
		calls[i] = run(ctx, g.scripts.index, g.keys(b)[2:4], args...)
	}
	err = g.exec(ctx, calls...)
	total := int64(0)
	for _, c := range calls {
		if err != nil {
			return 0, fmt.Errorf("index script: %w", err)
		}
		var n int64
		n, err = c.Int64()
		total += n
	}
	return total, err
}
