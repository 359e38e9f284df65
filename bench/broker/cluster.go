package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Clusters lists the kinds that are several nodes on this machine: three Kafka
// brokers, three RabbitMQ nodes, and a Redis master with a replica and three
// Sentinels. They are no Kinds: nobody gets one unasked, and they run natively
// only.
func Clusters() []string {
	var names []string
	for _, k := range clusterKinds() {
		names = append(names, k.name)
	}
	return names
}

func clusterKinds() []kind {
	return []kind{kafkaClusterKind(), rabbitClusterKind(), redisClusterKind()}
}

// cluster is the host of a broker of several nodes: what is done to the broker
// is done to all of them. The embedded host is the first node's, and answers for
// what all have in common.
type cluster struct {
	host
	url   string // for clients, with all nodes
	nodes []*Broker
	net   *network // nil: all nodes share this machine's

	// beside is what the nodes need and is no node: it lives on when they are
	// killed. first is started before them, last after them.
	first, last []*member

	// formed asks once whether all nodes have found each other.
	formed func(ctx context.Context) error
	// leads is the index of the node that leads a queue.
	leads func(ctx context.Context, queueURL string) (int, error)
	// whole asks once whether every node has its part in a queue again.
	whole func(ctx context.Context, queueURL string) error
}

// place is where a node of a cluster is, and what it reads.
type place struct {
	conf    string // name of its settings file
	content []byte
	ports   []int // chosen for all nodes at once, since each is told of the others
	alone   bool  // in a network namespace of its own
}

// member is the host of one process or node of a cluster. Launching one that
// runs does nothing, so that a whole cluster is launched by launching all.
type member struct {
	host
	dir        string
	env        []string                        // of its processes, beside its supervisor's
	supervisor int                             // its process id
	before     func(ctx context.Context) error // makes its files fit the moment; may be nil

	mu   sync.Mutex
	runs bool
}

func (m *member) launch(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.runs {
		return nil
	}
	if m.before != nil {
		if err := m.before(ctx); err != nil {
			return err
		}
	}
	m.runs = true
	return m.host.launch(ctx)
}

func (m *member) ends(ctx context.Context, how func(context.Context) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runs = false
	return how(ctx)
}

func (m *member) kill(ctx context.Context) error      { return m.ends(ctx, m.host.kill) }
func (m *member) terminate(ctx context.Context) error { return m.ends(ctx, m.host.terminate) }

func (m *member) alive() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runs
}

// launch starts what does not run, and returns once all nodes have found each
// other.
func (c *cluster) launch(ctx context.Context) error {
	for _, m := range c.first {
		if err := m.launch(ctx); err != nil {
			return err
		}
	}
	if err := c.all(func(n *Broker) error { return n.Restart(ctx) }); err != nil {
		return err
	}
	for _, m := range c.last {
		if err := m.launch(ctx); err != nil {
			return err
		}
	}
	return until(ctx, "the nodes have not found each other", c.formed)
}

