package ledger

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"queuelab/queue"
)

func TestLatenciesCountFromDueWithinTheWindow(t *testing.T) {
	h := faultless()
	h.From, h.To = 5000, 15_000
	r := h.account()
	for _, c := range []struct {
		name      string
		got, want int64
	}{
		{"publish n", r.Publish.TotalCount(), 10}, {"publish max", r.Publish.Max(), 20},
		{"end to end n", r.EndToEnd.TotalCount(), 10}, {"end to end max", r.EndToEnd.Max(), 30},
		{"publish from send", r.PublishFromSend.Max(), 10}, {"end to end from send", r.EndToEndFromSend.Max(), 20},
		{"lateness", r.Lateness.Max(), 10}, {"out of range", r.OutOfRange, 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, c.got, c.want)
		}
	}
	h.find(7, Intent).Due = 7015 // sent before it was due
	h.find(8, Delivered).At = 8030 + 2*longest
	r = h.account() // its effect now comes before its delivery
	if r.OutOfRange != 4 || r.Lateness.TotalCount() != 9 {
		t.Errorf("got %d out of range and %d latenesses, want 4 and 9", r.OutOfRange, r.Lateness.TotalCount())
	}
}

// spans are the lowest and the highest of a stage, in ns, and how many there are.
type spans struct{ Lowest, Highest, N int64 }

func spansOf(l Latencies) map[string]spans {
	m := map[string]spans{}
	for name, h := range map[string]*hdrhistogram.Histogram{
		"lateness": l.Lateness, "publish": l.Publish, "end to end": l.EndToEnd, "effect": l.Effect, "acked": l.Acked,
		"handling": l.Handling, "publish from send": l.PublishFromSend, "end to end from send": l.EndToEndFromSend,
	} {
		m[name] = spans{h.Min(), h.Max(), h.TotalCount()}
	}
	return m
}

func TestEveryStageIsOfTheMessagesThatReachedIt(t *testing.T) {
	h := faultless()
	h.drop(1, Accepted, Delivered, Effect, Acked) // sent, and no more
	h.drop(2, Delivered, Effect, Acked)
	h.drop(3, Effect, Acked)
	h.drop(4, Effect) // handled by its ack
	h.drop(5, Acked)
	// The first delivery died with its consumer; the wait for the second is no handling.
	h.drop(6, Effect, Acked)
	h.add(Record{Event: Delivered, At: 8000, Process: 3, Arg: 1}, 6)
	h.add(Record{Event: Effect, At: 8007, Process: 3}, 6)
	h.add(Record{Event: Acked, At: 8011, Process: 3, Arg: 1}, 6)
	h.add(Record{Event: Delivered, At: 9000, Process: 3, Arg: 1}, 6)
	want := map[string]spans{
		"lateness": {10, 10, messages}, "publish": {20, 20, messages - 1}, "publish from send": {10, 10, messages - 1},
		"end to end": {30, 30, messages - 2}, "end to end from send": {20, 20, messages - 2},
		"effect": {40, 2007, messages - 4}, "acked": {50, 2011, messages - 4},
		"handling": {7, 20, messages - 3},
	}
	r := h.account()
	if diff := cmp.Diff(want, spansOf(r.Latencies)); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
	if r.OutOfRange != 0 || r.Negative != 0 || r.MostNegative != 0 {
		t.Errorf("got %d out of range, %d negative, the lowest %v, want none", r.OutOfRange, r.Negative, r.MostNegative)
	}
}

func TestTheWindowHasItsBeginningAndNotItsEnd(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to int64
		want     int64
	}{
		{"no bounds", 0, 0, messages},
		{"the beginning is in it", 5000, 0, messages - 5},
		{"a nanosecond after it is out", 5001, 0, messages - 6},
		{"the end is out", 0, 5000, 5},
		{"a nanosecond before it is in", 0, 5001, 6},
		{"both", 5000, 6000, 1},
		{"nothing", 5000, 5000, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := faultless()
			h.From, h.To = c.from, c.to
			r := h.account()
			for name, s := range spansOf(r.Latencies) {
				if s.N != c.want {
					t.Errorf("%s: got %d, want %d", name, s.N, c.want)
				}
			}
			if r.Sent != messages {
				t.Errorf("got %d sent, want all %d, in the window or not", r.Sent, messages)
			}
		})
	}
}

