package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"queuelab/queue"
)

// history is a faultless trial that a test then damages. Message i is due at
// 1000i, sent 10 later, accepted at +20, delivered at +30, done at +40, acked at +50.
type history struct {
	Input
}

const messages = 20

func faultless() *history {
	h := &history{Input{Effects: map[string]int{}, Confirm: queue.ConfirmDisk}}
	for i := range int64(messages) {
		h.add(Record{Event: Intent, At: 1000*i + 10, Due: 1000 * i}, i)
		h.add(Record{Event: Accepted, At: 1000*i + 20}, i)
		h.add(Record{Event: Delivered, At: 1000*i + 30, Process: 2, Arg: 1}, i)
		h.add(Record{Event: Effect, At: 1000*i + 40, Process: 2}, i)
		h.add(Record{Event: Acked, At: 1000*i + 50, Process: 2, Arg: 1}, i)
		h.Effects[name(i)] = 1
	}
	return h
}

func name(i int64) string { return FormatID(ID{Trial: 1, Seq: uint64(i)}) }

func (h *history) add(r Record, seq int64) {
	r.Trial, r.Seq = 1, uint64(seq)
	h.Records = append(h.Records, r)
}

// drop removes the records of a message with one of the events, and its effect
// with Effect.
func (h *history) drop(seq int64, events ...Event) {
	h.Records = slices.DeleteFunc(h.Records, func(r Record) bool { return r.Seq == uint64(seq) && slices.Contains(events, r.Event) })
	if slices.Contains(events, Effect) {
		delete(h.Effects, name(seq))
	}
}

func (h *history) find(seq int64, e Event) *Record {
	return &h.Records[slices.IndexFunc(h.Records, func(r Record) bool { return r.Seq == uint64(seq) && r.Event == e })]
}

func (h *history) account() Report {
	slices.SortStableFunc(h.Records, func(a, b Record) int { return int(a.At - b.At) })
	return Account(h.Input)
}

