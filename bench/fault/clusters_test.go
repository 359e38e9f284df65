package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/backends"
	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
	"queuelab/bench/choose/claims"
	"queuelab/queue"
)

// live is a Scene with a real cluster, whose producers and consumers are
// goroutines: it knows what was accepted and what came.
type live struct {
	*stage
	t    *testing.T
	base string // the URL of its queue

	mu       sync.Mutex
	outcomes [3]int
	accepted map[string]time.Time
	came     map[string]int
	errors   map[string]int
	struck   time.Time
	last     time.Time // that something came
	nodes    []*liveNode
}

// clusterSetting is a queue on a cluster.
type clusterSetting struct {
	name, kind, conf, scheme, query string
}

func clusterSettings() map[string]clusterSetting {
	all := map[string]clusterSetting{}
	for _, s := range []clusterSetting{
		{"kafka-3/acks-1", "kafka-3", "", "kafka", "partitions=1&replication=3&min-insync=2&acks=1"},
		{"kafka-3/acks-all", "kafka-3", "", "kafka", "partitions=1&replication=3&min-insync=2&acks=all"},
		{"rabbitmq-3/quorum", "rabbitmq-3", "", "amqp", "type=quorum&members=3"},
		{"redis-sentinel/list", "redis-sentinel", "", "redis+list", ""},
		{"redis-sentinel/list-min-replicas", "redis-sentinel", "replicated", "redis+list", ""},
		{"redis-sentinel/list-wait", "redis-sentinel", "", "redis+list", "wait=1"},
	} {
		all[s.name] = s
	}
	return all
}

