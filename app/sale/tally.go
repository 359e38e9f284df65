package sale

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"queuelab/app/loop"
)

// saveTallies is how often counted clicks are written down: what an instance
// counted since then is lost when it is killed.
const saveTallies = time.Second

// Tally is how far the clicks on one voucher came. What became of the orders is
// not in it: the database knows.
type Tally struct {
	Voucher       ID
	Clicked       int64
	Admitted      int64 // an order came of it, one that there was not before
	Queued        int64 // the queue said at once that it has the order
	SoldOut       int64 // refused, for this reason; likewise the next two
	AlreadyBought int64
	Busy          int64
}

// Add adds another tally.
func (t *Tally) Add(o Tally) {
	t.Clicked += o.Clicked
	t.Admitted += o.Admitted
	t.Queued += o.Queued
	t.SoldOut += o.SoldOut
	t.AlreadyBought += o.AlreadyBought
	t.Busy += o.Busy
}

// TallyStore keeps what instances count, where all of them see it.
type TallyStore interface {
	// SaveTallies replaces what holder, a name that no other process has, saved of
	// these vouchers before.
	SaveTallies(ctx context.Context, holder string, ts []Tally) error
}

// Tallies counts the clicks that this process takes. The zero value is ready; a
// nil one counts nothing. Only vouchers that exist are counted, so that clicks on
// what does not cannot fill the memory.
type Tallies struct{ of sync.Map }

type counts struct {
	clicked, admitted, queued, soldOut, alreadyBought, busy atomic.Int64
	saved                                                   Tally // only Run has it
}

// at returns nil for a voucher that is not counted yet, unless it exists.
func (t *Tallies) at(voucher ID, exists bool) *counts {
	c, ok := t.of.Load(voucher)
	if !ok && !exists {
		return nil
	}
	if !ok {
		c, _ = t.of.LoadOrStore(voucher, &counts{})
	}
	return c.(*counts)
}

// clicked counts a click and its end. Whoever was told to come again may have
// asked for anything.
func (t *Tallies) clicked(voucher ID, fresh bool, err error) {
	code := CodeOf(err)
	if t == nil || code == CodeNotFound {
		return
	}
	c := t.at(voucher, err == nil || code != "" && code != CodeBusy)
	if c == nil {
		return
	}
	c.clicked.Add(1) // first, and read last: there are never more ends than clicks
	switch {
	case err == nil && fresh:
		c.admitted.Add(1)
	case code == CodeSoldOut:
		c.soldOut.Add(1)
	case code == CodeAlreadyBought:
		c.alreadyBought.Add(1)
	case code == CodeBusy:
		c.busy.Add(1)
	}
}

// queued counts a message that the queue accepted at the click.
func (t *Tallies) queued(voucher ID) {
	if t != nil {
		t.at(voucher, true).queued.Add(1)
	}
}

func (c *counts) tally(voucher ID) Tally {
	t := Tally{Voucher: voucher, Queued: c.queued.Load(), Admitted: c.admitted.Load(), SoldOut: c.soldOut.Load(),
		AlreadyBought: c.alreadyBought.Load(), Busy: c.busy.Load()}
	t.Clicked = c.clicked.Load()
	return t
}

// Run writes down what is counted, each second and when ctx ends.
func (t *Tallies) Run(ctx context.Context, s TallyStore, holder string, log *slog.Logger) {
	tick := time.NewTicker(saveTallies)
	defer tick.Stop()
	outage := loop.Outage{Tell: loop.Say(log, "counted clicks are not written down yet")}
	for last := false; !last; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			last = true
		}
		outage.Note(t.save(context.WithoutCancel(ctx), s, holder))
	}
}

func (t *Tallies) save(ctx context.Context, s TallyStore, holder string) error {
	var ts []Tally
	var of []*counts
	t.of.Range(func(k, v any) bool {
		c := v.(*counts)
		if n := c.tally(k.(ID)); n != c.saved {
			ts, of = append(ts, n), append(of, c)
		}
		return true
	})
	if len(ts) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	if err := s.SaveTallies(ctx, holder, ts); err != nil {
		return err
	}
	for i, c := range of {
		c.saved = ts[i]
	}
	return nil
}
