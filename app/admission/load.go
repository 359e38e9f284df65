package admission

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"queuelab/app/sale"
)

// planTries bounds how often a load begins again because another one was faster.
const planTries = 3

// errPlan: another load went past this one.
var errPlan = errors.New("it is being loaded by somebody else")

// Load implements sale.Gate. Several buckets cannot be opened in one step, so what
// each gets is settled first, once, by a plan: all are closed, which leaves buyers
// and marks, then their buyers are counted, and then each is opened with its
// share. Whoever comes meanwhile, or after a loader that died, goes on with the
// same plan. A plan that is done is never used again: where one bucket of several
// lost its keys, units may have moved since, so all are shared out anew.
//
// The first bucket is the one that knows of the plan. It is opened last, so that
// no units move before all are open.
func (g *Redis) Load(ctx context.Context, v sale.Voucher) (bool, error) {
	v = g.left.offer(v)
	v.Buckets = max(v.Buckets, 1)
	g.counts.of(v.ID).n.Store(int64(v.Buckets))
	bs := buckets(v.ID, v.Buckets)
	loaded := false
	var err error
	if len(bs) == 1 {
		var n int
		n, err = g.openBucket(ctx, bs[0], v, share{v.Stock, v.Left}, v.MaxInFlight, nil)
		loaded = n == 1
	} else {
		for range planTries {
			if loaded, err = g.loadAll(ctx, bs, v); !errors.Is(err, errPlan) {
				break
			}
		}
		if loaded { // more buyers may be known than there are units
			_, err = g.even(ctx, bs)
		}
	}
	g.sold.forget(v.ID)
	if err != nil {
		return loaded, fmt.Errorf("load script: %w", err)
	}
	return loaded, nil
}

// share is what a bucket gets.
type share struct{ units, left int64 }

// openBucket has clicks taken; more are the arguments of a plan.
func (g *Redis) openBucket(ctx context.Context, b bucket, v sale.Voucher, s share, most int64, more []any) (int, error) {
	c := run(ctx, g.scripts.load, g.keys(b)[:2], append([]any{s.units, s.left, v.Opens().UnixMilli(), v.End.UnixMilli(), max(v.PerUser, 1), most}, more...)...)
	if err := g.exec(ctx, c); err != nil {
		return 0, err
	}
	return c.Int()
}

func (g *Redis) loadAll(ctx context.Context, bs []bucket, v sale.Voucher) (bool, error) {
	ps, err := g.look(ctx, bs)
	if err != nil || ps.loaded() {
		return false, err
	}
	newest := int64(0)
	for _, p := range ps {
		if n, err := strconv.ParseInt(p.plan, 10, 64); err == nil {
			newest = max(newest, n)
		}
	}
	begin := run(ctx, g.scripts.begin, g.keys(bs[0])[:1], newest, ps[0].done)
	if err := g.exec(ctx, begin); err != nil {
		return false, fmt.Errorf("begin script: %w", err)
	}
	plan, err := begin.Text()
	if err != nil {
		return false, fmt.Errorf("begin script: %w", err)
	}
	if plan == "" {
		return false, errPlan
	}
	held, err := g.closeAll(ctx, bs, plan)
	if err != nil {
		return false, err
	}
	settle := run(ctx, g.scripts.shares, g.keys(bs[0])[:1], plan, formatShares(shareOut(v.Stock, v.Left, held)))
	if err := g.exec(ctx, settle); err != nil {
		return false, fmt.Errorf("shares script: %w", err)
	}
	text, err := settle.Text()
	if err != nil {
		return false, fmt.Errorf("shares script: %w", err)
	}
	if text == "" {
		return false, errPlan
	}
	shares, err := parseShares(text, len(bs))
	if err != nil {
		return false, err
	}
	for n := len(bs) - 1; n > 0; n-- {
		if _, err := g.openBucket(ctx, bs[n], v, shares[n], marksOf(v.MaxInFlight, n, len(bs)), []any{plan, len(bs)}); err != nil {
			return false, err
		}
	}
	// One that lost its keys just now has not opened.
	if ps, err = g.look(ctx, bs); err != nil {
		return false, err
	}
	if !ps[1:].loaded() {
		return false, errPlan
	}
	n, err := g.openBucket(ctx, bs[0], v, shares[0], marksOf(v.MaxInFlight, 0, len(bs)), []any{plan, len(bs)})
	return n == 1, err
}

// closeAll returns how many units are held in each bucket.
func (g *Redis) closeAll(ctx context.Context, bs []bucket, plan string) ([]int64, error) {
	calls := make([]call, len(bs))
	for i, b := range bs {
		calls[i] = run(ctx, g.scripts.shut, g.keys(b)[:2], plan)
	}
	if err := g.exec(ctx, calls...); err != nil {
		return nil, fmt.Errorf("close script: %w", err)
	}
	held := make([]int64, len(bs))
	for i, c := range calls {
		n, err := c.Int64()
		if err != nil {
			return nil, fmt.Errorf("close script: %w", err)
		}
		if n < 0 {
			return nil, errPlan
		}
		held[i] = n
	}
	return held, nil
}

// shareOut gives each bucket the units that its buyers hold, as far as there are
// any, and the rest evenly; left is the most that may be left in all.
func shareOut(units, left int64, held []int64) []share {
	shares := make([]share, len(held))
	free := units
	for i, n := range held {
		shares[i].units = min(n, max(0, free))
		free -= shares[i].units
	}
	left = max(0, min(left, free))
	for i := range shares {
		shares[i].units += partOf(free, i, len(held))
		shares[i].left = partOf(left, i, len(held))
	}
	return shares
}

// partOf is the i-th part of n.
func partOf(n int64, i, of int) int64 {
	p := n / int64(of)
	if int64(i) < n%int64(of) {
		p++
	}
	return p
}

// marksOf divides the bound of orders in flight: together the buckets never allow
// more, and one whose share is used up turns buyers away although others have
// room. None has 0, which is no bound.
func marksOf(most int64, n, of int) int64 {
	if most == 0 {
		return 0
	}
	return max(1, partOf(most, n, of))
}

func formatShares(shares []share) string {
	texts := make([]string, len(shares))
	for i, s := range shares {
		texts[i] = fmt.Sprintf("%d/%d", s.units, s.left)
	}
	return strings.Join(texts, " ")
}

func parseShares(text string, of int) ([]share, error) {
	texts := strings.Fields(text)
	if len(texts) != of {
		return nil, fmt.Errorf("%w: %d shares of %d buckets", errAnswer, len(texts), of)
	}
	shares := make([]share, of)
	for i, t := range texts {
		units, left, _ := strings.Cut(t, "/")
		var err1, err2 error
		shares[i].units, err1 = strconv.ParseInt(units, 10, 64)
		shares[i].left, err2 = strconv.ParseInt(left, 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("%w: shares %q: %w", errAnswer, text, err)
		}
	}
	return shares, nil
}