func startCluster(t *testing.T, s clusterSetting, network bool) *broker.Broker {
	t.Helper()
	brokertest.Need(t, s.kind)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	b, err := broker.Start(ctx, broker.Options{Kind: s.kind, Setting: s.conf, Network: network})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func newLive(t *testing.T, b *broker.Broker, s clusterSetting, moment float64) *live {
	t.Helper()
	l := &live{stage: newStage(), t: t, accepted: map[string]time.Time{}, came: map[string]int{}, errors: map[string]int{}}
	l.broker, l.moment = b, moment
	l.base = b.QueueURL(s.scheme, strings.ReplaceAll(strings.ReplaceAll(t.Name(), "/", "_"), "=", "_"), s.query)
	l.target = Target{Backend: s.kind, Setting: s.name, Broker: s.kind, Scheme: s.scheme, Messages: 400, Rate: 1000}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	q, err := backends.Open(ctx, l.base)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	l.target.Caps = q.Capabilities()
	kept, err := claims.All()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(kept[s.name], l.target.Caps); diff != "" {
		t.Errorf("%s: what is kept is not what the open queue says (-kept +open)\n%s", s.name, diff)
	}
	return l
}

func (l *live) QueueURL(addr string, extra ...string) string {
	raw := l.base
	if addr != "" {
		scheme, rest, _ := strings.Cut(raw, "://")
		_, path, _ := strings.Cut(rest, "/")
		raw = scheme + "://" + addr + "/" + path
	}
	for _, e := range extra {
		raw += "&" + e
	}
	return raw
}

func (l *live) Confirmed() { l.struck = time.Now(); l.stage.Confirmed() }

func (l *live) Start(ctx context.Context, r Role) (Node, error) {
	raw := r.QueueURL
	if raw == "" {
		raw = l.base
	}
	q, err := backends.Open(ctx, raw)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	n := &liveNode{l: l, role: r, queue: q, name: fmt.Sprintf("p%d", len(l.nodes)), produced: make(chan struct{})}
	n.life, n.end = context.WithCancel(context.Background())
	l.nodes = append(l.nodes, n)
	l.mu.Unlock()
	l.t.Cleanup(func() { n.Stop(context.Background()) })
	if r.Producer != nil {
		if n.publisher, err = q.Publisher(ctx); err != nil {
			return nil, err
		}
	}
	if r.Consumer != nil {
		c, err := q.Consumer(ctx)
		if err != nil {
			return nil, err
		}
		n.work.Go(func() { n.consume(c) })
	}
	return n, nil
}

func (l *live) Probe(ctx context.Context) (Node, error) {
	n, err := l.Start(ctx, Role{Producer: &Producer{Count: 20, Rate: 500}})
	if err != nil {
		return nil, err
	}
	return n, n.Produce()
}

// Finish returns once nothing has come for a while.
func (l *live) Finish(ctx context.Context, producers ...Node) error {
	for _, p := range producers {
		if err := p.Produced(ctx); err != nil {
			return err
		}
	}
	quiet := time.NewTicker(100 * time.Millisecond)
	defer quiet.Stop()
	for began := time.Now(); ; {
		l.mu.Lock()
		missing, idle := 0, time.Since(l.last)
		for id := range l.accepted {
			if l.came[id] == 0 {
				missing++
			}
		}
		l.mu.Unlock()
		if missing == 0 || idle > 4*time.Second && time.Since(began) > 6*time.Second {
			return nil
		}
		select {
		case <-quiet.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lost are the accepted messages that did not come, and recent those accepted
// within the window before the fault.
func (l *live) lost() (lost, recent int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var oldest, latest time.Duration
	defer func() {
		l.t.Logf("lost were those accepted from %v before the fault to %v after it", oldest, latest)
	}()
	window := time.Duration(l.facts.Window) * time.Millisecond
	for id, at := range l.accepted {
		if l.came[id] == 0 {
			lost++
			oldest, latest = max(oldest, l.struck.Sub(at)), max(latest, at.Sub(l.struck))
		}
		if at.Before(l.struck) && at.After(l.struck.Add(-window)) {
			recent++
		}
	}
	return lost, recent
}

type liveNode struct {
	l         *live
	role      Role
	name      string
	queue     queue.Queue
	publisher queue.Publisher
	life      context.Context
	end       context.CancelFunc
	work      sync.WaitGroup
	produced  chan struct{}
}

func (n *liveNode) Produce() error {
	n.work.Go(func() {
		defer close(n.produced)
		var calls sync.WaitGroup
		defer calls.Wait()
		p := n.role.Producer
		pace := time.NewTicker(time.Duration(float64(time.Second) / p.Rate))
		defer pace.Stop()
		for i := range p.Count {
			select {
			case <-pace.C:
			case <-n.life.Done():
				return
			}
			calls.Go(func() { n.publish(fmt.Sprintf("%s-%d", n.name, i), p.Payload) })
		}
	})
	return nil
}

func (n *liveNode) publish(id string, size int) {
	ctx, cancel := context.WithTimeout(n.life, 20*time.Second)
	defer cancel()
	err := n.publisher.Publish(ctx, queue.Message{ID: id, Body: make([]byte, size)})
	n.l.mu.Lock()
	defer n.l.mu.Unlock()
	n.l.outcomes[queue.OutcomeOf(err, 0)]++
	if err == nil {
		n.l.accepted[id] = time.Now()
		return
	}
	n.l.errors[err.Error()]++
}

func (n *liveNode) consume(c queue.Consumer) {
	defer c.Close()
	for n.life.Err() == nil {
		ds, err := c.Receive(n.life, 100)
		if errors.Is(err, queue.ErrClosed) {
			return
		}
		n.l.mu.Lock()
		for _, d := range ds {
			n.l.came[d.ID]++
		}
		n.l.last = time.Now()
		n.l.mu.Unlock()
		_ = c.Ack(context.WithoutCancel(n.life), ds...) // what it does not settle comes again
	}
}

func (n *liveNode) Produced(ctx context.Context) error {
	select {
	case <-n.produced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (n *liveNode) Struck(context.Context) error { return errors.ErrUnsupported }
func (n *liveNode) Signal(os.Signal) error       { return errors.ErrUnsupported }
func (n *liveNode) Stop(context.Context) error {
	n.end()
	n.work.Wait()
	return n.queue.Close()
}

// strike plays a fault on a setting, and says what came of it.
func strikeCluster(t *testing.T, b *broker.Broker, s clusterSetting, f Fault, moment float64) (*live, int, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	l := newLive(t, b, s, moment)
	if why := f.Means(l.target); why != "" {
		t.Fatalf("%s on %s: %s", f.Name, s.name, why)
	}
	if err := f.Run(ctx, l); err != nil {
		t.Fatalf("%s on %s: %v", f.Name, s.name, err)
	}
	lost, recent := l.lost()
	t.Logf("%s on %s: %d accepted, %d rejected, %d unknown; %d lost of %d in the window; %v; %v", f.Name, s.name,
		l.outcomes[queue.Accepted], l.outcomes[queue.Rejected], l.outcomes[queue.Unknown], lost, recent, l.notes, l.invalid)
	for err, n := range l.errors {
		t.Logf("%d times: %s", n, err)
	}
	return l, lost, recent
}

func TestWhatReplicasConfirmedSurvivesTheLeader(t *testing.T) {
	for _, name := range []string{"kafka-3/acks-all", "rabbitmq-3/quorum", "redis-sentinel/list-wait"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clusterSettings()[name]
			l, lost, _ := strikeCluster(t, startCluster(t, s, false), s, LeaderKill(), 0)
			if lost != 0 {
				t.Errorf("got %d accepted messages lost, want none", lost)
			}
			if len(l.accepted) < 20+clusterRate/2 {
				t.Errorf("got %d accepted, want those before the kill and those after the heal", len(l.accepted))
			}
			// A channel that the outage has spoiled would nack until its broker is back.
			if name == "rabbitmq-3/quorum" && len(l.accepted) < clusterRate*clusterSeconds/2 {
				t.Errorf("got %d accepted, want the survivors to take most of the load", len(l.accepted))
			}
			if !l.target.Caps.Durable || l.target.Caps.Confirm != queue.ConfirmReplicas {
				t.Errorf("got %+v, want it durable and confirmed by replicas", l.target.Caps)
			}
		})
	}
}

// TestWhatEachSettingLosesOnACluster takes minutes, and is run by hand: it is
// where the oracle's rows of clusters come from.
func TestWhatEachSettingLosesOnACluster(t *testing.T) {
	if os.Getenv("QUEUELAB_SOAK") == "" {
		t.Skip("set QUEUELAB_SOAK=1: it takes a quarter of an hour")
	}
	const loses, keeps = true, false
	for _, c := range []struct {
		setting string
		fault   Fault
		loses   bool
	}{
		{"redis-sentinel/list", LeaderKill(), loses},
		{"redis-sentinel/list-min-replicas", LeaderKill(), loses},
		{"redis-sentinel/list-wait", LeaderKill(), keeps},
		{"redis-sentinel/list-wait", FollowerKill(), keeps},
		{"kafka-3/acks-1", LeaderKill(), loses},
		{"kafka-3/acks-all", LeaderKill(), keeps},
		{"kafka-3/acks-all", FollowerKill(), keeps},
		{"kafka-3/acks-all", MajorityLoss(), keeps},
		{"kafka-3/acks-1", LeaderPartition(), loses},
		{"kafka-3/acks-all", LeaderPartition(), keeps},
		{"rabbitmq-3/quorum", LeaderPartition(), keeps},
		{"rabbitmq-3/quorum", LeaderKill(), keeps},
		{"rabbitmq-3/quorum", FollowerKill(), keeps},
		{"rabbitmq-3/quorum", MajorityLoss(), keeps},
	} {
		t.Run(c.setting+"/"+c.fault.Name, func(t *testing.T) {
			s := clusterSettings()[c.setting]
			if c.fault.Missing != nil {
				if why := c.fault.Missing(); why != "" {
					t.Skip(why)
				}
			}
			b := startCluster(t, s, c.fault.Network)
			for i := range 3 {
				t.Run(fmt.Sprint("trial ", i+1), func(t *testing.T) {
					l, lost, recent := strikeCluster(t, b, s, c.fault, float64(i)/3)
					if (lost > 0) != c.loses || lost > recent && c.loses {
						t.Errorf("got %d lost of %d in the window, want loss: %v", lost, recent, c.loses)
					}
					if c.setting == "rabbitmq-3/quorum" && c.fault.Name == "majority-loss" && !strings.Contains(fmt.Sprint(l.notes), "no answer") {
						t.Errorf("got %q, want no answer without a majority", l.notes)
					}
				})
			}
		})
	}
}
