package fault

import (
	"context"
	"os"
	"testing"
	"time"

	"queuelab/backends"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

// filled is a Scene on one real broker, which can look into its queue.
type filled struct{ *wire }

func (f filled) Accepted() (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(len(f.accepted)), nil
}

func (f filled) Freeze(ctx context.Context) (int64, error) { return standing(ctx, f) }

// fill plays a fault on a broker that nobody else uses meanwhile.
func fill(t *testing.T, s clusterSetting, f Fault) (w filled, lost int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	w = filled{&wire{newLive(t, brokertest.Start(t, s.kind, s.conf), s, 0)}}
	q, err := backends.Open(ctx, w.base)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	w.watch = q
	if why := f.Means(w.target); why != "" {
		t.Fatalf("%s on %s: %s", f.Name, s.name, why)
	}
	if err := f.Run(ctx, w); err != nil {
		t.Fatalf("%s on %s: %v", f.Name, s.name, err)
	}
	if len(w.invalid) > 0 || w.index("asked") < 0 || w.index("asked") > w.index("confirmed") || w.index("confirmed") > w.index("healed") {
		t.Errorf("%s on %s: got %v and invalid %v, want it asked, confirmed and healed", f.Name, s.name, w.story, w.invalid)
	}
	n, _ := w.lost()
	t.Logf("%s on %s: outcomes %v, %d lost, %+v, %v", f.Name, s.name, w.outcomes, n, w.facts, w.notes)
	return w, int64(n)
}

// Each has a broker of its own, so that they share nothing but the machine.
func TestALimitThatIsReachedTakesWhatItMust(t *testing.T) {
	t.Run("a list in memory dies with its Redis", func(t *testing.T) {
		t.Parallel()
		w, lost := fill(t, clusterSetting{"redis-list/no-persistence", "redis", "no-persistence", "redis+list", ""}, OutOfMemory())
		if lost != w.facts.Backlog || lost < 400 {
			t.Errorf("got %d lost of %d accepted, want all, and more than waited before", lost, w.facts.Backlog)
		}
	})
	t.Run("a list that is synced outlives its Redis", func(t *testing.T) {
		t.Parallel()
		w, lost := fill(t, clusterSetting{"redis-list/aof-always", "redis", "aof-always", "redis+list", ""}, OutOfMemory())
		if lost != 0 || w.facts.Backlog < 400 {
			t.Errorf("got %d lost of %d accepted, want none", lost, w.facts.Backlog)
		}
	})
	t.Run("RabbitMQ above its watermark holds publishers and forgets nothing", func(t *testing.T) {
		t.Parallel()
		w, lost := fill(t, classic, MemoryWatermark())
		if lost != 0 {
			t.Errorf("got %d lost, want none", lost)
		}
		// What was in the socket is taken later, what was held back is not.
		if w.outcomes[queue.Accepted] > 320 || len(w.came)-len(w.accepted) != w.outcomes[queue.Unknown] {
			t.Errorf("got outcomes %v and %d messages, %d of them accepted; want 200 before, 20 after, and the unknown to come",
				w.outcomes, len(w.came), len(w.accepted))
		}
	})
	t.Run("a Kafka topic drops what lies before its beginning", func(t *testing.T) {
		if os.Getenv("QUEUELAB_SOAK") == "" {
			t.Skip("set QUEUELAB_SOAK=1: it starts a Kafka of its own")
		}
		t.Parallel()
		w, lost := fill(t, clusterSetting{"kafka/retention", "kafka", "retention", "kafka", "partitions=1&session=1500ms"}, QueueLimit())
		if lost != w.facts.Over || lost == 0 {
			t.Errorf("got %d lost, want the %d before the beginning of the log", lost, w.facts.Over)
		}
	})
}
