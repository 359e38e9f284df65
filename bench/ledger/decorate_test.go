package ledger

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"queuelab/queue"
)

// fakePublisher answers with err, after looking at what the ledger has by then.
type fakePublisher struct {
	err   error
	check func()
}

func (p fakePublisher) Publish(context.Context, ...queue.Message) error { p.check(); return p.err }
func (p fakePublisher) Close() error                                    { return nil }

type fakeCounter struct {
	fakePublisher
	receivers []int64
}

func (p fakeCounter) PublishCounted(context.Context, ...queue.Message) ([]int64, error) {
	p.check()
	return p.receivers, p.err
}

type fakeConsumer struct {
	deliveries []*queue.Delivery
	err        error
	check      func()
}

func (c fakeConsumer) Receive(context.Context, int) ([]*queue.Delivery, error) {
	return c.deliveries, c.err
}
func (c fakeConsumer) Ack(context.Context, ...*queue.Delivery) error  { c.check(); return c.err }
func (c fakeConsumer) Nack(context.Context, ...*queue.Delivery) error { c.check(); return c.err }
func (c fakeConsumer) Close() error                                   { return nil }

// recorded runs do with a new ledger and returns what is in it.
func recorded(t *testing.T, do func(w *Writer, soFar func() []Record)) []Record {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a")
	w := must(Create(path, 5))(t)
	do(w, func() []Record { return must(Read(path))(t) })
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return must(Read(path))(t)
}

var ignoreTimes = cmpopts.IgnoreFields(Record{}, "At", "Due")

func rec(e Event, seq uint64, arg uint32) Record {
	return Record{Event: e, Process: 5, Trial: 1, Seq: seq, Arg: arg}
}

