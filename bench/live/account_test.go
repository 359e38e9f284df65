package live

import (
	"slices"
	"testing"
	"time"

	"queuelab/bench/ledger"
	"queuelab/bench/trial"
	"queuelab/queue"
)

// someAccount is an account of a lane that nobody runs.
func someAccount(t *testing.T, setting string, caps queue.Capabilities) *account {
	t.Helper()
	sets, err := trial.SelectSettings(setting)
	if err != nil {
		t.Fatal(err)
	}
	l := &lane{setting: sets[0], backend: sets[0].Client(), kind: kindOf(sets[0]), caps: caps, keyOf: func(ledger.ID) string { return "" }}
	return newAccount(l, 1)
}

func id(seq uint64) ledger.ID { return ledger.ID{Trial: 1, Producer: 1, Seq: seq} }

// happen takes events of a message into the account, at a time.
func happen(a *account, seq uint64, at int64, events ...ledger.Event) {
	for i, e := range events {
		a.add(ledger.Record{Event: e, Process: 50, Trial: 1, Producer: 1, Seq: seq, At: at + int64(i)})
	}
}

func suspected(a *account) (some []uint64) {
	for id := range a.suspects {
		some = append(some, id.Seq)
	}
	slices.Sort(some)
	return some
}

func TestNobodyIsToldAsLostWithoutEvidence(t *testing.T) {
	atLeast := queue.Capabilities{Guarantee: queue.AtLeastOnce, Stored: true}
	atMost := queue.Capabilities{Guarantee: queue.AtMostOnce, Stored: true}
	long := int64(3 * time.Second)
	// What is asked about: message 1, accepted three seconds ago.
	type evidence struct {
		look         look // asked is set by the test
		held, dead   bool
		hidden, died bool
		again        bool // asked twice, far enough apart
		soon         bool // asked twice, half as far
	}
	empty, full, untold := look{ok: true}, look{ok: true, ready: 1}, look{ok: true, inFlight: -1}
	for _, c := range []struct {
		name    string
		setting string
		caps    queue.Capabilities
		e       evidence
		lost    bool
	}{
		{"an empty broker says so once", "redis-list/aof-everysec", atMost, evidence{look: empty}, false},
		{"an empty broker says so twice, within a second", "redis-list/aof-everysec", atMost, evidence{look: empty, soon: true}, false},
		{"an empty broker says so for a second", "redis-list/aof-everysec", atMost, evidence{look: empty, again: true}, true},
		{"a broker that holds something may hold it", "redis-list/aof-everysec", atMost, evidence{look: full, again: true}, false},
		{"a broker that is down says nothing", "redis-list/aof-everysec", atMost, evidence{look: look{}, again: true}, false},
		{"a process holds it", "redis-list/aof-everysec", atMost, evidence{look: empty, held: true, again: true}, false},
		{"a frozen process may have it in its sockets", "redis-list/aof-everysec", atMost, evidence{look: empty, hidden: true, again: true}, false},
		{"a broker that does not tell what is in flight, and nothing comes", "rabbitmq/classic", atLeast, evidence{look: untold, again: true}, true},
		{"a dead one held it, at most once", "redis-list/aof-everysec", atMost, evidence{look: full, dead: true}, true},
		{"a dead one held it, at least once", "redis-streams/aof-everysec", atLeast, evidence{look: full, dead: true}, false},
		{"a dead one held it, and a living one has it", "redis-list/aof-everysec", atMost, evidence{look: full, dead: true, held: true}, false},
		{"a dead one held it, and offsets are committed by a timer", "kafka/auto-commit", atMost, evidence{look: full, dead: true}, false},
		{"a dead one held it, and the overdue are rolled back", "redis-doing/aof-everysec", atMost, evidence{look: full, dead: true}, false},
		{"it was in a process that died", "memory/bounded", atLeast, evidence{died: true}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := someAccount(t, c.setting, c.caps)
			now := ledger.Now()
			happen(a, 1, now-long, ledger.Intent, ledger.Accepted)
			held, dead := map[ledger.ID]bool{}, map[ledger.ID]bool{}
			if c.e.held {
				held[id(1)] = true
			}
			if c.e.dead {
				dead[id(1)] = true
			}
			c.e.look.asked = now - long/2
			doubt := a.suspect(c.e.look, held, dead, c.e.hidden, c.e.died)
			if c.e.again || c.e.soon {
				if c.e.look.asked += int64(missing) / 2; c.e.again {
					c.e.look.asked = now
				}
				a.suspect(c.e.look, held, dead, c.e.hidden, c.e.died)
			}
			if got := len(a.suspects) == 1; got != c.lost {
				t.Errorf("got suspects %v, want lost %v", suspected(a), c.lost)
			}
			if wantDoubt := c.e.dead && !c.e.held && !c.lost; wantDoubt != (len(doubt) == 1) {
				t.Errorf("got in doubt %v, want %v", doubt, wantDoubt)
			}
		})
	}
}

