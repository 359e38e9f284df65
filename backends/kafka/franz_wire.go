package kafka

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// franz is the client on twmb/franz-go.
type franz struct{ q *topicQueue }

// named keeps franz-go to requests that name topics, as kafka-go's do. Those by
// topic id never find a topic again that was deleted and made anew.
func named() *kversion.Versions {
	v := kversion.Stable()
	for _, r := range []struct {
		key kmsg.Key
		max int16
	}{{kmsg.Produce, 12}, {kmsg.Fetch, 12}, {kmsg.Metadata, 9}, {kmsg.OffsetCommit, 9}, {kmsg.OffsetFetch, 9}} {
		v.SetMaxKeyVersion(r.key.Int16(), r.max)
	}
	return v
}

// franzCarrier sends produce requests over a client that knows one broker and
// nothing else. franz-go's own producer is not used: it fails everything that
// waits for a partition together with the one request that went wrong, does not
// say why, and one caller's context cancels the requests of others.
type franzCarrier struct {
	q   *topicQueue
	ctx context.Context
	cl  *kgo.Client

	dialed chan net.Conn        // a connection that is not used yet
	conn   atomic.Pointer[wire] // the last one that is
	sent   atomic.Bool          // something of the request under way
}

func (f franz) carrier(ctx context.Context, addr string) (carrier, error) {
	c := &franzCarrier{q: f.q, ctx: ctx, dialed: make(chan net.Conn, 1)}
	// franz-go dials with the first request, which would be too late to know
	// that nothing was sent.
	first, err := f.q.cluster.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	c.dialed <- first
	acks := map[int16]kgo.Acks{acksAll: kgo.AllISRAcks(), 1: kgo.LeaderAck(), 0: kgo.NoAck()}[f.q.acks]
	c.cl, err = kgo.NewClient(
		kgo.SeedBrokers(addr), kgo.ClientID(clientID), kgo.WithContext(ctx), kgo.WithHooks(c),
		kgo.RequiredAcks(acks), kgo.DisableIdempotentWrite(), kgo.DisableClientMetrics(),
		kgo.MaxVersions(named()), kgo.RequestTimeoutOverhead(f.q.timeout),
		kgo.Dialer(func(ctx context.Context, _, addr string) (conn net.Conn, err error) {
			select {
			case conn = <-c.dialed:
			default:
				if conn, err = f.q.cluster.dial(ctx, addr); err != nil {
					return nil, err
				}
			}
			c.conn.Store(&wire{Conn: conn})
			return conn, nil
		}),
	)
	if err != nil {
		_ = first.Close()
		return nil, err
	}
	return c, nil
}

// OnBrokerWrite implements kgo.HookBrokerWrite.
func (c *franzCarrier) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, n int, _, _ time.Duration, _ error) {
	if key == kmsg.Produce.Int16() && n > 0 {
		c.sent.Store(true)
	}
}

func (c *franzCarrier) produce(batches []batch) (answers []answered, sent bool, err error) {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = c.q.acks, c.q.brokerTimeout()
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic = c.q.topic
	for _, b := range batches {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = int32(b.partition), b.bytes()
		topic.Partitions = append(topic.Partitions, p)
	}
	req.Topics = append(req.Topics, topic)

	c.sent.Store(false)
	ctx, cancel := context.WithTimeout(c.ctx, c.q.timeout)
	defer cancel()
	answer, err := c.cl.SeedBrokers()[0].Request(ctx, req)
	if err != nil {
		return nil, c.sent.Load(), err
	}
	answers = make([]answered, len(batches))
	for _, t := range answer.(*kmsg.ProduceResponse).Topics {
		for _, p := range t.Partitions {
			message := ""
			if p.ErrorMessage != nil {
				message = *p.ErrorMessage
			}
			sort(answers, batches, p.Partition, p.ErrorCode, message)
		}
	}
	return answers, true, nil
}

func (c *franzCarrier) alive() bool {
	w := c.conn.Load()
	return w == nil || w.alive()
}

func (c *franzCarrier) Close() error {
	c.cl.Close()
	select {
	case unused := <-c.dialed:
		_ = unused.Close()
	default:
	}
	return nil
}

// fromFranz makes a broker's error one of kafka-go's, by which the rest of the
// package knows them.
func fromFranz(err error) error {
	var e *kerr.Error
	if errors.As(err, &e) {
		return kafkago.Error(e.Code)
	}
	return err
}
