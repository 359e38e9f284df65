package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"queuelab/bench/fault"
	"queuelab/bench/ledger"
)

// told is what the page knows of a lane, so that it is told only what is new.
type told struct {
	state     string
	guarantee bool
	structure []byte
	processes []byte
	struck    []byte
	available []byte
	counted   time.Time
}

// begin is called once all processes are ready.
func (l *lane) begin() {
	g := l.caps.Guarantee.String()
	l.show.server.mu.Lock()
	l.show.server.claimed[l.setting.String()] = g
	l.show.server.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	copies := 1
	if l.caps.Broadcast {
		copies = len(l.living(consumes))
	}
	l.account = newAccount(l, copies)
	l.state = stateRunning
}

func (l *lane) is(state string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == state
}

// collect reads what the ledgers have got; under the lock. What processes hold is
// known at once, also before it is told.
func (l *lane) collect() {
	for _, p := range l.processes {
		if l.closed {
			return
		}
		records, err := p.follower.Next()
		if err != nil {
			l.err = err.Error()
		}
		for _, r := range records {
			p.take(r)
			if r.Event == ledger.Acked && !l.caps.Broadcast {
				l.settled(p, r)
			}
		}
		l.fresh = append(l.fresh, records...)
	}
}

// settled: what another consumer has acked is held no more by those that were done
// with it before, and whose ack did not reach the broker; under the lock. Who is not
// done with it, such as one that is frozen, holds it still.
func (l *lane) settled(by *process, r ledger.Record) {
	for _, p := range l.processes {
		if h, held := p.holds[r.ID()]; held && p != by && h.done && h.since < r.At {
			delete(p.holds, r.ID())
		}
	}
}

// settleTime is how long a record waits for those of other processes that belong
// before it.
const settleTime = int64(5 * time.Millisecond)

