package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"queuelab/app/sale"
)

// spreadRounds bounds the rounds of one spread. Each that comes to nothing is one
// in which somebody else took the units, and sold them.
const spreadRounds = 32

var errMoving = errors.New("units are being moved")

// A bucket that is empty while others are not gets units of theirs, in three
// steps that may each be done again, by anybody: they are taken and noted in the
// one, accepted in the other, and the note is forgotten. Whoever looks finds what
// is noted and ends it first, so that no unit is lost or doubled by a process that
// died in between. The clicks that the units are for go with them, in the same
// trip: else two who take from each other could do so for ever.

// sendPoor asks for clicks whose bucket was empty.
func (g *Redis) sendPoor(batch []*asking) {
	slices.SortStableFunc(batch, func(a, b *asking) int { return cmp.Compare(a.click.VoucherID, b.click.VoucherID) })
	for len(batch) > 0 {
		n := 1
		for n < len(batch) && batch[n].click.VoucherID == batch[0].click.VoucherID {
			n++
		}
		of := batch[0].bucket
		if _, err := g.spread(context.Background(), buckets(of.voucher, of.of), batch[:n]); err != nil {
			for _, a := range batch[:n] {
				if a.answer.Verdict == 0 && a.err == nil {
					a.err = fmt.Errorf("move units of voucher %s: %w", of.voucher, err)
				}
			}
		}
		batch = batch[n:]
	}
}

// even ends what moves are noted, and has units where buyers lack them. It
// returns how many units nobody can buy any more for that.
func (g *Redis) even(ctx context.Context, bs []bucket) (int64, error) {
	if len(bs) == 1 {
		return 0, nil
	}
	n, err := g.spread(ctx, bs, nil)
	if err != nil {
		err = fmt.Errorf("even out voucher %s: %w", bs[0].voucher, err)
	}
	return n, err
}

// spread does what even does, and then has the clicks answered: sold out is said
// when all buckets were found empty at one moment.
func (g *Redis) spread(ctx context.Context, bs []bucket, clicks []*asking) (covered int64, err error) {
	var before parts
	for range spreadRounds {
		ps, err := g.look(ctx, bs)
		if err != nil {
			return covered, err
		}
		if !ps.loaded() {
			answerAll(clicks, sale.NotLoaded)
			return covered, nil
		}
		if ms := ps.moves(); len(ms) > 0 {
			if err := g.finish(ctx, bs, ps[0].plan, ms); err != nil {
				return covered, err
			}
			continue
		}
		if want := ps.cover(); len(want) > 0 {
			n, err := g.move(ctx, bs, ps, want, nil)
			if covered += n; err != nil {
				return covered, err
			}
			continue
		}
		if ps.owedWrong() {
			if err := g.owe(ctx, bs, ps.lacks() > 0); err != nil {
				return covered, err
			}
			continue
		}
		waiting := unanswered(clicks)
		if _, err := g.move(ctx, bs, ps, ps.wanted(waiting), waiting); err != nil {
			return covered, err
		}
		if len(unanswered(waiting)) == 0 {
			return covered, nil
		}
		if ps.empty() {
			if before != nil && ps.since(before) {
				answerAll(waiting, sale.SoldOut)
				return covered, nil
			}
			before = ps
			continue
		}
		before = nil
	}
	return covered, errMoving
}

func unanswered(clicks []*asking) []*asking {
	return slices.DeleteFunc(slices.Clone(clicks), func(a *asking) bool { return a.answer.Verdict != 0 || a.err != nil })
}

func answerAll(clicks []*asking, v sale.Verdict) {
	for _, a := range unanswered(clicks) {
		a.answer = sale.Answer{Verdict: v}
	}
}

func (ps parts) empty() bool {
	return !slices.ContainsFunc(ps, func(p part) bool { return p.left > 0 })
}

func (ps parts) lacks() (n int64) {
	for _, p := range ps {
		n += p.lacks()
	}
	return n
}

// owedWrong: each bucket should know whether buyers lack a unit, so that one that
// comes back is theirs.
func (ps parts) owedWrong() bool {
	lacks := ps.lacks() > 0
	return slices.ContainsFunc(ps, func(p part) bool { return p.owed != lacks })
}

// owe is done by hand of whoever looked last; who gives a unit back looks again.
func (g *Redis) owe(ctx context.Context, bs []bucket, owed bool) error {
	pipe := g.client.Pipeline()
	for _, b := range bs {
		if owed {
			pipe.HSet(ctx, g.key(b, "sale"), "owed", 1)
		} else {
			pipe.HDel(ctx, g.key(b, "sale"), "owed")
		}
	}
	_, err := pipe.Exec(ctx)
	return err
}

// richest is the bucket that has most of something, or -1 if none has any.
func (ps parts) richest(has func(part) int64) int {
	best := -1
	for i, p := range ps {
		if has(p) > 0 && (best < 0 || has(p) > has(ps[best])) {
			best = i
		}
	}
	return best
}

func leftIn(p part) int64 { return p.left }