func TestAFaultlessTrialHasNoFindings(t *testing.T) {
	r := faultless().account()
	if diff := cmp.Diff(Counts{Sent: messages, Accepted: messages}, r.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if fs := r.Findings(); fs != nil || r.Conservation != nil {
		t.Errorf("got findings %q", fs)
	}
	if r.First != 10 || r.Last != 1000*(messages-1)+50 {
		t.Errorf("got first %d, last %d", r.First, r.Last)
	}
}

// Each damage must be named by exactly the findings that it deserves.
func TestEveryDamageIsNamed(t *testing.T) {
	again := func(h *history, seq, at int64) {
		h.add(Record{Event: Delivered, At: at, Process: 3, Arg: 1}, seq)
	}
	resend := func(h *history, seq int64, outcome Event) {
		h.add(Record{Event: Intent, At: 1000*seq + 21, Due: 1000 * seq}, seq)
		if outcome != 0 {
			h.add(Record{Event: outcome, At: 1000*seq + 22}, seq)
		}
	}
	for _, c := range []struct {
		name   string
		damage func(h *history)
		change func(c *Counts) // against the faultless counts
		want   []string
	}{
		{"an effect is missing", func(h *history) { h.drop(7, Effect) },
			func(c *Counts) { c.Lost = 1 }, []string{"1 lost: acked without an effect"}},
		{"a message was never delivered", func(h *history) { h.drop(7, Delivered, Effect, Acked) },
			func(c *Counts) { c.Lost = 1 }, []string{"1 lost: accepted and never delivered"}},
		{"a delivery died with its consumer", func(h *history) { h.drop(7, Effect, Acked) },
			func(c *Counts) { c.Lost = 1 }, []string{"1 lost: delivered, and forgotten by the queue before the consumer's ack"}},
		{"a message came twice, as its ack was never made", func(h *history) { h.drop(7, Acked); again(h, 7, 7500) },
			func(c *Counts) { c.Redelivered = 1 }, []string{"1 redelivered"}},
		{"a message came again after its ack", func(h *history) { again(h, 7, 7500) },
			func(c *Counts) { c.Redelivered = 1 }, []string{"1 deliveries of messages already acked", "1 redelivered"}},
		{"a message came three times and took effect twice", func(h *history) { h.drop(7, Acked); again(h, 7, 7500); again(h, 7, 7600); h.Effects[name(7)] = 2 },
			func(c *Counts) { c.Redelivered, c.EffectDuplicates = 2, 1 }, []string{"2 redelivered", "1 effect duplicates"}},
		{"two neighbours were swapped", func(h *history) {
			a, b := h.find(7, Delivered), h.find(8, Delivered)
			b.At, a.At = 8025, 8026
			h.find(7, Effect).At, h.find(7, Acked).At = 8040, 8050
		}, func(c *Counts) { c.Reordered = 1 }, []string{"1 reordered"}},
		{"an accepted one was rejected", func(h *history) { h.find(7, Accepted).Event = Rejected },
			func(c *Counts) { c.Accepted, c.Rejected, c.RejectedDelivered = messages-1, 1, 1 }, []string{"1 rejected, yet delivered"}},
		{"an accepted one was unknown", func(h *history) { h.find(7, Accepted).Event = Unknown },
			func(c *Counts) { c.Accepted, c.Unknown, c.Recovered = messages-1, 1, 1 }, []string{"1 recovered: outcome unknown, yet delivered"}},
		{"the producer was killed before the outcome", func(h *history) { h.drop(7, Accepted) },
			func(c *Counts) { c.Accepted, c.Unknown, c.Recovered = messages-1, 1, 1 }, []string{"1 recovered: outcome unknown, yet delivered"}},
		{"an unknown one that never came is no loss", func(h *history) { h.drop(7, Accepted, Delivered, Effect, Acked) },
			func(c *Counts) { c.Accepted, c.Unknown = messages-1, 1 }, nil},
		{"a rejected one that never came is no loss", func(h *history) {
			h.drop(7, Delivered, Effect, Acked)
			h.find(7, Accepted).Event = Rejected
		}, func(c *Counts) { c.Accepted, c.Rejected = messages-1, 1 }, nil},
		{"one attempt was rejected and one has no answer: the message is unknown", func(h *history) {
			h.drop(7, Delivered, Effect, Acked)
			h.find(7, Accepted).Event = Rejected
			resend(h, 7, Unknown)
		}, func(c *Counts) { c.Accepted, c.Unknown = messages-1, 1 }, nil},
		{"a message was acked before its effect", func(h *history) { h.find(7, Acked).At = 7035 },
			nil, []string{"1 acked before their effect"}},
		{"a message was delivered that nobody sent", func(h *history) { again(h, 99, 7500) },
			func(c *Counts) { c.Phantom = 1 }, []string{"1 phantom: delivered, never sent"}},
		{"an effect is of a message that nobody sent", func(h *history) { h.Effects["somebody-else"] = 1 },
			func(c *Counts) { c.Phantom = 1 }, []string{"invalid: 1 messages with an effect and no delivery: the ledger is incomplete", "1 phantom: delivered, never sent"}},
		{"a retry after an unknown outcome made a second copy", func(h *history) {
			h.find(7, Accepted).Event = Unknown
			resend(h, 7, Accepted)
			again(h, 7, 7500)
		}, func(c *Counts) { c.ProducerDuplicates = 1 }, []string{"1 producer duplicates"}},
		{"a retry made a second copy and the queue gave it twice", func(h *history) {
			resend(h, 7, Accepted)
			again(h, 7, 7500)
			again(h, 7, 7600)
		}, func(c *Counts) { c.ProducerDuplicates, c.Redelivered = 1, 1 }, []string{"1 deliveries of messages already acked", "1 redelivered", "1 producer duplicates"}},
		{"a retry after a rejection makes no second copy", func(h *history) {
			h.find(7, Accepted).Event = Rejected
			resend(h, 7, Accepted)
			again(h, 7, 7045)
		}, func(c *Counts) { c.Redelivered = 1 }, []string{"1 redelivered"}},
		{"a retry without an answer may have made a copy, and the message stays accepted", func(h *history) {
			resend(h, 7, 0)
			again(h, 7, 7045)
		}, func(c *Counts) { c.ProducerDuplicates = 1 }, []string{"1 producer duplicates"}},
		{"nobody listened", func(h *history) { h.drop(7, Delivered, Effect, Acked); h.find(7, Accepted).Arg = 1 },
			func(c *Counts) { c.Lost = 1 }, []string{"1 lost: accepted and never delivered", "1 accepted, with nobody listening"}},
		{"somebody listened", func(h *history) { h.find(7, Accepted).Arg = 2 }, nil, nil},
		{"a message is still in the broker", func(h *history) { h.drop(7, Delivered, Effect, Acked); h.Remaining = []string{name(7)} },
			func(c *Counts) { c.Stranded = 1 }, []string{"1 stranded in the broker after the drain"}},
		{"a message was dead-lettered", func(h *history) { h.drop(7, Effect); h.DeadLettered = []string{name(7)} },
			func(c *Counts) { c.DeadLettered = 1 }, []string{"1 dead-lettered"}},
		{"a consumer gave a message up, as it recorded itself", func(h *history) {
			h.drop(7, Effect)
			h.add(Record{Event: DeadLettered, At: 7045, Process: 2}, 7)
		}, func(c *Counts) { c.DeadLettered = 1 }, []string{"1 dead-lettered"}},
		{"a commit without an answer is no effect, and takes none away", func(h *history) {
			h.add(Record{Event: EffectUnknown, At: 7035, Process: 2}, 7)
			h.drop(8, Effect)
			h.add(Record{Event: EffectUnknown, At: 8035, Process: 2}, 8)
		}, func(c *Counts) { c.Lost = 1 }, []string{"1 lost: acked without an effect"}},
		{"a message was dropped by a limit", func(h *history) { h.drop(7, Delivered, Effect, Acked); h.Dropped = []string{name(7)} },
			func(c *Counts) { c.PolicyDropped = 1 }, []string{"1 dropped by policy"}},
		{"a message in several places counts once: dead-lettered before dropped before stranded", func(h *history) {
			h.drop(7, Effect)
			h.DeadLettered, h.Dropped, h.Remaining = []string{name(7)}, []string{name(7), name(6)}, []string{name(7), name(5)}
		}, func(c *Counts) { c.DeadLettered = 1 }, []string{"1 dead-lettered"}},
		{"an intent was forgotten", func(h *history) { h.drop(7, Intent) },
			func(c *Counts) { c.Sent, c.Accepted, c.Phantom = messages-1, messages-1, 1 },
			[]string{"invalid: 1 messages with an outcome and no intent: the ledger is incomplete", "1 phantom: delivered, never sent"}},
		{"an intent of a retry was forgotten", func(h *history) { h.add(Record{Event: Accepted, At: 7025}, 7) }, nil,
			[]string{"invalid: 1 messages with more outcomes than intents: the ledger is incomplete"}},
		{"a delivery was forgotten", func(h *history) { h.drop(7, Delivered) }, nil,
			[]string{"invalid: 1 messages acked more often than delivered: the ledger is incomplete; 1 messages with an effect and no delivery: the ledger is incomplete"}},
		{"a clock runs behind", func(h *history) { h.find(7, Delivered).At = 7005 }, nil,
			[]string{"invalid: 1 messages delivered before they were sent: the ledger is incomplete"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := faultless()
			c.damage(h)
			r := h.account()
			want := Counts{Sent: messages, Accepted: messages}
			if c.change != nil {
				c.change(&want)
			}
			if diff := cmp.Diff(want, r.Counts); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
			got := slices.DeleteFunc(r.Findings(), func(s string) bool { return strings.HasSuffix(s, "out of range") })
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithoutEffectsTheFirstDeliveryCounts(t *testing.T) {
	h := faultless()
	h.drop(3, Delivered, Acked)
	h.drop(4, Acked)
	h.Effects = nil
	if r := h.account(); r.Lost != 1 || r.EffectDuplicates != 0 || len(r.LostIDs) != 1 || r.LostIDs[0].Seq != 3 {
		t.Errorf("got %+v, lost %v", r.Counts, r.LostIDs)
	}
}

func TestEffectRecordsCanStandInForTheDatabase(t *testing.T) {
	h := faultless()
	h.drop(3, Effect)
	h.add(Record{Event: Effect, At: 5045}, 5)
	h.Effects = EffectsOf(h.Records)
	if r := h.account(); r.Lost != 1 || r.EffectDuplicates != 1 {
		t.Errorf("got %d lost, %d effect duplicates, want 1 and 1", r.Lost, r.EffectDuplicates)
	}
}

func TestNothingIsConfirmedWhereNobodyConfirms(t *testing.T) {
	h := faultless()
	h.Confirm = queue.ConfirmNone
	if r := h.account(); r.Unconfirmed != messages || r.Accepted != messages {
		t.Errorf("got %d unconfirmed of %d accepted, want all", r.Unconfirmed, r.Accepted)
	}
}

func TestLossWindowAndRecoveryCountFromTheFault(t *testing.T) {
	h := faultless()
	for _, seq := range []int64{3, 7, 12} {
		h.drop(seq, Delivered, Effect, Acked)
	}
	r := h.account()
	if r.LossWindow != 0 || r.Recovery != nil {
		t.Errorf("without a fault: got window %v, recovery %v", r.LossWindow, r.Recovery)
	}
	h.add(Record{Event: FaultAsked, At: 9900}, 0)
	h.add(Record{Event: FaultConfirmed, At: 10_000}, 0)
	h.add(Record{Event: FaultHealed, At: 10_020}, 0)
	r = h.account()
	if want := time.Duration(10_000 - 3020); r.LossWindow != want {
		t.Errorf("loss window: got %v, want %v", r.LossWindow, want)
	}
	if r.Recovery == nil || *r.Recovery != 30 {
		t.Errorf("recovery: got %v, want 30ns", r.Recovery)
	}
	if got, want := fmt.Sprint(r.LostIDs), "[1-0-0-3 1-0-0-7 1-0-0-12]"; got != want {
		t.Errorf("lost: got %s, want %s", got, want)
	}
	h.FaultAt = 1000 * messages
	if r = h.account(); r.Recovery != nil {
		t.Errorf("no delivery after the fault: got recovery %v", *r.Recovery)
	}
}

func TestBroadcastDeliversOnceToEachSubscriberByDesign(t *testing.T) {
	h := faultless()
	h.Copies = 2
	for seq := range int64(messages) {
		h.add(Record{Event: Delivered, At: 1000*seq + 32, Process: 3, Arg: 1}, seq)
		h.Effects[name(seq)] = 2
	}
	r := h.account()
	if fs := r.Findings(); fs != nil {
		t.Errorf("got findings %q, want none", fs)
	}
	h.Records = slices.DeleteFunc(h.Records, func(r Record) bool { return r.Seq == 4 && r.Process == 3 })
	h.Effects[name(4)] = 1
	h.add(Record{Event: Delivered, At: 5033, Process: 3, Arg: 1}, 5) // the same subscriber again
	h.Effects[name(5)] = 3
	if r = h.account(); r.Missed != 1 || r.Redelivered != 1 || r.EffectDuplicates != 1 || r.Lost != 0 || r.AfterAck != 0 {
		t.Errorf("got missed %d, redelivered %d, effect duplicates %d, lost %d, after ack %d, want 1, 1, 1, 0, 0",
			r.Missed, r.Redelivered, r.EffectDuplicates, r.Lost, r.AfterAck)
	}
}

func TestOrderIsJudgedPerKeyAndOnlyBetweenPublishesThatDidNotOverlap(t *testing.T) {
	type m struct{ intent, ok, arrived, call int64 }
	for _, c := range []struct {
		name string
		ms   []m
		keys string
		want int64
	}{
		{"in order", []m{{0, 1, 10, 0}, {2, 3, 11, 0}, {4, 5, 12, 0}}, "aaa", 0},
		{"one straggler counts once however many overtook it", []m{{0, 1, 20, 0}, {2, 3, 11, 0}, {4, 5, 12, 0}}, "aaa", 1},
		{"one that jumped the queue makes all before it late", []m{{0, 1, 10, 0}, {2, 3, 11, 0}, {4, 5, 9, 0}}, "aaa", 2},
		{"other keys do not count", []m{{0, 1, 20, 0}, {2, 3, 11, 0}, {4, 5, 21, 0}}, "aba", 0},
		{"concurrent publishes have no order", []m{{0, 5, 20, 0}, {2, 3, 11, 0}}, "aa", 0},
		{"what arrived at once has no order", []m{{4, 5, 10, 0}, {0, 1, 10, 0}}, "aa", 0},
		{"messages of one call are in order", []m{{0, 5, 20, 1}, {0, 5, 19, 1}, {0, 5, 21, 1}}, "aaa", 1},
		{"concurrent calls have no order", []m{{0, 5, 20, 1}, {0, 5, 21, 1}, {1, 5, 10, 2}, {1, 5, 11, 2}}, "aaaa", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &history{}
			for i, x := range c.ms {
				h.add(Record{Event: Intent, At: x.intent, Arg: uint32(x.call)}, int64(i))
				h.add(Record{Event: Accepted, At: x.ok}, int64(i))
				h.add(Record{Event: Delivered, At: x.arrived}, int64(i))
			}
			h.KeyOf = func(id ID) string { return c.keys[id.Seq : id.Seq+1] }
			if r := h.account(); r.Reordered != c.want {
				t.Errorf("reordered: got %d, want %d", r.Reordered, c.want)
			}
		})
	}
	t.Run("subscribers of a broadcast each have their own order", func(t *testing.T) {
		h := &history{Input{Copies: 2}}
		for i := range int64(2) {
			h.add(Record{Event: Intent, At: 10 * i}, i)
			h.add(Record{Event: Accepted, At: 10*i + 1}, i)
		}
		h.add(Record{Event: Delivered, At: 30, Process: 1}, 1) // process 1 missed message 0
		h.add(Record{Event: Delivered, At: 40, Process: 2}, 0)
		h.add(Record{Event: Delivered, At: 41, Process: 2}, 1)
		if r := h.account(); r.Reordered != 0 {
			t.Errorf("reordered: got %d, want 0", r.Reordered)
		}
	})
}

func TestAnUnbalancedAccountIsAnError(t *testing.T) {
	sound := Counts{Sent: 10, Accepted: 7, Rejected: 1, Unknown: 2, Lost: 1, Stranded: 1, DeadLettered: 1, PolicyDropped: 1}
	if err := balance(sound, 3); err != nil {
		t.Errorf("got %v, want nil", err)
	}
	for i := range 8 {
		c := sound
		*[]*int64{&c.Sent, &c.Accepted, &c.Rejected, &c.Unknown, &c.Lost, &c.Stranded, &c.DeadLettered, &c.PolicyDropped}[i]++
		if balance(c, 3) == nil {
			t.Errorf("%+v with 3 effects: got nil, want an error", c)
		}
	}
	if balance(sound, 4) == nil {
		t.Error("one effect too many: got nil, want an error")
	}
}

func TestUnsettledIsWhatAProcessHadInHand(t *testing.T) {
	h := faultless()
	h.drop(7, Acked)
	h.drop(8, Acked)
	h.find(8, Delivered).Process = 3
	h.drop(9, Acked)
	h.add(Record{Event: Nacked, At: 9060, Process: 2}, 9)
	for _, c := range []struct {
		name      string
		at        int64
		processes []uint16
		want      string
	}{
		{"one process at the end", 1 << 40, []uint16{2}, "[1-0-0-7]"},
		{"all processes", 1 << 40, nil, "[1-0-0-7 1-0-0-8]"},
		{"before the nack", 9055, []uint16{2}, "[1-0-0-7 1-0-0-9]"},
		{"while the handler works", 2040, []uint16{2}, "[1-0-0-2]"},
		{"another process", 1 << 40, []uint16{4}, "[]"},
	} {
		if got := fmt.Sprint(Unsettled(h.Records, c.at, c.processes...)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
