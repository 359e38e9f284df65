package trial

import (
	"fmt"
	"os"
	"time"

	"queuelab/bench/ledger"
	"queuelab/queue"
)

// writtenCase is a history that no queue need be run for: its records are
// written, read back and judged like those of a trial.
type writtenCase struct {
	name, about string
	injected    map[string]float64
	trials      []writtenTrial
}

// writtenTrial is n messages, a millisecond apart, each delivered after took.
type writtenTrial struct {
	n      int
	took   time.Duration
	in     ledger.Input
	effect func(seq int) int // committed effects of a message; nil: one each
}

func written() []writtenCase {
	ids := func(n int) []string {
		var out []string
		for i := range n {
			out = append(out, ledger.FormatID(ledger.ID{Trial: 1, Producer: 1, Seq: uint64(i)}))
		}
		return out
	}
	none := func(below int) func(int) int {
		return func(seq int) int {
			if seq < below {
				return 0
			}
			return 1
		}
	}
	return []writtenCase{
		{"zero latency", "a thousand deliveries in the very nanosecond of their due time: each is a sample", map[string]float64{"samples": 1000, "p50Millis": 0, "maxMillis": 0},
			[]writtenTrial{{n: 1000}}},
		{"two speeds", "900 messages of 1 ms in one trial, 100 of 2 s in the next: percentiles are those of all messages, and no average", map[string]float64{"samples": 1000, "p50Millis": 1, "p99Millis": 2000, "maxMillis": 2000},
			[]writtenTrial{{n: 900, took: time.Millisecond}, {n: 100, took: 2 * time.Second}}},
		{"effect twice", "7 messages have two effects", map[string]float64{"effectDuplicates": 7, "lost": 0}, []writtenTrial{{n: 100, effect: func(seq int) int {
			if seq < 7 {
				return 2
			}
			return 1
		}}}},
		{"stranded", "5 messages without an effect are still in the queue", map[string]float64{"stranded": 5, "lost": 0}, []writtenTrial{{n: 100, effect: none(5), in: ledger.Input{Remaining: ids(5)}}}},
		{"dead letters", "4 messages without an effect are dead-lettered", map[string]float64{"deadLettered": 4, "lost": 0}, []writtenTrial{{n: 100, effect: none(4), in: ledger.Input{DeadLettered: ids(4)}}}},
		{"dropped by a limit", "3 messages without an effect were reported as dropped", map[string]float64{"policyDropped": 3, "lost": 0}, []writtenTrial{{n: 100, effect: none(3), in: ledger.Input{Dropped: ids(3)}}}},
		{"effect never", "6 messages are delivered, acked, and without an effect: lost", map[string]float64{"lost": 6}, []writtenTrial{{n: 100, effect: none(6)}}},
	}
}

func (c writtenCase) report(l *Lab) (map[string]float64, error) {
	row, err := Lookup("memory/bounded", FaultNone)
	if err != nil {
		return nil, err
	}
	s := Spec{Setting: Settings()[0], Test: TestLatency, Fault: FaultNone, Trials: len(c.trials)}
	var outcomes []Outcome
	var last *measured
	for i, t := range c.trials {
		m, err := t.account(l)
		if err != nil {
			return nil, err
		}
		outcomes, last = append(outcomes, outcome(s, TrialRun{N: i + 1, StartedAt: time.Now()}, m, nil)), m
	}
	cell := Cell{Test: TestLatency}
	fold(s, row, outcomes, 1, &cell)
	if len(last.invalid) > 0 {
		return nil, fmt.Errorf("the history is not sound: %s", last.invalid[0])
	}
	return reportOf(last, cell), nil
}

func (t writtenTrial) account(l *Lab) (*measured, error) {
	number := l.nextTrial()
	path := l.ledgerPath(number, producerProcess)
	defer os.Remove(path)
	w, err := ledger.Create(path, producerProcess)
	if err != nil {
		return nil, err
	}
	effects := map[string]int{}
	start := ledger.Now()
	for seq := range t.n {
		r := ledger.Record{Trial: 1, Producer: 1, Seq: uint64(seq), At: start + int64(seq)*int64(time.Millisecond)}
		r.Due = r.At
		r.Event = ledger.Intent
		w.Append(r)
		r.At += int64(t.took)
		for _, e := range []ledger.Event{ledger.Accepted, ledger.Delivered, ledger.Acked} {
			r.Event = e
			w.Append(r)
		}
		effects[ledger.FormatID(r.ID())] = 1
		if t.effect != nil {
			effects[ledger.FormatID(r.ID())] = t.effect(seq)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	in := t.in
	if in.Records, err = ledger.Read(path); err != nil {
		return nil, err
	}
	in.Effects, in.Confirm = effects, queue.ConfirmMemory
	m := &measured{report: ledger.Account(in)}
	if err := m.report.Conservation; err != nil {
		m.invalid = append(m.invalid, err.Error())
	}
	return m, nil
}
