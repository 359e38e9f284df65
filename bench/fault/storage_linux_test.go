package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"queuelab/backends"
	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
	"queuelab/bench/ledger"
	"queuelab/queue"
)

// diskStage is a stage whose producers publish a little, on a broker whose data
// can lose power.
type diskStage struct {
	*stage
	publisher queue.Publisher
	accepted  map[string]bool
}

// AcceptedIDs implements Scene.
func (s *diskStage) AcceptedIDs() (map[string]bool, error) { return s.accepted, nil }

func newDiskStage(t *testing.T, setting string) *diskStage {
	t.Helper()
	if err := broker.StorageAvailable(); err != nil {
		t.Skip(err)
	}
	brokertest.Need(t, "redis")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b, err := broker.Start(ctx, broker.Options{Kind: "redis", Setting: setting, Storage: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Stop() })
	s := &diskStage{stage: newStage(), accepted: map[string]bool{}}
	s.broker = b
	if s.watch, err = backends.Open(ctx, b.QueueURL("redis+list", "orders", "")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.watch.Close() })
	if s.publisher, err = s.watch.Publisher(ctx); err != nil {
		t.Fatal(err)
	}
	s.target.Caps = s.watch.Capabilities()
	s.started = func(r Role) {
		if r.Producer != nil {
			s.publish(t, 20)
		}
	}
	return s
}

func (s *diskStage) publish(t *testing.T, n int) {
	for range n {
		id := fmt.Sprint(len(s.accepted))
		if err := s.publisher.Publish(context.WithoutCancel(t.Context()), queue.Message{ID: id, Body: make([]byte, 100)}); err != nil {
			t.Error(err)
			return
		}
		s.accepted[id] = true
	}
}

func (s *diskStage) holds(t *testing.T) int64 {
	t.Helper()
	n, err := standing(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPowerLossTellsBothVerdictsOfOneInstant(t *testing.T) {
	t.Parallel()
	s := newDiskStage(t, "aof-no")
	var asked, confirmed int64
	s.asked, s.confirmed = func() { asked = ledger.Now() }, func() { confirmed = ledger.Now() }
	if err := PowerLoss().Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if len(s.invalid) > 0 {
		t.Fatal(s.invalid)
	}
	if got := s.holds(t); got != 0 {
		t.Errorf("got %d messages after the power loss of a broker that never syncs, want none", got)
	}
	if s.facts.CrashLost != 0 || s.facts.DirtyBytes == 0 || s.facts.Window < 1000 {
		t.Errorf("got %+v, want nothing lost by a mere kill, dirty bytes, and a window back to the settle", s.facts)
	}
	if s.struckAt < asked || s.struckAt >= confirmed {
		t.Errorf("got %d as the instant of the cut, want it between the question, %d, and the death of the last process, %d", s.struckAt, asked, confirmed)
	}
	if !strings.Contains(strings.Join(s.story, "|"), "asked|confirmed") || s.index("healed") < s.index("confirmed") {
		t.Errorf("got the story %q, want it asked for, confirmed and healed", s.story)
	}
}

func TestASlowSyncLosesWhatIsAnsweredMeanwhileOnly(t *testing.T) {
	t.Parallel()
	s := newDiskStage(t, "aof-everysec")
	if err := SlowFsync().Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got := s.holds(t); len(s.invalid) > 0 || got != int64(len(s.accepted)) { // nothing was published in a sync here
		t.Errorf("got %d messages, %v, want all %d", got, s.invalid, len(s.accepted))
	}
	// Nothing is slow any more.
	before, err := s.broker.SyncStats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.publish(t, 1)
	if err := until(t.Context(), 10*time.Second, time.Millisecond, "a sync", func() (bool, error) {
		now, err := s.broker.SyncStats(t.Context())
		return now.Syncs > before.Syncs && now.Syncing == 0, err
	}); err != nil {
		t.Error(err)
	}
}

func TestAFullDiskThatIsInterruptedIsEmptied(t *testing.T) {
	t.Parallel()
	s := newDiskStage(t, "aof-everysec")
	ctx, cancel := context.WithCancel(t.Context())
	s.asked = cancel
	if err := DiskFull().Run(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want it canceled", err)
	}
	s.publish(t, 50) // more than a full disk takes
}

func TestAFaultOfTheDiskMeansNothingWhereNothingIsStored(t *testing.T) {
	for _, f := range []Fault{PowerLoss(), SlowFsync(), DiskFull()} {
		if why := f.Means(Target{}); why == "" {
			t.Errorf("%s: got no reason for a queue without a broker", f.Name)
		}
		if why := f.Means(Target{Broker: "redis"}); why == "" {
			t.Errorf("%s: got no reason for a queue that stores nothing", f.Name)
		}
		if why := f.Means(Target{Broker: "redis", Caps: queue.Capabilities{Stored: true}}); why != "" {
			t.Errorf("%s: got %q for a queue that stores", f.Name, why)
		}
		if !f.Storage || !f.OwnBroker || f.Missing == nil {
			t.Errorf("%s: it does not say what it needs", f.Name)
		}
	}
}

func TestAPowerLossThatIsInterruptedLeavesABrokerThatRuns(t *testing.T) {
	t.Parallel()
	s := newDiskStage(t, "aof-always")
	ctx, cancel := context.WithCancel(t.Context())
	s.confirmed = cancel
	if err := PowerLoss().Run(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want it canceled", err)
	}
	if got := s.holds(t); got != int64(len(s.accepted)) {
		t.Errorf("got %d messages, want all %d", got, len(s.accepted))
	}
}
