package fault

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"queuelab/queue"
)

// shutStage is a stage on which no consumer starts before the queue lets it in.
type shutStage struct {
	*stage
	broken error // whatever the queue says
}

func (s *shutStage) Start(ctx context.Context, r Role) (Node, error) {
	if s.broken != nil {
		return nil, s.broken
	}
	c, err := s.watch.Consumer(ctx)
	if err != nil {
		return nil, err
	}
	_ = c.Close()
	return s.stage.Start(ctx, r)
}

func (s *shutStage) Accepted() (int64, error) { return 17, nil }

// shutQueue lets nobody in for a while, and counts 0.
type shutQueue struct {
	lateQueue
	opens time.Time
}

func (q *shutQueue) Consumer(ctx context.Context) (queue.Consumer, error) {
	if time.Now().Before(q.opens) {
		return nil, errors.New("541 INTERNAL_ERROR")
	}
	return q.lateQueue.Consumer(ctx)
}

func TestAQueueThatLetsNoConsumerInIsWaitedForAndThenToldAsGone(t *testing.T) {
	lab := errors.New("no such database")
	for _, c := range []struct {
		name     string
		shut     time.Duration
		broken   error
		unusable int64
		story    string
	}{
		{"one that lets it in at once is read", 0, nil, 0, "start consumer|healed|probe|finish 1"},
		{"one that is late is read", 5 * time.Second, nil, 0, "start consumer|healed|probe|finish 1"},
		{"one that never does has lost what it had", time.Hour, nil, 17, "healed|finish 0"},
		{"a process that fails beside a good queue is the lab's trouble", 0, lab, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shutStage{stage: newStage(), broken: c.broken}
				s.watch = &shutQueue{opens: time.Now().Add(c.shut)}
				if err := queueReadBack(t.Context(), s); !errors.Is(err, c.broken) {
					t.Fatalf("got %v, want %v", err, c.broken)
				}
				if got := strings.Join(s.story, "|"); got != c.story || s.facts.Unusable != c.unusable || len(s.invalid) > 0 {
					t.Errorf("got %q, %d unusable, invalid: %q; want %q, %d", got, s.facts.Unusable, s.invalid, c.story, c.unusable)
				}
				told := slices.ContainsFunc(s.notes, func(n string) bool { return strings.Contains(n, "541") })
				if told != (c.unusable > 0) {
					t.Errorf("got the notes %q, want it told why the queue is gone, and only then", s.notes)
				}
			})
		})
	}
}
