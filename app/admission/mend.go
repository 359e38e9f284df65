package admission

import (
	"context"
	"fmt"

	"queuelab/app/sale"
)

// resize has the units of the buckets add up to those that there were when the
// sale began. Each is changed only while it has what was read; whoever is faster
// did the same, or moved units, and then the next look is for what is left of it.
func (g *Redis) resize(ctx context.Context, bs []bucket, units int64) error {
	ps, err := g.still(ctx, bs)
	if err != nil || !ps.loaded() || len(ps.moves()) > 0 {
		return err
	}
	want := ps.resized(units - ps.book().Units)
	var calls []call
	for i, b := range bs {
		if want[i] != ps[i].units {
			calls = append(calls, run(ctx, g.scripts.resize, g.keys(b)[:1], ps[i].plan, ps[i].units, want[i]))
		}
	}
	if len(calls) == 0 {
		return nil
	}
	if err := g.exec(ctx, calls...); err != nil {
		return fmt.Errorf("resize script: %w", err)
	}
	return nil
}

// resized is what units each should have for all to have so many more, or fewer:
// first those that nobody holds.
func (ps parts) resized(more int64) []int64 {
	want := make([]int64, len(ps))
	for i, p := range ps {
		want[i] = p.units
	}
	if more > 0 {
		want[0] += more
	}
	for _, held := range []bool{false, true} {
		for i, p := range ps {
			free := want[i]
			if !held {
				free -= p.buyers
			}
			if n := min(free, -more); n > 0 {
				want[i], more = want[i]-n, more+n
			}
		}
	}
	return want
}

// Drop implements sale.Auditor.
func (g *Redis) Drop(ctx context.Context, voucher sale.ID, scraps ...sale.Scrap) (int64, error) {
	bs, err := g.buckets(ctx, voucher)
	if err != nil {
		return 0, err
	}
	args := make([]any, 0, 3*len(scraps))
	for _, s := range scraps {
		of := "buyers"
		if s.Mark {
			of = "marks"
		}
		args = append(args, of, s.Name, s.Text)
	}
	calls := make([]call, len(bs))
	for i, b := range bs { // where they were nobody says
		calls[i] = run(ctx, g.scripts.drop, g.keys(b), args...)
	}
	if err := g.exec(ctx, calls...); err != nil {
		return 0, fmt.Errorf("drop script: %w", err)
	}
	total := int64(0)
	for _, c := range calls {
		n, err := c.Int64()
		if err != nil {
			return 0, fmt.Errorf("drop script: %w", err)
		}
		total += n
	}
	if total > 0 {
		g.sold.forget(voucher)
		_, err = g.even(ctx, bs)
	}
	return total, err
}