func TestWhatTheDatabaseHasIsNotLost(t *testing.T) {
	a := someAccount(t, "redis-list/aof-everysec", queue.Capabilities{Stored: true})
	now := ledger.Now()
	for seq := range uint64(4) {
		happen(a, seq, now+int64(seq)*10, ledger.Intent, ledger.Accepted, ledger.Delivered)
	}
	dead := map[ledger.ID]bool{id(0): true, id(1): true, id(2): true}
	a.suspect(look{}, map[ledger.ID]bool{}, dead, false, false)
	asked := []ledger.ID{id(0), id(1), id(2)}
	happen(a, 2, now+100, ledger.Delivered) // it came again meanwhile
	a.suspect(look{}, map[ledger.ID]bool{id(2): true}, dead, false, false)
	lost := a.convict(asked, map[string]int{id(1).String(): 1})
	if len(lost) != 1 || lost[0].id != id(0).String() || lost[0].place != placeHandler {
		t.Errorf("got %v as lost, want message 0 in the consumer: 1 has its effect, 2 came again", lost)
	}
	if c := a.counts(); c.Lost != 1 || *c.Waiting != 2 || c.Effects != 1 || c.Stranded != 0 {
		t.Errorf("got %+v, want one lost, one with an effect and two waiting", c)
	}
	if found := a.add(ledger.Record{Event: ledger.Delivered, Process: 51, Trial: 1, Producer: 1, At: now + 200}); !found {
		t.Error("a lost message came, and was not taken back")
	}
	if c := a.counts(); c.Lost != 0 || *c.Waiting != 3 {
		t.Errorf("got %+v, want none lost any more", c)
	}
}

func TestAMessageThatNobodyHeardIsLostAtOnce(t *testing.T) {
	a := someAccount(t, "redis-pubsub/default", queue.Capabilities{Broadcast: true})
	a.add(ledger.Record{Event: ledger.Accepted, Process: 1, Trial: 1, Producer: 1, Seq: 7, At: ledger.Now(), Arg: 1})
	a.add(ledger.Record{Event: ledger.Accepted, Process: 1, Trial: 1, Producer: 1, Seq: 8, At: ledger.Now(), Arg: 2})
	a.suspect(look{}, nil, nil, false, false)
	if lost := a.convict([]ledger.ID{id(7), id(8)}, nil); len(lost) != 1 || lost[0] != (lostRow{id(7).String(), placeUnheard}) {
		t.Errorf("got %v, want message 7, which nobody heard", lost)
	}
}

func TestAnEffectThatWasOvertakenIsCounted(t *testing.T) {
	o := newOvertaken(func(id ledger.ID) string { return []string{"a", "b"}[id.Seq%2] })
	for _, seq := range []uint64{0, 2, 1, 6, 4, 4, 3, 8} { // 1 and 3 are of another key than the others
		o.add(ledger.Record{Event: ledger.Effect, Trial: 1, Producer: 1, Seq: seq})
		o.add(ledger.Record{Event: ledger.Acked, Trial: 1, Producer: 1, Seq: seq})
	}
	o.add(ledger.Record{Event: ledger.Effect, Trial: 1, Producer: 2, Seq: 0}) // of another producer
	if o.n != 1 {
		t.Errorf("got %d, want message 4 alone, once: 6 of its key was before it", o.n)
	}
}
