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
		return sale.Book{}, unreadable(voucher, err)
	}
	return ps.book(), nil
}

// unreadable says of an error that a voucher's keys are not what the gate wrote.
func unreadable(voucher sale.ID, err error) error {
	if err == nil || !errors.Is(err, errAnswer) && !wrongType(err) {
		return err
	}
	return fmt.Errorf("%w of voucher %s: %w", sale.ErrUnreadable, voucher, err)
}

// wrongType: some servers say it behind the name of the script.
func wrongType(err error) bool { return err != nil && strings.Contains(err.Error(), "WRONGTYPE") }

// holder reads an entry of the buyers: see field.
func holder(voucher sale.ID, name, order string) sale.Holder {
	user, nth, more := strings.Cut(name, "#")
	h := sale.Holder{Reservation: sale.Reservation{VoucherID: voucher, UserID: user}}
	var err, err2 error
	if more {
		h.Nth, err = strconv.Atoi(nth)
	}
	if h.OrderID, err2 = sale.ParseID(order); err != nil || err2 != nil {
		return sale.Holder{Reservation: sale.Reservation{VoucherID: voucher}, Unread: &sale.Scrap{Name: name, Text: order}}
	}
	return h
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
func (g *Redis) Holders(ctx context.Context, voucher sale.ID, cursor uint64) ([]sale.Holder, uint64, error) {
	b, at, err := g.page(ctx, voucher, cursor)
	if err != nil {
		return nil, 0, err
	}
	pairs, next, err := g.client.HScan(ctx, g.key(b, "buyers"), at, "", auditPage).Result()
	if err != nil {
		return nil, 0, unreadable(voucher, fmt.Errorf("read the buyers of voucher %s: %w", voucher, err))
	}
	hs := make([]sale.Holder, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		hs = append(hs, holder(voucher, pairs[i], pairs[i+1]))
	}
	next, err = b.next(next)
	return hs, next, err
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
		return nil, 0, unreadable(voucher, fmt.Errorf("read the marks of voucher %s: %w", voucher, err))
	}
	ms := make([]sale.Mark, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		ms = append(ms, readMark(voucher, pairs[i], pairs[i+1], now))
	}
	next, err = b.next(next)
	return ms, next, err
}

func readMark(voucher sale.ID, name, text string, now time.Time) sale.Mark {
	set, body, _ := strings.Cut(text, "|")
	order, err := sale.ParseID(name) // 0: it is none
	ms, err2 := strconv.ParseInt(set, 10, 64)
	r, err3 := sale.DecodeReservation([]byte(body))
	if errors.Join(err, err2, err3) != nil || r.OrderID != order || r.VoucherID != voucher {
		return sale.Mark{Reservation: sale.Reservation{OrderID: order, VoucherID: voucher}, Unread: &sale.Scrap{Mark: true, Name: name, Text: text}}
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
			return nil, unreadable(b.voucher, fmt.Errorf("read the holders of voucher %s: %w", b.voucher, err))
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
			hs[i].Holder, _ = sale.ParseID(s) // what nobody can read is nobody's order
		}
		_, hs[i].Marked = marks.Val()[j].(string)
	}
	return nil
}

// Level implements sale.Auditor. Where a voucher has several buckets each is
// changed in a step of its own, after units went where buyers lack them.
func (g *Redis) Level(ctx context.Context, voucher sale.ID, units, most int64) (int64, error) {
	bs, err := g.buckets(ctx, voucher)
	if err != nil {
		return 0, err
	}
	offer := g.left.offer(sale.Voucher{Stock: units, Left: most})
	units, most = offer.Stock, offer.Left
	covered, err := g.even(ctx, bs)
	if err == nil && len(bs) > 1 {
		err = g.resize(ctx, bs, units)
	}
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
			args := []any{limit}
			if len(bs) == 1 {
				args = append(args, units)
			}
			n, err := g.scripts.level.Run(ctx, g.client, g.keys(b)[:2], args...).Int64()
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
