package live

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
	kafkago "github.com/segmentio/kafka-go"

	"queuelab/queue"
)

// redisLooker asks a Redis of one node.
type redisLooker struct {
	l      *lane
	any    anyLooker
	client *redis.Client
}

func newRedisLooker(l *lane, any anyLooker) (looker, error) {
	o, err := redis.ParseURL(l.warm.broker.URL())
	if err != nil {
		return nil, fmt.Errorf("look into Redis: %w", err)
	}
	o.MaxRetries, o.PoolSize = -1, 2
	return redisLooker{l, any, redis.NewClient(o)}, nil
}

func (r redisLooker) close() { r.client.Close() }

func (r redisLooker) look(ctx context.Context) (structure, queue.Backlog, error) {
	if err := r.client.Ping(ctx).Err(); err != nil {
		return structure{}, queue.Backlog{}, err
	}
	s, b, err := r.any.look(ctx)
	if err != nil {
		return s, b, err
	}
	name := r.l.name
	switch r.l.setting.Backend {
	case "redis-list":
		s.Key = "list:{" + name + "}"
	case "redis-list-reliable":
		s.Key = "list-reliable:{" + name + "}"
		s.Processing, err = r.processing(ctx, s.Key)
	case "redis-doing":
		s.Key = "doing:{" + name + "}"
		s.Extra = map[string]int64{"doing": b.InFlight}
	case "redis-pubsub":
		s.Channel = "pubsub:0:{" + name + "}"
		s.Ready, s.Unacked, s.Length = nil, nil, nil
		err = r.receivers(ctx, &s)
	case "redis-streams":
		s.Ready, s.Unacked = nil, nil
		err = r.stream(ctx, &s)
	}
	return s, b, err
}

func (r redisLooker) processing(ctx context.Context, key string) ([]heldRow, error) {
	names, err := r.client.ZRange(ctx, key+":names", 0, -1).Result()
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var rows []heldRow
	for _, name := range names {
		n, err := r.client.LLen(ctx, key+":processing:"+name).Result()
		if err != nil {
			return nil, err
		}
		rows = append(rows, heldRow{name, r.l.processOf(name), n})
	}
	return rows, nil
}

func (r redisLooker) receivers(ctx context.Context, s *structure) error {
	if strings.Contains(r.l.setting.Query, "route=key") {
		n, err := r.client.PubSubNumPat(ctx).Result() // of all channels: nobody else is on this broker
		s.Receivers = &n
		return err
	}
	of, err := r.client.PubSubNumSub(ctx, s.Channel).Result()
	n := of[s.Channel]
	s.Receivers = &n
	return err
}