// cover has units go where buyers lack them: first those that are not for sale,
// as they may well be those of these buyers.
func (ps parts) cover() (ms []move) {
	rest := slices.Clone(ps)
	for to, p := range ps {
		for lacks := p.lacks(); lacks > 0; {
			m := move{from: rest.richest(part.spare), to: to, spare: true}
			if m.from >= 0 {
				m.n = min(lacks, rest[m.from].spare())
			} else {
				m.from, m.spare = rest.richest(leftIn), false
				if m.from < 0 {
					return ms
				}
				m.n = min(lacks, rest[m.from].left)
				rest[m.from].left -= m.n
			}
			rest[m.from].units -= m.n
			ms, lacks = append(ms, m), lacks-m.n
		}
	}
	return ms
}

// wanted has units go where clicks find none: half of what the richest has, so
// that the next ones need not come from elsewhere too.
func (ps parts) wanted(clicks []*asking) (ms []move) {
	left := slices.Clone(ps)
	wants := map[int]int64{}
	for _, a := range clicks {
		wants[a.bucket.n]++
	}
	for to := range ps {
		if wants[to] == 0 || left[to].left > 0 {
			continue
		}
		from := left.richest(leftIn)
		if from < 0 {
			return ms
		}
		n := min(left[from].left, max(wants[to], (left[from].left+1)/2))
		ms = append(ms, move{from: from, to: to, note: note{n: n}})
		left[from].left -= n
	}
	return ms
}

// move takes what is wanted, and has it accepted together with the clicks of the
// buckets that have something then. It returns how many units that were for
// sale were moved.
func (g *Redis) move(ctx context.Context, bs []bucket, ps parts, want []move, clicks []*asking) (moved int64, err error) {
	plan := ps[0].plan
	ms, err := g.take(ctx, bs, plan, want)
	if err != nil {
		return 0, err
	}
	filled := map[int]bool{}
	for _, m := range ms {
		filled[m.to] = true
	}
	calls := g.accepts(ctx, bs, plan, ms)
	var asks []asked
	for n := range bs {
		of := slices.DeleteFunc(slices.Clone(clicks), func(a *asking) bool { return a.bucket.n != n })
		if len(of) > 0 && (filled[n] || ps[n].left > 0) {
			a := g.admission(ctx, of)
			asks, calls = append(asks, a), append(calls, a.call)
		}
	}
	if len(calls) == 0 {
		return 0, nil
	}
	err = g.exec(ctx, calls...)
	for _, a := range asks {
		a.read()
		for _, c := range a.clicks {
			if c.answer.Verdict == sale.SoldOut {
				c.answer = sale.Answer{} // of this bucket
			}
		}
	}
	if err != nil {
		return 0, err
	}
	for _, m := range ms {
		moved += m.sale
	}
	return moved, g.forget(ctx, bs, plan, ms, calls)
}

func (g *Redis) take(ctx context.Context, bs []bucket, plan string, want []move) (ms []move, err error) {
	if len(want) == 0 {
		return nil, nil
	}
	calls := make([]call, len(want))
	for i, m := range want {
		calls[i] = run(ctx, g.scripts.take, g.keys(bs[m.from])[:2], plan, m.to, m.n, spareOf(m))
	}
	if err := g.exec(ctx, calls...); err != nil {
		return nil, fmt.Errorf("take script: %w", err)
	}
	for i, c := range calls {
		got, err := c.Int64Slice()
		if err != nil {
			return nil, fmt.Errorf("take script: %w", err)
		}
		if len(got) == 3 && got[1] > 0 {
			ms = append(ms, move{from: want[i].from, to: want[i].to, note: note{got[0], got[1], got[2]}})
		}
	}
	return ms, nil
}

func spareOf(m move) string {
	if m.spare {
		return "1"
	}
	return ""
}

func (g *Redis) accepts(ctx context.Context, bs []bucket, plan string, ms []move) []call {
	calls := make([]call, len(ms))
	for i, m := range ms {
		calls[i] = run(ctx, g.scripts.accept, g.keys(bs[m.to])[:2], plan, m.from, m.seq, m.n, m.sale)
	}
	return calls
}

// forget drops the notes of moves that were accepted.
func (g *Redis) forget(ctx context.Context, bs []bucket, plan string, ms []move, accepted []call) error {
	var calls []call
	for i, m := range ms {
		if n, err := accepted[i].Int(); err == nil && n == 1 {
			calls = append(calls, run(ctx, g.scripts.forget, g.keys(bs[m.from])[:1], plan, m.to, m.seq))
		}
	}
	if len(calls) == 0 {
		return nil
	}
	if err := g.exec(ctx, calls...); err != nil {
		return fmt.Errorf("forget script: %w", err)
	}
	return nil
}

// finish ends moves that somebody began.
func (g *Redis) finish(ctx context.Context, bs []bucket, plan string, ms []move) error {
	calls := g.accepts(ctx, bs, plan, ms)
	if err := g.exec(ctx, calls...); err != nil {
		return fmt.Errorf("accept script: %w", err)
	}
	return g.forget(ctx, bs, plan, ms, calls)
}
