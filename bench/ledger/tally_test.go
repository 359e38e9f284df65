package ledger

import (
	"fmt"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"queuelab/queue"
)

// histories draws records of a few messages, with every kind of trouble.
func histories(t *rapid.T) []Record {
	var rs []Record
	number := func(most int64, what string) int64 { return rapid.Int64Range(0, most).Draw(t, what) }
	for seq := range number(11, "messages") + 1 {
		base := number(40, "sent") + 1
		id := Record{Trial: 1, Producer: uint16(number(1, "producer")), Seq: uint64(seq), Process: 1, Due: base - number(3, "late")}
		if number(30, "odd") == 0 {
			id.Seq = 1<<40 + uint64(seq)
		}
		add := func(e Event, at, arg int64, process uint16) {
			r := id
			r.Event, r.At, r.Arg, r.Process = e, at, uint32(arg), process
			rs = append(rs, r)
		}
		for range number(1, "more attempts") + 1 {
			add(Intent, base, base%3, 1)
			base += number(6, "answer")
			if e := Event(number(4, "outcome")); e >= Accepted && e <= Unknown {
				add(e, base, number(2, "receivers"), 1)
			} else {
				add(Accepted, base, 0, 1)
			}
		}
		for range number(3, "deliveries") {
			at, process := base+number(12, "delivered")-6, 2+uint16(number(1, "consumer"))
			add(Delivered, at, 1, process)
			if number(4, "effect") > 0 {
				add(Effect, at+number(3, "handling")-1, 0, process)
			}
			if number(4, "ack") > 0 {
				add(Acked, at+number(4, "acking")-1, 1, process)
			}
		}
	}
	slices.SortStableFunc(rs, func(a, b Record) int { return int(a.At - b.At) })
	return rs
}

// byHistogram compares histograms by what they tell.
var byHistogram = cmp.Transformer("histogram", func(l Latencies) []string {
	var s []string
	for _, h := range []*hdrhistogram.Histogram{l.Lateness, l.Publish, l.EndToEnd, l.Effect, l.Acked, l.Handling, l.PublishFromSend, l.EndToEndFromSend} {
		s = append(s, fmt.Sprint(h.TotalCount(), h.Min(), h.Max(), h.Mean()))
	}
	return append(s, fmt.Sprint(l.OutOfRange, l.Negative, l.MostNegative))
})

var byText = cmp.Transformer("text", errString)

// The short form of a message says the same as the long one, and a second
// report the same as a first.
func TestTheShortFormOfAMessageLosesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rs := histories(rt)
		in := Input{CountEffects: rapid.Bool().Draw(rt, "count effects"), KeyOf: func(id ID) string { return fmt.Sprint(id.Seq % 2) }}
		short, long := NewTally(in), NewTally(in)
		for _, r := range rs {
			short.Add(r)
			if id := r.ID(); r.Event < FaultAsked {
				n := long.row(long.stream(streamID{id.Trial, id.Producer, id.Incarnation}), id)
				long.brief(n).flags |= sawOther
				long.lengthen(n)
			}
			long.Add(r)
		}
		short.Input.Effects = map[string]int{name(0): 2, name(1): 1, "foreign": 1}
		short.Input.Remaining, short.Input.Dropped, short.Input.DeadLettered = []string{name(2)}, []string{name(3)}, []string{name(4), "foreign"}
		short.Input.Confirm = queue.ConfirmNone
		short.Report() // leaves no trace
		short.Input = in
		got, want := short.Report(), long.Report()
		if diff := cmp.Diff(want, got, byHistogram, byText, cmpopts.EquateEmpty()); diff != "" {
			rt.Errorf("report (-long +short):\n%s", diff)
		}
		if diff := cmp.Diff(slices.Collect(long.Stamps()), slices.Collect(short.Stamps())); diff != "" {
			rt.Errorf("stamps (-long +short):\n%s", diff)
		}
	})
}

// The order is judged as its definition says, tried out on every pair.
func TestOrderIsJudgedAsOnEveryPair(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rs := histories(rt)
		keyOf := func(id ID) string { return fmt.Sprint(id.Seq % 2) }
		tally := NewTally(Input{KeyOf: keyOf})
		for _, r := range rs {
			tally.Add(r)
		}
		var ms []message
		tally.each(func(_ row, m *message) {
			if m.isAccepted() && m.deliveries > 0 {
				ms = append(ms, *m)
			}
		})
		var want int64
		for _, m := range ms {
			if slices.ContainsFunc(ms, func(o message) bool {
				sameLane := o.id.Producer == m.id.Producer && keyOf(o.id) == keyOf(m.id)
				behind := m.call != 0 && o.call == m.call && (o.intended > m.intended || o.intended == m.intended && o.id.Seq > m.id.Seq)
				return sameLane && (o.intended > m.concludedAt || behind) && o.firstDelivery < m.firstDelivery
			}) {
				want++
			}
		}
		if got := tally.Report().Reordered; got != want {
			rt.Errorf("reordered: got %d, want %d", got, want)
		}
	})
}

func TestCountEffectsIsEffectsOfWithoutTheMap(t *testing.T) {
	h := faultless()
	h.drop(3, Effect)
	h.add(Record{Event: Effect, At: 5045}, 5)
	h.add(Record{Event: Delivered, At: 6000, Trial: foreignTrial}, 77)
	h.Records[len(h.Records)-1].Trial = foreignTrial
	h.add(Record{Event: Effect, At: 6001}, 77)
	h.Records[len(h.Records)-1].Trial = foreignTrial
	h.Effects = EffectsOf(h.Records)
	want := h.account()
	h.Effects, h.CountEffects = nil, true
	got := h.account()
	if diff := cmp.Diff(want, got, byHistogram, byText); diff != "" {
		t.Errorf("report (-map +records):\n%s", diff)
	}
	if got.Lost != 1 || got.EffectDuplicates != 1 || got.Phantom != 1 || got.Conservation != nil {
		t.Errorf("got %d lost, %d effect duplicates, %d phantoms, %v, want 1, 1, 1 and nil", got.Lost, got.EffectDuplicates, got.Phantom, got.Conservation)
	}
}

func TestAFarSequenceNumberCostsNoMoreThanAnother(t *testing.T) {
	const n = 10_000
	before := usedNow(t)
	tally := NewTally(Input{})
	for i := range uint64(n) {
		tally.Add(Record{Event: Delivered, Trial: 1, Seq: i * i << 20, At: 1})
		tally.Add(Record{Event: Delivered, Trial: foreignTrial, Seq: i << 30, At: 2})
		tally.Add(Record{Event: Acked, Trial: foreignTrial, Seq: i << 30, At: 3})
	}
	if each := (usedNow(t).heap - before.heap) / (2 * n); each > 300 {
		t.Errorf("got %d bytes each, want at most 300", each)
	}
	if r := tally.Report(); r.Phantom != 2*n || r.Conservation != nil {
		t.Errorf("got %d phantoms, %v, want %d and nil", r.Phantom, r.Conservation, 2*n)
	}
}