func TestWhatIsOutOfRangeIsCountedAndSaid(t *testing.T) {
	for _, c := range []struct {
		name               string
		damage             func(h *history)
		outside, negative  int64
		lowest             time.Duration
		want               string
		stage              string
		inside, theHighest int64
	}{
		{"zero is a latency", func(h *history) { h.find(7, Delivered).At = 7000 }, 1, 1, -10, "1 latencies below zero", "end to end", messages, 30},
		{"below zero it is none", func(h *history) { h.find(7, Delivered).At = 6999 }, 2, 2, -11, "2 latencies below zero, the lowest -11ns", "end to end", messages - 1, 30},
		{"an effect before its delivery", func(h *history) { h.find(7, Effect).At = 7025 }, 1, 1, -5, "1 latencies below zero, the lowest -5ns", "handling", messages - 1, 10},
		{"an hour is a latency", func(h *history) { h.find(7, Acked).At = 7000 + longest }, 0, 0, 0, "", "acked", messages, longest},
		{"more than an hour is none", func(h *history) { h.find(7, Acked).At = 7001 + longest }, 1, 0, 0, "1 latencies above an hour", "acked", messages - 1, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := faultless()
			c.damage(h)
			r := h.account()
			if r.OutOfRange != c.outside || r.Negative != c.negative || r.MostNegative != c.lowest {
				t.Errorf("got %d out of range, %d negative, the lowest %v, want %d, %d and %v",
					r.OutOfRange, r.Negative, r.MostNegative, c.outside, c.negative, c.lowest)
			}
			said := strings.Join(r.Findings(), "\n")
			if !strings.Contains(said, c.want) || (c.want == "") != !strings.Contains(said, "latencies") {
				t.Errorf("got findings %q, want %q", said, c.want)
			}
			s := spansOf(r.Latencies)[c.stage]
			if s.N != c.inside || c.theHighest < longest && s.Highest != c.theHighest || s.Highest < c.theHighest {
				t.Errorf("%s: got %d up to %d, want %d up to %d", c.stage, s.N, s.Highest, c.inside, c.theHighest)
			}
		})
	}
}

// A consumer whose clock is behind cannot be told from a fast one by its
// latencies alone, unless it is behind by more than these: then it must show.
func TestASkewedClockShowsAsWhatItIs(t *testing.T) {
	const skew = time.Hour / 2
	trial := func(producer, consumer time.Duration) Report {
		dir := t.TempDir()
		paths := []string{filepath.Join(dir, "p"), filepath.Join(dir, "c")}
		p, c := must(Create(paths[0], 1))(t), must(Create(paths[1], 2))(t)
		p.Skew(producer)
		c.Skew(consumer)
		for i := range uint64(10) {
			msgs := []queue.Message{{ID: FormatID(ID{Trial: 1, Seq: i})}}
			if err := RecordPublisher(nullQueue{}, p).Publish(t.Context(), msgs...); err != nil {
				t.Fatal(err)
			}
			taker := RecordConsumer(nullQueue{[]*queue.Delivery{queue.NewDelivery(msgs[0], 1, nil)}}, c)
			ds := must(taker.Receive(t.Context(), 1))(t)
			RecordEffect(c, ds[0])
			if err := taker.Ack(t.Context(), ds...); err != nil {
				t.Fatal(err)
			}
		}
		for _, w := range []*Writer{p, c} {
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
		return Account(Input{Records: must(Read(paths...))(t), CountEffects: true})
	}
	for _, c := range []struct {
		name               string
		producer, consumer time.Duration
	}{{"the consumer's is behind", 0, -skew}, {"the producer's is ahead", skew, 0}} {
		t.Run(c.name, func(t *testing.T) {
			r := trial(c.producer, c.consumer)
			if r.Conservation == nil || !strings.Contains(r.Conservation.Error(), "10 messages delivered before they were sent") {
				t.Errorf("got conservation %v, want it to say that all came before they were sent", r.Conservation)
			}
			// End to end, effect and acked from due, and end to end from the send.
			if r.Negative != 40 || r.MostNegative < -skew || r.MostNegative > -skew+time.Minute {
				t.Errorf("got %d negative, the lowest %v, want 40, about %v", r.Negative, r.MostNegative, -skew)
			}
			if r.Lost != 0 || r.Publish.TotalCount() != 10 || r.Publish.Max() > int64(time.Minute) {
				t.Errorf("got %d lost, %d publish latencies up to %d: a skew must touch neither", r.Lost, r.Publish.TotalCount(), r.Publish.Max())
			}
		})
	}
	if r := trial(skew, skew); r.Findings() != nil {
		t.Errorf("both alike: got findings %q, want none", r.Findings())
	}
	if r := trial(0, skew); r.Negative != 0 || r.EndToEnd.Min() < int64(skew)*999/1000 {
		t.Errorf("ahead: got %d negative, the least latency %d, want none, and the skew in every latency", r.Negative, r.EndToEnd.Min())
	}
}

func TestTheCostOfRecordingIsMeasuredWithoutATrace(t *testing.T) {
	dir := t.TempDir()
	if ns := must(RecordCost(t.Context(), dir))(t); ns <= 0 {
		t.Errorf("got %v ns, want some", ns)
	}
	if left := must(filepath.Glob(filepath.Join(dir, "*")))(t); len(left) != 0 {
		t.Errorf("got %q left, want nothing", left)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := RecordCost(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v, want context.Canceled", err)
	}
	if _, err := RecordCost(t.Context(), filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such directory: got %v, want os.ErrNotExist", err)
	}
}

func TestRecordingAllocatesNothing(t *testing.T) {
	w := must(Create(filepath.Join(t.TempDir(), "a"), 1))(t)
	defer w.Close()
	m := newNullMessage(w)
	if got := testing.AllocsPerRun(1000, func() { _ = m.pass(t.Context()) }); got != 0 {
		t.Errorf("got %v allocations a message, want none", got)
	}
}