func TestAPublishIsIntentThenOutcome(t *testing.T) {
	msgs := []queue.Message{{ID: "1-0-0-0"}, {ID: "1-0-0-1"}, {ID: "1-0-0-2"}}
	broken := errors.New("reset")
	mixed := &queue.PublishError{Outcomes: []queue.Outcome{queue.Accepted, queue.Rejected, queue.Unknown}, Err: broken}
	for _, c := range []struct {
		name string
		err  error
		want [3]Event
	}{
		{"nil accepts all", nil, [3]Event{Accepted, Accepted, Accepted}},
		{"outcomes differ per message", mixed, [3]Event{Accepted, Rejected, Unknown}},
		{"a bare error leaves all unknown", broken, [3]Event{Unknown, Unknown, Unknown}},
		{"a rejection rejects all", queue.Reject(broken), [3]Event{Rejected, Rejected, Rejected}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := recorded(t, func(w *Writer, soFar func() []Record) {
				p := RecordPublisher(fakePublisher{c.err, func() {
					want := []Record{rec(Intent, 0, 1), rec(Intent, 1, 1), rec(Intent, 2, 1)}
					if diff := cmp.Diff(want, soFar(), ignoreTimes); diff != "" {
						t.Errorf("at the send (-want +got):\n%s", diff)
					}
				}}, w)
				if _, ok := p.(queue.ReceiverCounter); ok {
					t.Error("got a ReceiverCounter, want none where the publisher is none")
				}
				ctx := WithDue(t.Context(), func(i int) int64 { return int64(100 + i) })
				if err := p.Publish(ctx, msgs...); err != c.err {
					t.Errorf("got error %v, want the publisher's own", err)
				}
			})
			for i := range 3 {
				if got[i].Due != int64(100+i) || got[i].At == 0 || got[3+i].At < got[i].At {
					t.Errorf("message %d: got %+v and %+v", i, got[i], got[3+i])
				}
			}
			want := []Record{rec(c.want[0], 0, 0), rec(c.want[1], 1, 0), rec(c.want[2], 2, 0)}
			if diff := cmp.Diff(want, got[3:], ignoreTimes); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithoutADueTimeAMessageIsDueWhenSent(t *testing.T) {
	got := recorded(t, func(w *Writer, _ func() []Record) {
		RecordPublisher(fakePublisher{nil, func() {}}, w).Publish(t.Context(), queue.Message{ID: "1-0-0-0"})
	})
	if got[0].Due != got[0].At || got[0].Arg != 0 {
		t.Errorf("got %+v, want due = at and no call number for a single message", got[0])
	}
}

func TestReceiversAreRecordedWhereTheQueueTellsThem(t *testing.T) {
	msgs := []queue.Message{{ID: "1-0-0-0"}, {ID: "1-0-0-1"}}
	inner := fakeCounter{fakePublisher{nil, func() {}}, []int64{0, 3}}
	for _, counted := range []bool{true, false} {
		got := recorded(t, func(w *Writer, _ func() []Record) {
			p := RecordPublisher(inner, w)
			if !counted {
				p.Publish(t.Context(), msgs...)
				return
			}
			receivers, err := p.(queue.ReceiverCounter).PublishCounted(t.Context(), msgs...)
			if diff := cmp.Diff(inner.receivers, receivers); diff != "" || err != nil {
				t.Errorf("receivers (-want +got):\n%s, error %v", diff, err)
			}
		})
		if diff := cmp.Diff([]Record{rec(Accepted, 0, 1), rec(Accepted, 1, 4)}, got[2:], ignoreTimes); diff != "" {
			t.Errorf("PublishCounted=%v (-want +got):\n%s", counted, diff)
		}
	}
}

func TestADeliveryIsRecordedBeforeAnyoneSeesItAndAnAckOnceItIsTaken(t *testing.T) {
	ds := []*queue.Delivery{
		queue.NewDelivery(queue.Message{ID: "1-0-0-0"}, 0, nil),
		queue.NewDelivery(queue.Message{ID: "1-0-0-1"}, 2, nil),
	}
	withAttempt := func(r Record) Record { r.Attempt = 2; return r }
	delivered := []Record{rec(Delivered, 0, 1), withAttempt(rec(Delivered, 1, 1))}
	lost := &queue.SettleError{Errs: []error{queue.ErrLeaseLost, nil}}
	for _, c := range []struct {
		name string
		err  error
		want []Record
	}{
		{"both settled", nil, []Record{rec(Acked, 0, 1), withAttempt(rec(Acked, 1, 1))}},
		{"one lost its lease", lost, []Record{withAttempt(rec(Acked, 1, 1))}},
		{"the ack failed", errors.New("reset"), nil},
	} {
		for _, event := range []Event{Acked, Nacked} {
			t.Run(c.name+", "+event.String(), func(t *testing.T) {
				got := recorded(t, func(w *Writer, soFar func() []Record) {
					inner := fakeConsumer{deliveries: ds}
					seen, err := RecordConsumer(inner, w).Receive(t.Context(), 9)
					if err != nil || len(seen) != 2 {
						t.Fatalf("Receive: got %d, %v", len(seen), err)
					}
					check := func() {
						if diff := cmp.Diff(delivered, soFar(), ignoreTimes); diff != "" {
							t.Errorf("at the ack (-want +got):\n%s", diff)
						}
					}
					// A consumer of its own would get number 2.
					consumer := recordingConsumer{fakeConsumer{err: c.err, check: check}, w, 1}
					settle := consumer.Ack
					if event == Nacked {
						settle = consumer.Nack
					}
					if err := settle(t.Context(), ds...); err != c.err {
						t.Errorf("got error %v, want the consumer's own", err)
					}
				})
				want := append([]Record(nil), delivered...)
				for _, r := range c.want {
					r.Event = event
					want = append(want, r)
				}
				if diff := cmp.Diff(want, got, ignoreTimes); diff != "" {
					t.Errorf("records (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestConsumersOfOneProcessAreToldApart(t *testing.T) {
	d := []*queue.Delivery{queue.NewDelivery(queue.Message{ID: "not ours"}, 0, nil)}
	got := recorded(t, func(w *Writer, _ func() []Record) {
		for range 2 {
			RecordConsumer(fakeConsumer{deliveries: d}, w).Receive(t.Context(), 1)
		}
		RecordEffect(w, d[0])
	})
	if len(got) != 3 || got[0].Arg != 1 || got[1].Arg != 2 || got[2].Event != Effect {
		t.Errorf("got %+v, want deliveries to consumers 1 and 2 and an effect", got)
	}
	if r := Account(Input{Records: got}); r.Phantom != 1 {
		t.Errorf("a foreign id: got %d phantoms, want 1", r.Phantom)
	}
}
