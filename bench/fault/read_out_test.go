package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"queuelab/queue"
)

// lateQueue is a queue whose broker was just restarted: until its log is replayed
// it holds a part of what it has, says so, and takes nothing.
type lateQueue struct {
	queue.Queue // nil: nothing else is asked
	replayed    time.Time
	early, late []string // ids
	taken       []string // and not delivered
}

func (q *lateQueue) Publisher(context.Context) (queue.Publisher, error) { return lateEnd{q}, nil }
func (q *lateQueue) Consumer(context.Context) (queue.Consumer, error)   { return lateEnd{q}, nil }

func (q *lateQueue) Backlog(context.Context) (queue.Backlog, error) {
	return queue.Backlog{Ready: int64(len(q.there())), InFlight: -1, Dead: -1}, nil
}

func (q *lateQueue) there() []string {
	if time.Now().Before(q.replayed) {
		return q.early
	}
	return append(append(append([]string{}, q.early...), q.late...), q.taken...)
}

type lateEnd struct{ q *lateQueue }

func (e lateEnd) Publish(_ context.Context, msgs ...queue.Message) error {
	if time.Now().Before(e.q.replayed) {
		return errors.New("no leader")
	}
	for _, m := range msgs {
		e.q.taken = append(e.q.taken, m.ID)
	}
	return nil
}

func (e lateEnd) Receive(ctx context.Context, _ int) ([]*queue.Delivery, error) {
	ids := e.q.there()
	if len(ids) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	e.q.early = nil
	if !time.Now().Before(e.q.replayed) {
		e.q.late, e.q.taken = nil, nil
	}
	var ds []*queue.Delivery
	for _, id := range ids {
		ds = append(ds, queue.NewDelivery(queue.Message{ID: id}, 0, nil))
	}
	return ds, nil
}

func (e lateEnd) Ack(context.Context, ...*queue.Delivery) error  { return nil }
func (e lateEnd) Nack(context.Context, ...*queue.Delivery) error { return nil }
func (e lateEnd) Close() error                                   { return nil }

func TestAQueueThatTellsLateHasLostNothing(t *testing.T) {
	names := func(n int) (ids []string) {
		for i := range n {
			ids = append(ids, fmt.Sprint(i))
		}
		return ids
	}
	all := names(20)
	for _, c := range []struct {
		name        string
		early, late []string
		replay      time.Duration
		lost        int64
		unknown     string // what the note says; "": it is known
	}{
		{"all is there at once", all, nil, 0, 0, ""},
		{"all comes late, and it says 0 until then", nil, all, 10 * time.Second, 0, ""},
		{"a part comes late, and it says less until then", all[:17], all[17:], 10 * time.Second, 0, ""},
		{"what is gone is lost", all[:5], all[8:], 10 * time.Second, 3, ""},
		{"what had no answer makes up for nothing", all[:18], []string{"unanswered", "another"}, 0, 2, ""},
		{"it never takes anything again", all[:17], all[17:], time.Hour, 0, "17 of 20 messages were read within 1m0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				accepted := map[string]bool{}
				for _, id := range all {
					accepted[id] = true
				}
				s := newStage()
				s.watch = &lateQueue{replayed: time.Now().Add(c.replay), early: c.early, late: c.late}
				if err := killLoss(t.Context(), s, accepted); err != nil {
					t.Fatal(err)
				}
				unknown := s.facts.CrashUnknown == 1
				if s.facts.CrashLost != c.lost || unknown != (c.unknown != "") || !strings.Contains(fmt.Sprint(s.notes), c.unknown) {
					t.Errorf("got %d lost, unknown %v, %q; want %d, %q", s.facts.CrashLost, unknown, s.notes, c.lost, c.unknown)
				}
			})
		})
	}
}

func TestWhatAQueueDropsByItsOwnWillIsNoLossOfAKill(t *testing.T) {
	s := newStage()
	s.target.Caps.DropsOldest = true
	if err := killLoss(t.Context(), s, map[string]bool{"dropped": true}); err != nil {
		t.Fatal(err)
	}
	if s.facts.CrashLost != 0 || s.facts.CrashUnknown != 1 || len(s.notes) != 1 {
		t.Errorf("got %+v and %q, want it not known, and why", s.facts, s.notes)
	}
}