// stream reads the group, and who has what pending.
func (r redisLooker) stream(ctx context.Context, s *structure) error {
	s.Key, s.Group = "stream:{"+r.l.name+"}", "workers"
	n, err := r.client.XLen(ctx, s.Key).Result()
	if err != nil {
		return err
	}
	s.Length = &n
	groups, err := r.client.XInfoGroups(ctx, s.Key).Result()
	if err != nil {
		return ignoreNoKey(err)
	}
	for _, g := range groups {
		if g.Name == s.Group {
			s.Lag, s.LastDelivered = known(g.Lag), g.LastDeliveredID
		}
	}
	consumers, err := r.client.XInfoConsumers(ctx, s.Key, s.Group).Result()
	if err != nil {
		return ignoreNoKey(err)
	}
	s.Pending = []heldRow{}
	for _, c := range consumers {
		s.Pending = append(s.Pending, heldRow{c.Name, r.l.processOf(c.Name), c.Pending})
	}
	slices.SortFunc(s.Pending, func(a, b heldRow) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// ignoreNoKey is for a stream or a group that is not there: that is an answer.
func ignoreNoKey(err error) error {
	if strings.Contains(err.Error(), "no such key") || strings.HasPrefix(err.Error(), "NOGROUP") {
		return nil
	}
	return err
}

// rabbitLooker declares the queue passively, over one connection as long as that
// lasts. What is unacked the protocol does not tell.
type rabbitLooker struct {
	l        *lane
	address  string
	exchange string

	mu   sync.Mutex
	conn *amqp.Connection
	ch   *amqp.Channel
}

func newRabbitLooker(l *lane) (looker, error) {
	u, err := url.Parse(l.warm.broker.URL())
	if err != nil {
		return nil, fmt.Errorf("look into RabbitMQ: %w", err)
	}
	u.RawQuery = ""
	u.Host, _, _ = strings.Cut(u.Host, ",") // of a cluster the first node: one that is down is down
	query, _ := url.ParseQuery(l.query())
	kind := query.Get("exchange")
	if kind == "" {
		kind = "fanout"
	}
	return &rabbitLooker{l: l, address: u.String(), exchange: kind}, nil
}

func (r *rabbitLooker) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop()
}

func (r *rabbitLooker) drop() {
	if r.conn != nil {
		r.conn.Close()
	}
	r.conn, r.ch = nil, nil
}

func (r *rabbitLooker) look(ctx context.Context) (structure, queue.Backlog, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := structure{Exchange: r.l.name, Type: r.exchange, Queue: r.l.name + ".workers"}
	// The library's calls know no context: closing the connection ends them.
	done := make(chan struct{})
	defer close(done)
	if r.conn == nil || r.conn.IsClosed() {
		within := lookWithin
		if at, ok := ctx.Deadline(); ok {
			within = max(time.Millisecond, time.Until(at))
		}
		conn, err := amqp.DialConfig(r.address, amqp.Config{Dial: amqp.DefaultDial(within), Heartbeat: 10 * time.Second})
		if err != nil {
			return s, queue.Backlog{}, err
		}
		r.conn, r.ch = conn, nil
	}
	conn := r.conn
	stop := context.AfterFunc(ctx, func() { _ = conn.CloseDeadline(time.Now().Add(10 * time.Millisecond)) })
	defer stop()
	var err error
	if r.ch == nil || r.ch.IsClosed() {
		if r.ch, err = conn.Channel(); err != nil {
			r.drop()
			return s, queue.Backlog{}, err
		}
	}
	state, err := r.ch.QueueDeclarePassive(s.Queue, true, false, false, false, nil)
	if err != nil {
		r.ch = nil
		return s, queue.Backlog{}, err
	}
	ready, consumers := int64(state.Messages), int64(state.Consumers)
	s.Ready, s.Consumers = &ready, &consumers
	return s, queue.Backlog{Ready: ready, InFlight: -1, Dead: -1}, nil
}

// kafkaLooker asks for offsets, and for the members of the group.
type kafkaLooker struct {
	l         *lane
	transport *kafkago.Transport
	client    *kafkago.Client
}

func newKafkaLooker(l *lane) (looker, error) {
	u, err := url.Parse(l.warm.broker.URL())
	if err != nil {
		return nil, fmt.Errorf("look into Kafka: %w", err)
	}
	t := &kafkago.Transport{ClientID: "queuelab-live", DialTimeout: lookWithin, MetadataTTL: time.Second, Dial: (&net.Dialer{Timeout: lookWithin}).DialContext}
	return &kafkaLooker{
		l: l, transport: t,
		client: &kafkago.Client{Addr: kafkago.TCP(strings.Split(u.Host, ",")...), Timeout: lookWithin, Transport: t},
	}, nil
}

func (k *kafkaLooker) close() { k.transport.CloseIdleConnections() }

func (k *kafkaLooker) look(ctx context.Context) (structure, queue.Backlog, error) {
	s := structure{Topic: k.l.name, Group: k.l.name + ".default"}
	meta, err := k.client.Metadata(ctx, &kafkago.MetadataRequest{Topics: []string{s.Topic}})
	if err != nil {
		return s, queue.Backlog{}, err
	}
	if len(meta.Topics) != 1 || meta.Topics[0].Error != nil {
		return s, queue.Backlog{}, fmt.Errorf("topic %s is not there", s.Topic)
	}
	var parts []int
	var asked []kafkago.OffsetRequest
	for _, p := range meta.Topics[0].Partitions {
		parts = append(parts, p.ID)
		asked = append(asked, kafkago.FirstOffsetOf(p.ID), kafkago.LastOffsetOf(p.ID))
	}
	slices.Sort(parts)
	ends, err := k.client.ListOffsets(ctx, &kafkago.ListOffsetsRequest{Topics: map[string][]kafkago.OffsetRequest{s.Topic: asked}})
	if err != nil {
		return s, queue.Backlog{}, err
	}
	committed, err := k.client.OffsetFetch(ctx, &kafkago.OffsetFetchRequest{GroupID: s.Group, Topics: map[string][]int{s.Topic: parts}})
	if err != nil {
		return s, queue.Backlog{}, err
	}
	owners, err := k.owners(ctx, s)
	if err != nil {
		return s, queue.Backlog{}, err
	}
	b := queue.Backlog{InFlight: 0, Dead: -1} // what is not committed is ready to come again
	for _, n := range parts {
		row := partitionRow{N: n, Process: owners[n]}
		var first, end int64
		for _, o := range ends.Topics[s.Topic] {
			if o.Partition == n && o.Error == nil {
				first, end = o.FirstOffset, o.LastOffset
				row.End = &end
			}
		}
		at := int64(-1)
		for _, o := range committed.Topics[s.Topic] {
			if o.Partition == n && o.Error == nil {
				at = o.CommittedOffset
				row.Committed = known(at)
			}
		}
		if row.End == nil {
			return s, b, fmt.Errorf("the end of partition %d is not told", n)
		}
		b.Ready += end - min(max(at, first), end)
		s.Partitions = append(s.Partitions, row)
	}
	return s, b, nil
}

// owners tells which process has which partition: the client id of our members
// ends in their process id.
func (k *kafkaLooker) owners(ctx context.Context, s structure) (map[int]*uint16, error) {
	d, err := k.client.DescribeGroups(ctx, &kafkago.DescribeGroupsRequest{GroupIDs: []string{s.Group}})
	if err != nil {
		return nil, err
	}
	owners := map[int]*uint16{}
	for _, g := range d.Groups {
		for _, m := range g.Members {
			n := k.l.processOf(m.ClientID + "-")
			for _, t := range m.MemberAssignments.Topics {
				for _, p := range t.Partitions {
					if t.Topic == s.Topic {
						owners[p] = n
					}
				}
			}
		}
	}
	return owners, nil
}
