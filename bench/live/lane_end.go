package live

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"queuelab/bench/ledger"
	"queuelab/bench/node"
)

// How long the end of a lane takes at most.
const (
	quietWithin = 15 * time.Second // until producers have their last answers
	drainWithin = 20 * time.Second // until the queue is read out
	stillFor    = 2 * time.Second  // nothing came for so long: nothing more will
	stopWithin  = 5 * time.Second  // for one process
)

// produce lets the lane's producers publish.
func (l *lane) produce() {
	l.mu.Lock()
	some := l.living(produces)
	l.mu.Unlock()
	for _, p := range some {
		_ = p.child.Tell("produce") // one that has died meanwhile shows as dead
	}
}

// finished reports whether all was published and nothing waits any more.
func (l *lane) finished() bool {
	db, _ := l.show.effects()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != stateRunning {
		return true
	}
	if l.warm != nil && l.warm.struck() != "" || db != nil && db.struck() != "" {
		return false
	}
	for _, p := range l.living(produces) {
		select {
		case <-p.produced:
		default:
			return false
		}
	}
	// One that was killed may be replaced for as long as it would have published.
	if len(l.living(produces)) == 0 && l.show.playing() < time.Duration(l.show.seconds)*time.Second {
		return false
	}
	return len(l.account.open) == 0 && len(l.fresh) == 0
}

// wind lets the producers have their answers, reads the queue out and stops the
// processes. It is shorter where the show's context ends.
func (l *lane) wind() {
	if !l.is(stateRunning) {
		return
	}
	l.mu.Lock()
	l.state = stateDraining
	some := l.living(nil)
	l.mu.Unlock()
	ctx := l.show.ctx
	for _, p := range some {
		l.mu.Lock()
		frozen, slow := p.frozen, p.slow
		l.mu.Unlock()
		if frozen {
			_ = p.Signal(syscall.SIGCONT) // one that has died is gone
		}
		if slow {
			_ = p.Slow(false)
		}
		_ = p.child.Tell("delay 0s") // the reading out is not to be watched
	}
	l.quieten(ctx)
	l.drain(ctx)
	l.mu.Lock()
	l.still = true
	some = l.living(nil)
	l.mu.Unlock()
	within := stopWithin
	if ctx.Err() != nil {
		within = 0
	}
	for _, p := range slices.Backward(some) {
		p.stop(within)
	}
}

func (l *lane) quieten(ctx context.Context) {
	l.mu.Lock()
	some := l.living(produces)
	l.mu.Unlock()
	for _, p := range some {
		_ = p.child.Tell("quiet")
	}
	if len(some) == 0 && l.show.scenario.outbox && ctx.Err() == nil {
		// What a dead producer left in its outbox is published by the next one.
		if p, err := l.start(ctx, roleProducer); err == nil {
			_ = p.child.Tell("quiet")
			_ = p.child.Tell("produce") // nothing, and ends once the outbox is empty
			some = append(some, p)
		}
	}
	timeout := time.After(quietWithin)
	for _, p := range some {
		select {
		case <-p.produced:
		case <-p.gone:
		case <-ctx.Done():
		case <-timeout:
		}
	}
}

// drain waits until nothing is left or nothing more comes. Where no consumer
// lives one is started: what is still there is not lost.
func (l *lane) drain(ctx context.Context) {
	l.mu.Lock()
	none := len(l.living(consumes)) == 0
	l.mu.Unlock()
	if none && l.setting.Broker != "" && ctx.Err() == nil {
		if _, err := l.start(ctx, roleConsumer); err != nil && ctx.Err() == nil {
			l.note(fmt.Sprintf("nobody could read out what is left: %v", err))
		}
	}
	t := time.NewTicker(50 * time.Millisecond)
	defer t.Stop()
	began, moved, last := time.Now(), time.Now(), int64(-1)
	for time.Since(began) < drainWithin {
		l.mu.Lock()
		left, seen, alive := len(l.account.open), l.account.delivered+l.account.effects+l.account.acked, len(l.living(consumes))
		holding := 0
		for _, p := range l.living(nil) {
			holding += len(p.holds)
		}
		l.mu.Unlock()
		if seen != last {
			last, moved = seen, time.Now()
		}
		still := time.Since(moved)
		switch {
		case ctx.Err() != nil, alive == 0:
			return
		case left == 0 && holding == 0 && still > 300*time.Millisecond:
			return
		// What a dead consumer held comes again after its lease, and a session of
		// Kafka's is longer than that.
		case left > 0 && holding == 0 && still > 4*stillFor:
			return
		}
		select {
		case <-ctx.Done():
		case <-t.C:
		}
	}
}

func (l *lane) note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.news.Strikes = append(l.news.Strikes, strikeRow{Name: "note", State: "failed", At: l.show.since(ledger.Now()), Text: text})
}

// files are the lane's ledgers.
func (l *lane) files() []string {
	var paths []string
	for _, p := range l.processes {
		paths = append(paths, p.path)
	}
	if _, err := os.Stat(l.path(controlProcess)); err == nil {
		paths = append(paths, l.path(controlProcess))
	}
	return paths
}

// judge draws the verdict, by ledger.Account over the whole ledgers.
func (l *lane) judge(why string) {
	left := l.left()
	closing := l.close()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == stateFailed || l.account == nil {
		l.state = stateFailed
		l.final = &ended{Why: whyFailed, Lost: []lostRow{}, Repeated: []string{}, Stranded: []string{}, Findings: []string{l.err}}
		return
	}
	v, err := l.verdict(left)
	if err != nil {
		l.state, l.err = stateFailed, err.Error()
		v = &ended{Lost: []lostRow{}, Repeated: []string{}, Stranded: []string{}, Findings: []string{err.Error()}}
		why = whyFailed
	} else {
		l.state = stateEnded
	}
	if closing != nil {
		v.Findings = append(v.Findings, closing.Error())
	}
	v.Why = why
	l.final = v
}

