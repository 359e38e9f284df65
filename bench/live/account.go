package live

import (
	"strings"
	"time"

	"queuelab/bench/ledger"
	"queuelab/queue"
)

// account is what the ledgers say of a lane's messages so far.
type account struct {
	tally    *ledger.Tally
	lane     *lane
	messages map[ledger.ID]*message
	open     map[ledger.ID]*message // accepted, without an effect, and not known as lost
	suspects map[ledger.ID]*message // of those: lost, unless the database has an effect of them
	lost     map[ledger.ID]string   // and where

	order                     *overtaken
	delivered, effects, acked int64
	lastDelivery              int64
	dirty                     bool
}

// message is what happened to one, as far as live verdicts need it.
type message struct {
	accepted, unheard, delivered, settled, done bool

	acceptedAt int64
	suspect    int64 // since when nobody seems to have it; 0: somebody may
	doubted    bool
}

func newAccount(l *lane, copies int) *account {
	in := ledger.Input{CountEffects: true, Confirm: l.caps.Confirm, KeyOf: l.keyOf, Copies: copies}
	return &account{
		tally: ledger.NewTally(in), lane: l, messages: map[ledger.ID]*message{}, open: map[ledger.ID]*message{}, lost: map[ledger.ID]string{}, suspects: map[ledger.ID]*message{},
		order: newOvertaken(l.keyOf),
	}
}

// add takes a record, in order of time. It returns whether a message that was
// told as lost has come after all.
func (a *account) add(r ledger.Record) (found bool) {
	a.tally.Add(r)
	if r.Event >= ledger.FaultAsked {
		return false
	}
	a.dirty = true
	a.order.add(r)
	id := r.ID()
	m := a.messages[id]
	if m == nil {
		m = &message{}
		a.messages[id] = m
	}
	switch r.Event {
	case ledger.Accepted:
		m.unheard = (m.unheard || !m.accepted) && r.Arg == 1
		m.accepted, m.acceptedAt = true, r.At
		if !m.done {
			a.open[id] = m
		}
	case ledger.Delivered:
		a.delivered++
		a.lastDelivery = max(a.lastDelivery, r.At)
		m.delivered, m.suspect, m.doubted = true, 0, false
	case ledger.Effect, ledger.DeadLettered:
		if r.Event == ledger.Effect {
			a.effects++
		}
		m.done = true
		delete(a.open, id)
	case ledger.Acked:
		a.acked++
		m.settled = true
	case ledger.Nacked:
		m.suspect = 0
	}
	if _, was := a.lost[id]; was && (m.done || r.Event == ledger.Delivered) {
		delete(a.lost, id)
		if !m.done {
			a.open[id] = m
		}
		return true
	}
	return false
}

// missing is how long nobody must have a message before it is told as lost.
const missing = time.Second

// suspect finds the messages that are lost, unless the database has an effect of
// them, given what the broker said, and those that are newly in doubt. held are
// those that living processes hold, dead those that dead ones held when they died.
func (a *account) suspect(l look, held, dead map[ledger.ID]bool, hidden, died bool) (doubt []string) {
	now := ledger.Now()
	clear(a.suspects)
	quiet := now-a.lastDelivery > int64(missing)
	// A broker that does not tell what is in flight holds nothing only once all
	// that it may have handed out has come.
	empty := l.ok && l.ready == 0 && (l.inFlight == 0 || l.inFlight < 0 && quiet && len(held) == 0) && !hidden
	for id, m := range a.open {
		switch {
		case m.unheard, died, dead[id] && !held[id] && a.forgets():
			a.suspects[id] = m
			continue
		case dead[id] && !held[id] && !m.doubted:
			m.doubted = true
			doubt = append(doubt, id.String())
		}
		switch {
		case held[id] || !empty:
			m.suspect = 0
		case m.acceptedAt >= l.asked:
		case m.suspect == 0:
			m.suspect = l.asked
		case l.asked-m.suspect >= int64(missing):
			a.suspects[id] = m
		}
	}
	return doubt
}

// convict tells as lost those of the asked messages that are suspect still, and
// that the database has no effect of. A process may have died between its commit
// and its record of it.
func (a *account) convict(asked []ledger.ID, effects map[string]int) (lost []lostRow) {
	for _, id := range asked {
		m := a.suspects[id]
		switch {
		case m == nil:
		case effects[id.String()] > 0:
			a.add(ledger.Record{Event: ledger.Effect, Trial: id.Trial, Producer: id.Producer, Incarnation: id.Incarnation, Seq: id.Seq, At: ledger.Now()})
		default:
			lost = append(lost, a.lose(id, m))
		}
		delete(a.suspects, id)
	}
	return lost
}

// forgets reports whether what a dead consumer held is certain to be lost: the
// queue promises at most once, and has no other way back.
func (a *account) forgets() bool {
	l := a.lane
	back := l.setting.Backend == "redis-doing" || strings.Contains(l.setting.Query, "commit=auto") || strings.Contains(l.setting.Query, "commit=poll")
	return l.caps.Guarantee == queue.AtMostOnce && !l.caps.Broadcast && !back
}

func (a *account) lose(id ledger.ID, m *message) lostRow {
	where := a.place(m)
	a.lost[id] = where
	a.dirty = true
	delete(a.open, id)
	return lostRow{id.String(), where}
}

// place is where a message was lost, by the same reasons as trial.Evidence.Place.
func (a *account) place(m *message) string {
	l := a.lane
	switch {
	case m.delivered && m.settled:
		return placeSkipped
	case m.delivered:
		return placeHandler
	case m.unheard:
		return placeUnheard
	case l.setting.Broker == "":
		return placeProcess
	case l.caps.DropsOldest && !l.consumerDied():
		return placeOverflow
	case l.consumerDied() && l.kind == "kafka":
		return placeSkipped
	case l.consumerDied() && !l.brokerStruck:
		return placeWire
	}
	return placeBroker
}

// The places, as codes.
const (
	placeBroker   = "broker"
	placeProcess  = "process"
	placeWire     = "wire"
	placeHandler  = "handler"
	placeSkipped  = "skipped"
	placeUnheard  = "unheard"
	placeOverflow = "overflow"
)

// consumerDied reports whether a consumer was killed; under the lock.
func (l *lane) consumerDied() bool {
	for _, p := range l.processes {
		if consumes(p) && !p.alive && !p.stopped {
			return true
		}
	}
	return false
}

// counts are what the ledgers say so far.
func (a *account) counts() *counts {
	waiting := make([]string, 0, len(a.open))
	for id := range a.open {
		waiting = append(waiting, id.String())
	}
	a.tally.Input.Remaining = waiting
	c := a.countsOf(a.tally.Report())
	n := c.Stranded
	c.Waiting, c.Stranded = &n, 0
	a.dirty = false
	return c
}

func (a *account) countsOf(r ledger.Report) *counts {
	c := &counts{Counts: r.Counts, Delivered: a.delivered, Effects: a.effects, Acked: a.acked, Unheard: r.Unheard, Overtaken: a.order.n}
	if a.tally.Input.Copies > 1 {
		c.Missed = &r.Missed
	}
	return c
}
