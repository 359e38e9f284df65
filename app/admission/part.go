package admission

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"queuelab/app/sale"
)

// part is what one bucket of a voucher holds, all of it at one moment.
type part struct {
	loaded        bool
	units, left   int64
	buyers, marks int64
	plan          string
	done          string // of the first bucket: the last plan that opened it
	moved         int64  // how often units were taken away
	owed          bool   // buyers of another bucket have no unit
	out           map[int]note
	in            map[int]int64 // the last move from each bucket
}

// note is a move that is under way, or that nobody has forgotten yet.
type note struct{ seq, n, sale int64 } // sale: how many of n are for sale

// lacks is how many buyers have no unit.
func (p part) lacks() int64 { return max(0, p.buyers-p.units) }

// spare are units that are neither held nor for sale: the database knows whose
// they are.
func (p part) spare() int64 { return max(0, p.units-p.buyers-p.left) }

// parts are the buckets of a voucher, each at a moment of its own.
type parts []part

// move is a note with its two ends.
type move struct {
	from, to int
	note
	spare  bool // they are wanted of those that are not for sale
	landed bool // it was accepted, and is to be forgotten
}

// look reads all buckets in one round trip.
func (g *Redis) look(ctx context.Context, bs []bucket) (parts, error) {
	calls := make([]call, len(bs))
	for i, b := range bs {
		calls[i] = run(ctx, g.scripts.look, g.keys(b)[:3])
	}
	err := g.exec(ctx, calls...)
	ps := make(parts, len(bs))
	for i := 0; i < len(bs) && err == nil; i++ {
		ps[i], err = readPart(calls[i].Val())
	}
	if err != nil {
		return nil, fmt.Errorf("look script: %w", err)
	}
	return ps, nil
}

// still is look at a moment between two moves, if there is one within a few
// looks: units that move would be counted twice, or not at all.
func (g *Redis) still(ctx context.Context, bs []bucket) (parts, error) {
	ps, err := g.look(ctx, bs)
	for range 3 {
		if err != nil || len(bs) == 1 {
			break
		}
		before := ps
		if ps, err = g.look(ctx, bs); err == nil && ps.since(before) {
			break
		}
	}
	return ps, err
}

func readPart(v any) (p part, err error) {
	all, ok := v.([]any)
	var fields []any
	if ok = ok && len(all) == 3; ok {
		var ok1, ok2, ok3 bool
		p.buyers, ok1 = all[0].(int64)
		p.marks, ok2 = all[1].(int64)
		fields, ok3 = all[2].([]any)
		ok = ok1 && ok2 && ok3 && len(fields)%2 == 0
	}
	if !ok {
		return p, fmt.Errorf("%w: %v", errAnswer, v)
	}
	numbers, readable := 0, true
	number := func(s string, bits int) int64 {
		n, err := strconv.ParseInt(s, 10, bits)
		readable = readable && err == nil
		return n
	}
	for i := 0; i < len(fields); i += 2 {
		name, _ := fields[i].(string)
		value, _ := fields[i+1].(string)
		switch name {
		case "stock":
			p.left, numbers = number(value, 64), numbers+1
		case "units":
			p.units, numbers = number(value, 64), numbers+1
		case "begin", "end":
			number(value, 64)
			numbers++
		case "plan":
			p.plan = value
		case "done":
			p.done = value
		case "moved":
			p.moved = number(value, 64)
		case "owed":
			p.owed = true
		default:
			if to, ok := strings.CutPrefix(name, "out:"); ok {
				seq, rest, _ := strings.Cut(value, "|")
				n, sale, _ := strings.Cut(rest, "|")
				if p.out == nil {
					p.out = map[int]note{}
				}
				p.out[int(number(to, 32))] = note{number(seq, 64), number(n, 64), number(sale, 64)}
			} else if from, ok := strings.CutPrefix(name, "in:"); ok {
				if p.in == nil {
					p.in = map[int]int64{}
				}
				p.in[int(number(from, 32))] = number(value, 64)
			}
		}
	}
	// What cannot be read is as if it were not there: who loads the voucher says anew
	// what the database knows.
	p.loaded = numbers == 4 && readable
	return p, nil
}

// loaded reports whether all buckets are, by the same plan.
func (ps parts) loaded() bool {
	for _, p := range ps {
		if !p.loaded || p.plan != ps[0].plan {
			return false
		}
	}
	return true
}

// since reports whether no units moved since before, so that a moment in between
// is one at which all of this was so.
func (ps parts) since(before parts) bool {
	for i, p := range ps {
		if p.plan != before[i].plan || p.moved != before[i].moved || len(p.out) != len(before[i].out) {
			return false
		}
	}
	return true
}

// moves lists those that somebody began and nobody ended.
func (ps parts) moves() (ms []move) {
	for from, p := range ps {
		for to, n := range p.out {
			if to >= 0 && to < len(ps) {
				ms = append(ms, move{from: from, to: to, note: n, landed: ps[to].in[from] >= n.seq})
			}
		}
	}
	return ms
}

// book sums the buckets up, with units on their way where they go to.
func (ps parts) book() sale.Book {
	b := sale.Book{Loaded: ps.loaded()}
	there := slices.Clone(ps)
	for _, m := range ps.moves() {
		if p := &there[m.to]; !m.landed { // as accept.lua
			p.units += m.n
			p.left = min(p.left+m.sale, max(0, p.units-p.buyers))
		}
	}
	for _, p := range there {
		b.Buyers, b.Marks = b.Buyers+p.buyers, b.Marks+p.marks
		if b.Loaded {
			b.Units, b.Left = b.Units+p.units, b.Left+p.left
		}
	}
	return b
}
