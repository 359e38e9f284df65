package node

import (
	"context"
	"testing"
	"time"

	"queuelab/bench/host/meter"
	"queuelab/bench/ledger"
	"queuelab/queue"
)

// sleepyQueue takes its time for each Publish.
type sleepyQueue struct {
	queue.Queue
	service time.Duration
}

func (q sleepyQueue) Publisher(ctx context.Context) (queue.Publisher, error) {
	p, err := q.Queue.Publisher(ctx)
	return sleepyPublisher{p, q.service}, err
}

type sleepyPublisher struct {
	queue.Publisher
	service time.Duration
}

func (p sleepyPublisher) Publish(ctx context.Context, msgs ...queue.Message) error {
	time.Sleep(p.service)
	return p.Publisher.Publish(ctx, msgs...)
}

// A slowed queue is what comparisons are tried with: it must not be slower than
// it says, nor show itself by the work of being slow.
func TestASlowedQueueTakesTheShareLonger(t *testing.T) {
	const service, n = 2 * time.Millisecond, 30
	q := slowed(sleepyQueue{openFake(Fake{}), service}, 0.5, false)
	p, err := q.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := q.Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var published, aged []float64
	for seq := range uint64(n) {
		id := ledger.FormatID(ledger.ID{Trial: 1, Producer: 1, Seq: seq})
		began := time.Now()
		if err := p.Publish(t.Context(), queue.Message{ID: id}); err != nil {
			t.Fatal(err)
		}
		published = append(published, time.Since(began).Seconds())
		if _, err := c.Receive(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		aged = append(aged, time.Since(began).Seconds())
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	// At least, since a busy machine makes everything later.
	for i := range published {
		if published[i] < 1.5*service.Seconds() || aged[i] < 1.5*service.Seconds() {
			t.Fatalf("message %d: published in %v s and delivered after %v s, want at least half as much again each, of %v", i, published[i], aged[i], service)
		}
	}
}

// A consumer that is behind must not fall further behind for what was added to
// each message before: 20 % is not a jam.
func TestASlowedQueueDoesNotAddToWhatItAdded(t *testing.T) {
	const n, ago = 40, 100 * time.Millisecond
	q := slowed(openFake(Fake{}), 0.2, false).(slowQueue)
	p, err := q.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for seq := range uint64(n) {
		id := ledger.FormatID(ledger.ID{Trial: 1, Producer: 1, Seq: seq})
		if err := p.Publish(t.Context(), queue.Message{ID: id}); err != nil {
			t.Fatal(err)
		}
		q.sent.Store(id, ledger.Now()-int64(ago))
	}
	c, err := q.Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	began := time.Now()
	for got := 0; got < n; {
		ds, err := c.Receive(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		got += len(ds)
	}
	// One after the other they would take 40 times 20 ms, and ever more.
	if took := time.Since(began); took > n*ago/10 {
		t.Errorf("a backlog of %d messages, %v old, took %v: each waited for what the others had added", n, ago, took)
	}
}

func TestASlowedClosedLoopStandsStillForItsShareOfTheTime(t *testing.T) {
	// A machine that is busy elsewhere takes from the share, and never adds to it.
	share := 0.0
	for try := 0; try < 5 && share < 0.15; try++ {
		share = max(share, standingShare(t))
	}
	if share < 0.15 { // 0.25 of 1.25, less what the sleeps overlap
		t.Errorf("stood still for %.2f of the time, want about 0.2", share)
	}
}

// standingShare is the share of a third of a second that a closed loop stands still.
func standingShare(t *testing.T) float64 {
	t.Helper()
	q := slowed(openFake(Fake{}), 0.25, true).(slowQueue)
	before, began := meter.Self().CPU, ledger.Now()
	moved := int64(0)
	for ledger.Now()-began < int64(300*time.Millisecond) {
		at := ledger.Now()
		if err := q.stand(context.Background()); err != nil {
			t.Fatal(err)
		}
		moved += ledger.Now() - at
		time.Sleep(time.Millisecond)
	}
	if cpu := meter.Self().CPU - before; cpu > 200*time.Millisecond {
		t.Errorf("standing still took %v of CPU", cpu)
	}
	return float64(moved) / float64(ledger.Now()-began)
}
