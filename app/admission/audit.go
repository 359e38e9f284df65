package admission

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/app/sale"
)

var (
	//go:embed book.lua
	bookSource string
	//go:embed level.lua
	levelSource string
	//go:embed index.lua
	indexSource string
)

// auditPage is about how many entries one step of reading a gate brings.
const auditPage = 500

var (
	_ sale.Auditor = (*Redis)(nil)
	_ sale.Auditor = (*Memory)(nil)
)

// Book implements sale.Auditor.
func (g *Redis) Book(ctx context.Context, voucher sale.ID) (sale.Book, error) {
	n, err := redis.NewScript(bookSource).Run(ctx, g.client, g.keys(voucher)[:3]).Int64Slice()
	if err == nil && len(n) != 5 {
		err = fmt.Errorf("%w: %v", errAnswer, n)
	}
	if err != nil {
		return sale.Book{}, fmt.Errorf("book script: %w", err)
	}
	return sale.Book{Loaded: n[0] == 1, Units: n[1], Left: n[2], Buyers: n[3], Marks: n[4]}, nil
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

// Holders implements sale.Auditor.
func (g *Redis) Holders(ctx context.Context, voucher sale.ID, cursor uint64) ([]sale.Reservation, uint64, error) {
	pairs, next, err := g.client.HScan(ctx, g.key(voucher, "buyers"), cursor, "", auditPage).Result()
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
	return rs, next, nil
}

// Marked implements sale.Auditor.
func (g *Redis) Marked(ctx context.Context, voucher sale.ID, cursor uint64) ([]sale.Mark, uint64, error) {
	now, err := g.client.Time(ctx).Result()
	if err != nil {
		return nil, 0, fmt.Errorf("ask Redis the time: %w", err)
	}
	pairs, next, err := g.client.HScan(ctx, g.key(voucher, "marks"), cursor, "", auditPage).Result()
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
	return ms, next, nil
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
	if len(rs) == 0 {
		return nil, nil
	}
	fields, orders := make([]string, len(rs)), make([]string, len(rs))
	for i, r := range rs {
		fields[i], orders[i] = field(r), r.OrderID.String()
	}
	var holders, marks *redis.SliceCmd
	// In one transaction: an order whose mark was cleared between the two answers
	// would be one that nobody knows.
	_, err := g.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		holders = p.HMGet(ctx, g.key(rs[0].VoucherID, "buyers"), fields...)
		marks = p.HMGet(ctx, g.key(rs[0].VoucherID, "marks"), orders...)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("read the holders of voucher %s: %w", rs[0].VoucherID, err)
	}
	hs := make([]sale.Holding, len(rs))
	for i := range rs {
		if s, ok := holders.Val()[i].(string); ok {
			if hs[i].Holder, err = sale.ParseID(s); err != nil {
				return nil, fmt.Errorf("holder of voucher %s: %w", rs[i].VoucherID, err)
			}
		}
		_, hs[i].Marked = marks.Val()[i].(string)
	}
	return hs, nil
}

// Level implements sale.Auditor.
func (g *Redis) Level(ctx context.Context, voucher sale.ID, most int64) (int64, error) {
	n, err := redis.NewScript(levelSource).Run(ctx, g.client, g.keys(voucher)[:2], most).Int64()
	if err != nil {
		return 0, fmt.Errorf("level script: %w", err)
	}
	if n > 0 {
		g.sold.forget(voucher)
	}
	return n, nil
}

// Index implements sale.Auditor.
func (g *Redis) Index(ctx context.Context, voucher sale.ID, orders ...sale.ID) (int64, error) {
	if len(orders) == 0 {
		return 0, nil
	}
	args := make([]any, len(orders))
	for i, o := range orders {
		args[i] = o.String()
	}
	n, err := redis.NewScript(indexSource).Run(ctx, g.client, g.keys(voucher)[2:4], args...).Int64()
	if err != nil {
		return 0, fmt.Errorf("index script: %w", err)
	}
	return n, nil
}