// ripe takes what was collected and is old enough, in order; under the lock.
func (l *lane) ripe(all bool) []ledger.Record {
	slices.SortStableFunc(l.fresh, func(a, b ledger.Record) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
	n := len(l.fresh)
	if !all {
		limit := ledger.Now() - settleTime
		n, _ = slices.BinarySearchFunc(l.fresh, limit, func(r ledger.Record, limit int64) int {
			if r.At <= limit {
				return -1
			}
			return 1
		})
	}
	some := slices.Clone(l.fresh[:n])
	l.fresh = append(l.fresh[:0], l.fresh[n:]...)
	return some
}

// mostRows is how many records a tick tells one by one.
const mostRows = 200

// tick returns what is new; nil: nothing.
func (l *lane) tick(last bool) *laneTick {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.news
	l.news = laneTick{}
	n.Lane = l.n
	if l.state != l.told.state {
		l.told.state, n.State, n.Error, n.Queue = l.state, l.state, l.err, l.name
	}
	if l.account != nil {
		if !l.told.guarantee {
			g := l.caps.Guarantee.String()
			n.Guarantee, l.told.guarantee = &g, true
		}
		l.collect()
		l.tell(&n, l.ripe(last))
		l.decide(&n)
		if every := l.countEvery(); l.account.dirty && time.Since(l.told.counted) > every || last {
			n.Counts = l.account.counts()
			l.told.counted = time.Now()
		}
	}
	if !l.still {
		l.picture(&n)
	}
	if last && l.final != nil {
		n.Ended = l.final
		n.Counts = l.final.Counts
	}
	if n.empty() {
		return nil
	}
	return &n
}

// picture tells what changed of the broker, the processes and the buttons.
func (l *lane) picture(n *laneTick) {
	if s := l.look.structure; s.Kind != "" && changed(&l.told.structure, s) {
		n.Structure = &s
	}
	if rows := l.processRows(); changed(&l.told.processes, rows) {
		n.Processes = rows
	}
	if struck := l.inForce(); changed(&l.told.struck, struck) {
		n.Struck = &struck
	}
	if l.state == stateRunning {
		if some := l.availability(); changed(&l.told.available, some) {
			n.Available = some
		}
	}
}

func (n *laneTick) empty() bool {
	b, err := json.Marshal(n)
	return err == nil && string(b) == fmt.Sprintf(`{"lane":%d}`, n.Lane)
}

// changed reports whether v is another than the last time.
func changed(last *[]byte, v any) bool {
	b, err := json.Marshal(v)
	if err != nil || bytes.Equal(b, *last) {
		return false
	}
	*last = b
	return true
}

// countEvery is how often the account is drawn, which takes longer the more
// messages there are.
func (l *lane) countEvery() time.Duration {
	return 500*time.Millisecond + time.Duration(len(l.account.messages))*20*time.Microsecond
}

// tell takes the records into the account and tells them.
func (l *lane) tell(n *laneTick, records []ledger.Record) {
	for _, r := range records {
		if l.account.add(r) {
			n.Found = append(n.Found, r.ID().String())
		}
	}
	if len(records) == 0 {
		return
	}
	if len(records) > mostRows || !l.show.history.room(len(records)) {
		n.Flow = map[string]int64{}
		for _, r := range records {
			n.Flow[eventName(r.Event)]++
		}
		return
	}
	for _, r := range records {
		w := row{at: l.show.since(r.At), event: eventName(r.Event), process: r.Process, id: r.ID().String(), attempt: r.Attempt}
		switch {
		case r.Event == ledger.Intent:
			w.key = l.keyOf(r.ID())
		case r.Event == ledger.Accepted && r.Arg > 0:
			heard := int64(r.Arg) - 1
			w.arg = &heard
		}
		n.Records = append(n.Records, w)
	}
}

// decide finds what may be lost, and tells what is in doubt.
func (l *lane) decide(n *laneTick) {
	held, dead := map[ledger.ID]bool{}, map[ledger.ID]bool{}
	hidden, alive := false, 0
	for _, p := range l.processes {
		into := dead
		if p.alive || ledger.Now()-p.endedAt < 2*settleTime { // not all that it wrote was told
			into = held
			alive++
		}
		hidden = hidden || p.frozen // what it has in its sockets nobody knows
		for id := range p.holds {
			into[id] = true
		}
	}
	died := l.setting.Broker == "" && alive == 0 && len(l.processes) > 0
	n.Doubt = append(n.Doubt, l.account.suspect(l.look, held, dead, hidden, died)...)
}

func (l *lane) processRows() []processRow {
	rows := []processRow{}
	consumers := map[string]int{}
	for _, p := range l.processes {
		consumers[p.role]++
		pid, held := p.child.PID(), len(p.holds)
		w := processRow{N: p.n, Role: p.role, Name: fmt.Sprintf("%s %d", p.role, consumers[p.role]), PID: &pid, Alive: p.alive, Frozen: p.frozen, Slow: p.slow}
		if p.role != roleProducer {
			w.Holds = &held
		}
		rows = append(rows, w)
	}
	if l.warm != nil {
		down := l.warm.struck()
		rows = append(rows, processRow{N: brokerProcess, Role: string(fault.AtBroker), Name: l.setting.Broker, Alive: down == "" || down == "freeze-broker", Frozen: down == "freeze-broker"})
	}
	db, _ := l.show.effects()
	alive := db == nil || db.struck() == ""
	return append(rows, processRow{N: databaseNumber, Role: string(fault.AtDatabase), Name: l.show.databaseKind(), Alive: alive})
}

func (l *lane) json() map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := map[string]any{
		"lane": l.n, "setting": l.setting.String(), "backend": l.setting.Backend, "kind": l.kind, "promise": l.setting.Promise,
		"guarantee": nil, "queue": l.name, "database": nil, "state": l.state, "error": l.err,
		"strikes": l.availability(), "shares": map[string][]int{"broker": l.sharers(fault.AtBroker), "database": l.sharers(fault.AtDatabase)},
	}
	if _, url := l.show.effects(); url != "" {
		v["database"] = l.show.databaseKind()
	}
	if l.account != nil {
		v["guarantee"] = l.caps.Guarantee.String()
	}
	return v
}

// sharers are the other lanes that are struck with the broker or the database of
// this one.
func (l *lane) sharers(at fault.Part) []int {
	others := []int{}
	for _, o := range l.show.lanes {
		switch {
		case o == l:
		case at == fault.AtDatabase && l.show.databaseKind() == "postgres", at == fault.AtBroker && l.setting.Broker != "" && o.place() == l.place():
			others = append(others, o.n)
		}
	}
	return others
}
