package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// franzMember has franz-go keep the membership and fetch. Rebalances are eager
// and round robin, as kafka-go's are, so that both clients can be in one group.
type franzMember struct {
	c       *consumer
	cl      *kgo.Client
	cancel  context.CancelFunc // ends everything that franz-go does
	ready   chan struct{}      // closed once cl is set
	fetched chan struct{}      // signalled when the pump should look for room

	mu     sync.Mutex
	paused map[int32]bool
}

func (f franz) join(c *consumer) (member, error) {
	q := f.q
	m := &franzMember{c: c, ready: make(chan struct{}), fetched: make(chan struct{}, 1), paused: map[int32]bool{}}
	c.space = make(chan struct{}, 1)
	var ctx context.Context
	ctx, m.cancel = context.WithCancel(context.Background())
	most := min(int64(q.fetchBytes)*int64(q.facts.partitions), 1<<28)
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(q.hosts...), kgo.ClientID(memberID()), kgo.WithContext(ctx), kgo.WithHooks(m),
		kgo.Dialer(c.dialer.connect), kgo.MaxVersions(named()), kgo.DisableClientMetrics(),
		kgo.RequestTimeoutOverhead(q.timeout), kgo.RetryTimeout(q.timeout), kgo.MetadataMinAge(retryFirst),
		kgo.RetryBackoffFn(func(n int) time.Duration { return min(retryFirst<<min(n, 10), retryMost) }),
		kgo.ConsumeTopics(q.topic), kgo.ConsumerGroup(q.group), kgo.Balancers(kgo.RoundRobinBalancer()),
		kgo.SessionTimeout(q.session), kgo.RebalanceTimeout(q.session), kgo.HeartbeatInterval(q.heartbeat),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.WithPools(&recordPool{}),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMinBytes(1), kgo.FetchMaxWait(q.maxWait), kgo.FetchMaxPartitionBytes(int32(q.fetchBytes)),
		kgo.FetchMaxBytes(int32(most)), kgo.BrokerMaxReadBytes(1<<30),
		kgo.OnPartitionsAssigned(m.assigned), kgo.AdjustFetchOffsetsFn(m.place),
		kgo.OnPartitionsRevoked(m.revoked), kgo.OnPartitionsLost(m.lost),
	)
	if err != nil {
		m.cancel()
		return nil, err
	}
	m.cl = cl
	close(m.ready)
	c.work.Go(m.pump)
	c.work.Go(m.breathe)
	return m, nil
}

// OnGroupManageError implements kgo.HookGroupManageError.
func (m *franzMember) OnGroupManageError(err error) { m.c.refused(fromFranz(err)) }

// OnBrokerConnect implements kgo.HookBrokerConnect: franz-go tries again by
// itself, and would not say that a broker cannot be reached.
func (m *franzMember) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err != nil && m.c.ctx.Err() == nil {
		m.c.fail(err)
	}
}

// assigned is called with every generation, before place.
func (m *franzMember) assigned(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
	if len(parts[m.c.q.topic]) == 0 {
		m.begin(map[int]int64{})
	}
}

// place is called with the offsets that are committed for the partitions of a
// new generation, and says where to go on.
func (m *franzMember) place(_ context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	at := offsets[m.c.q.topic]
	committed := make(map[int]int64, len(at))
	for id, o := range at {
		committed[int(id)] = o.EpochOffset().Offset
	}
	for _, p := range m.begin(committed).parts {
		if p.next >= 0 {
			at[int32(p.id)] = kgo.NewOffset().At(p.next)
		}
	}
	return offsets, nil
}

func (m *franzMember) begin(offsets map[int]int64) *generation {
	<-m.ready
	name, generation := m.cl.GroupMetadata()
	g := m.c.begin(deal{
		generation: int(generation),
		offsets:    offsets,
		committer:  &franzCommitter{q: m.c.q, cl: m.cl, member: name, generation: generation},
	})
	signal(m.c.space)
	return g
}

// revoked is called before the group deals again, which waits for it.
func (m *franzMember) revoked(context.Context, *kgo.Client, map[string][]int32) {
	if g := m.c.generation(); g != nil {
		g.end()
	}
}

// lost is called when the group has gone on without this consumer.
func (m *franzMember) lost(context.Context, *kgo.Client, map[string][]int32) {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	if g := m.c.current; g != nil {
		g.stopped, g.over = true, true
	}
}

func (c *consumer) generation() *generation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

// pump moves what franz-go has fetched to where Receive finds it. Between a
// poll and the moment its records are there no rebalance begins.
func (m *franzMember) pump() {
	ctx := m.c.ctx
	for ctx.Err() == nil {
		for m.full() {
			select {
			case <-m.fetched:
			case <-ctx.Done():
				return
			}
		}
		fetches := m.cl.PollFetches(ctx)
		if ctx.Err() == nil {
			fetches.EachPartition(m.deliver)
		}
		m.cl.AllowRebalance()
	}
}

// breathe lets franz-go fetch again for partitions that want more, also while
// the pump waits for others.
func (m *franzMember) breathe() {
	for {
		select {
		case <-m.c.space:
			m.full()
			signal(m.fetched)
		case <-m.c.ctx.Done():
			return
		}
	}
}