// left is what the queue still holds once nobody consumes; -1: it is not known.
func (l *lane) left() int64 {
	if l.watch == nil {
		return 0 // it died with its process
	}
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	last, same := int64(-2), 0
	for same < 2 { // what a consumer gives back takes the broker a moment
		n, err := node.Left(ctx, l.watch)
		if err != nil {
			return -1
		}
		if n == last {
			same++
		} else {
			last, same = n, 0
		}
		select {
		case <-ctx.Done():
			return last
		case <-time.After(50 * time.Millisecond):
		}
	}
	return last
}

// verdict is drawn under the lock.
func (l *lane) verdict(left int64) (*ended, error) {
	records, err := ledger.Read(l.files()...)
	if err != nil {
		return nil, fmt.Errorf("read the ledgers: %w", err)
	}
	effects, orders, err := l.rows()
	if err != nil {
		return nil, err
	}
	in := l.account.tally.Input
	in.CountEffects, in.Remaining, in.Effects, in.Records = false, nil, effects, records
	// Those that the queue still holds are the latest of the missing.
	missing := ledger.Account(in).LostIDs
	if !l.caps.Stored {
		left = 0
	}
	if left >= 0 && left < int64(len(missing)) {
		missing = missing[int64(len(missing))-left:]
	}
	stranded := []string{}
	for _, id := range missing {
		if left != 0 {
			stranded = append(stranded, id.String())
		}
	}
	in.Remaining = stranded
	r := ledger.Account(in)
	e := &ended{Counts: l.account.countsOf(r), Lost: []lostRow{}, Repeated: repeated(records), Stranded: stranded, Valid: r.Conservation == nil}
	e.Counts.Delivered, e.Counts.Acked = countEvents(records)
	order := newOvertaken(l.keyOf)
	for _, r := range records {
		order.add(r)
	}
	e.Counts.Overtaken = order.n
	e.Counts.Effects = 0
	for _, n := range effects {
		e.Counts.Effects += int64(n)
	}
	for _, id := range r.LostIDs {
		where, told := l.account.lost[id]
		if m := l.account.messages[id]; !told && m != nil {
			where = l.account.place(m)
		}
		e.Lost = append(e.Lost, lostRow{id.String(), where})
	}
	if orders != nil {
		all := int64(len(orders))
		without := withoutMessage(orders, records)
		e.Counts.Orders, e.Counts.OrdersWithoutMessage = &all, &without
	}
	e.Findings = findings(e, r)
	return e, nil
}

// rows asks the database what was committed: the effects of each message, and the
// orders, nil where the shop commits none.
func (l *lane) rows() (effects map[string]int, orders []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if effects, err = l.show.rows.Count(ctx, l.trial); err != nil || !l.show.scenario.orders {
		return effects, nil, err
	}
	_, url := l.show.effects()
	orders, err = node.OrdersOf(ctx, url, l.trial)
	if orders == nil && err == nil {
		orders = []string{}
	}
	return effects, orders, err
}

func countEvents(records []ledger.Record) (delivered, acked int64) {
	for i := range records {
		switch records[i].Event {
		case ledger.Delivered:
			delivered++
		case ledger.Acked:
			acked++
		}
	}
	return delivered, acked
}

// mostNamed is how many ids of a kind the verdict names.
const mostNamed = 2000

// repeated are the messages that were delivered more than once, in the order of
// their second delivery.
func repeated(records []ledger.Record) []string {
	n := map[ledger.ID]int{}
	some := []string{}
	for i := range records {
		if r := &records[i]; r.Event == ledger.Delivered {
			if n[r.ID()]++; n[r.ID()] == 2 && len(some) < mostNamed {
				some = append(some, r.ID().String())
			}
		}
	}
	return some
}

// withoutMessage counts the orders whose message the queue never had.
func withoutMessage(orders []string, records []ledger.Record) int64 {
	had := map[string]bool{}
	for i := range records {
		if e := records[i].Event; e == ledger.Accepted || e == ledger.Delivered {
			had[records[i].ID().String()] = true
		}
	}
	var n int64
	for _, id := range orders {
		if !had[id] {
			n++
		}
	}
	return n
}

// findings say the verdict in sentences.
func findings(e *ended, r ledger.Report) []string {
	some := []string{}
	say := func(n int64, format string, args ...any) {
		if n > 0 {
			some = append(some, fmt.Sprintf(format, append([]any{n}, args...)...))
		}
	}
	say(r.Lost, "%d of %d accepted messages were lost", r.Accepted)
	say(r.Redelivered, "%d deliveries were repeats by the queue")
	say(r.ProducerDuplicates, "%d deliveries were repeats by the producer")
	say(r.EffectDuplicates, "%d effects were made twice")
	say(r.Unknown, "%d messages had no answer, %d of them came all the same", r.Recovered)
	say(r.Rejected, "%d messages were rejected, and their producer was told")
	say(r.Reordered, "%d messages came after a later one of their key")
	say(e.Counts.Overtaken, "%d effects were made after that of a later message of their key")
	say(r.DeadLettered, "%d messages were given up and dead-lettered")
	say(r.Stranded, "%d messages are still in the queue")
	if e.Counts.OrdersWithoutMessage != nil {
		say(*e.Counts.OrdersWithoutMessage, "%d of %d orders never had a message: nobody will handle them", *e.Counts.Orders)
	}
	if r.Conservation != nil {
		some = append(some, "the ledger does not balance, and proves nothing: "+r.Conservation.Error())
	}
	if len(some) == 0 {
		some = append(some, "every accepted message had its effect, once")
	}
	return some
}