// all does the same to every node at once.
func (c *cluster) all(do func(*Broker) error) error {
	errs := make([]error, len(c.nodes))
	var wg sync.WaitGroup
	for i, n := range c.nodes {
		wg.Go(func() { errs[i] = do(n) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (c *cluster) kill(ctx context.Context) error {
	return c.all(func(n *Broker) error { return n.Kill(ctx) })
}

func (c *cluster) terminate(ctx context.Context) error {
	return c.all(func(n *Broker) error { return n.Terminate(ctx) })
}

func (c *cluster) pause(ctx context.Context) error {
	return c.all(func(n *Broker) error { return n.Pause(ctx) })
}

func (c *cluster) resume(ctx context.Context) error {
	return c.all(func(n *Broker) error { return n.Resume(ctx) })
}

// died never says anything: a node that ends while it is launched is an error of
// that launch.
func (c *cluster) died() <-chan string { return nil }

func (c *cluster) log(ctx context.Context) string {
	var s strings.Builder
	for i, n := range c.nodes {
		fmt.Fprintf(&s, "node %d:\n%s\n", i+1, n.Log(ctx))
	}
	return s.String()
}

// usage is the sum over the nodes and what is beside them.
func (c *cluster) usage() (Usage, error) {
	sum := Usage{Known: true}
	hosts := []host{}
	for _, n := range c.nodes {
		hosts = append(hosts, n.host)
	}
	for _, m := range append(c.first, c.last...) {
		hosts = append(hosts, m)
	}
	for _, h := range hosts {
		u, err := h.usage()
		if err != nil || !u.Known {
			return Usage{}, err
		}
		sum.CPU += u.CPU
		sum.MemoryBytes += u.MemoryBytes
		sum.DiskBytes += u.DiskBytes
	}
	return sum, nil
}

func (c *cluster) stop() error {
	err := c.all((*Broker).Stop)
	for _, m := range append(c.first, c.last...) {
		err = errors.Join(err, m.stop())
	}
	if c.net != nil {
		c.net.close()
	}
	return err
}

// Nodes are the nodes of a cluster, each a broker of its own to kill, restart,
// pause and resume; nil for a single broker and for one that is not ours. They
// are stopped with the cluster. Restart of the cluster itself starts those that
// do not run.
func (b *Broker) Nodes() []*Broker {
	if c, ok := b.host.(*cluster); ok {
		return c.nodes
	}
	return nil
}

// Leader is the node that leads a queue, given by its URL: the leader of most of
// a topic's partitions, of a quorum queue, or the Redis master. It is an error
// while there is none.
func (b *Broker) Leader(ctx context.Context, queueURL string) (*Broker, error) {
	c, ok := b.host.(*cluster)
	if !ok {
		return nil, fmt.Errorf("leader of a queue on %s: it is no cluster of ours", b.kind.name)
	}
	i, err := c.leads(ctx, queueURL)
	if err != nil {
		return nil, fmt.Errorf("leader of a queue on %s: %w", b.kind.name, err)
	}
	return c.nodes[i], nil
}

// AwaitLeader waits until a queue is led by a node that is none of those given.
func (b *Broker) AwaitLeader(ctx context.Context, queueURL string, not ...*Broker) (leader *Broker, err error) {
	err = until(ctx, "no other node leads the queue", func(ctx context.Context) error {
		leader, err = b.Leader(ctx, queueURL)
		for _, n := range not {
			if err == nil && n == leader {
				return errors.New("the same node as before leads")
			}
		}
		return err
	})
	return leader, err
}

// AwaitReplicas waits until every node of a cluster has its part in a queue,
// given by its URL: a full in-sync set, all members online, a linked replica.
func (b *Broker) AwaitReplicas(ctx context.Context, queueURL string) error {
	c, ok := b.host.(*cluster)
	if !ok {
		return nil
	}
	return until(ctx, "the replicas of the queue are not all there", func(ctx context.Context) error { return c.whole(ctx, queueURL) })
}

// until asks until there is no error, at most for a minute and a half.
func until(ctx context.Context, what string, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	for {
		one, done := context.WithTimeout(ctx, 10*time.Second)
		err := ask(one)
		done()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w (last: %w)", what, ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// anyNode asks the nodes of a URL one after the other, until one answers.
func anyNode(rawURL string, ask func(one string) error) error {
	u, err := url.Parse(rawURL)
	if err != nil {
		return err
	}
	var errs []error
	for _, h := range strings.Split(u.Host, ",") {
		one := *u
		one.Host = h
		err := ask(one.String())
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// local are addresses of this machine, as they stand in a URL.
func local(ports ...int) string {
	var all []string
	for _, p := range ports {
		all = append(all, net.JoinHostPort("127.0.0.1", strconv.Itoa(p)))
	}
	return strings.Join(all, ",")
}

// build makes the members of a cluster, all at once. After an error none is left.
func build(n int, one func(i int) (*member, error)) ([]*member, error) {
	members, errs := make([]*member, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { members[i], errs[i] = one(i) })
	}
	wg.Wait()
	err := errors.Join(errs...)
	if err == nil {
		return members, nil
	}
	for _, m := range members {
		if m != nil {
			err = errors.Join(err, m.stop())
		}
	}
	return nil, err
}

// single makes a node's broker, of which host is a member.
func single(k kind, url string, m *member) *Broker {
	return &Broker{kind: k, url: url, host: m, out: io.Discard}
}