// full reports whether no partition wants more. Where only some do, franz-go
// still fetches for all of them; those that do not keep up, because they get
// far more or because one message holds them up, are paused. They are not at
// once: franz-go throws away what it has fetched for a paused partition.
func (m *franzMember) full() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	var pause, resume []int32
	hungry := 0
	m.c.mu.Lock()
	var parts []*assigned
	if m.c.current != nil {
		parts = m.c.current.parts
	}
	for _, p := range parts {
		id, wants := int32(p.id), len(p.buffer) < m.c.q.prefetch
		if wants {
			hungry++
		}
		if m.paused[id] && wants {
			resume = append(resume, id)
		} else if !m.paused[id] && len(p.buffer) >= 2*(m.c.q.prefetch+p.brought) {
			pause = append(pause, id)
		}
	}
	m.c.mu.Unlock()
	if len(parts) > 0 && hungry == 0 {
		return true
	}
	if len(pause) > 0 {
		m.cl.PauseFetchPartitions(map[string][]int32{m.c.q.topic: pause})
	}
	if len(resume) > 0 {
		m.cl.ResumeFetchPartitions(map[string][]int32{m.c.q.topic: resume})
	}
	for _, id := range pause {
		m.paused[id] = true
	}
	for _, id := range resume {
		delete(m.paused, id)
	}
	return false
}

// deliver puts the records of one partition where Receive finds them.
func (m *franzMember) deliver(f kgo.FetchTopicPartition) {
	c := m.c
	g := c.generation()
	if f.Topic != c.q.topic || g == nil {
		return // what the group's manager says has been heard
	}
	p := g.part(int(f.Partition))
	if p == nil {
		return
	}
	if f.Err != nil {
		p = m.trouble(g, p, fromFranz(f.Err))
	}
	if len(f.Records) == 0 {
		return
	}
	if first := f.Records[0].Offset; first < p.next {
		p = g.fetchAnew(p, first) // the log has been cut, and has grown again
	}
	var s shelf
	s.reset(p, len(f.Records))
	for _, r := range f.Records {
		var id []byte
		headers := r.Headers
		if len(headers) > 0 && headers[0].Key == idHeader {
			id, headers = headers[0].Value, headers[1:]
		}
		var own map[string]string
		if len(headers) > 0 {
			own = make(map[string]string, len(headers))
			for _, h := range headers {
				own[h.Key] = string(h.Value)
			}
		}
		s.add(r.Offset, id, r.Key, r.Value, own)
		p.next = r.Offset + 1
		r.Recycle()
	}
	p.push(s.take())
}

// recordPool keeps franz-go's records, which are done with once deliveries have
// been made of them; keys and bodies are not part of them.
type recordPool struct{ p sync.Pool }

// GetRecords implements kgo.PoolRecords.
func (p *recordPool) GetRecords(n int) []kgo.Record {
	if rs, ok := p.p.Get().(*[]kgo.Record); ok && cap(*rs) >= n {
		return (*rs)[:n]
	}
	return make([]kgo.Record, n)
}

// PutRecords implements kgo.PoolRecords.
func (p *recordPool) PutRecords(rs []kgo.Record) { p.p.Put(&rs) }

// trouble reports what is wrong with a partition, and finds a new place in one
// that does not have the message that was next.
func (m *franzMember) trouble(g *generation, p *assigned, err error) *assigned {
	m.c.fail(fmt.Errorf("kafka: fetch partition %d of %s: %w", p.id, m.c.q.topic, err))
	var loss *kgo.ErrDataLoss
	if errors.As(err, &loss) {
		return g.fetchAnew(p, loss.ResetTo)
	}
	if !outOfRange(err) {
		return p
	}
	ctx, cancel := context.WithTimeout(m.c.ctx, m.c.q.timeout)
	defer cancel()
	fresh, err := g.startOver(ctx, p)
	if err != nil {
		m.c.fail(fmt.Errorf("kafka: find the place in partition %d of %s: %w", p.id, m.c.q.topic, err))
		return p
	}
	m.cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{m.c.q.topic: {int32(p.id): {Epoch: -1, Offset: fresh.next}}})
	return fresh
}

func (m *franzMember) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), m.c.q.timeout)
	defer cancel()
	if m.c.dialer.isOff() {
		m.cancel() // there is no way to the group
	}
	if err := m.cl.LeaveGroupContext(ctx); err != nil {
		m.cancel()
		m.c.dialer.cut()
	}
	m.cl.Close()
	m.cancel()
}

type franzCommitter struct {
	q          *topicQueue
	cl         *kgo.Client
	member     string
	generation int32
}

// commit does not use franz-go's own commits, which go to whatever generation
// there is by then.
func (f *franzCommitter) commit(offsets map[int]int64) error {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = f.q.group, f.member, f.generation
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic = f.q.topic
	for id, offset := range offsets {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset = int32(id), offset
		topic.Partitions = append(topic.Partitions, p)
	}
	req.Topics = append(req.Topics, topic)
	ctx, cancel := context.WithTimeout(context.Background(), f.q.timeout)
	defer cancel()
	resp, err := req.RequestWith(ctx, f.cl)
	if err != nil {
		return fromFranz(err)
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return codeError(p.ErrorCode)
			}
		}
	}
	return nil
}
