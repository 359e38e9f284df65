package peers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"queuelab/queue"
)

// The bare loops do what somebody writes who needs one queue and no contract:
// the client library's own calls, and nothing around them. They take the broker
// and the names from our backend's URL, whose queue or topic they use.

// where is what a bare loop needs of a URL of ours.
type where struct {
	scheme, host, queue, group string
	url                        *url.URL
}

func parseWhere(raw string) (where, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return where{}, errors.New("a bare loop needs the URL of a queue")
	}
	w := where{scheme: u.Scheme, host: u.Host, queue: u.Query().Get("queue"), group: u.Query().Get("group"), url: u}
	if w.scheme == "kafka" {
		w.queue = strings.TrimPrefix(u.Path, "/")
	}
	if w.host == "" || w.queue == "" || w.group == "" && w.scheme != "redis+list" && w.scheme != "redis+pubsub" {
		return where{}, errors.New("a bare loop needs the host, queue and group of a queue's URL")
	}
	return w, nil
}

// bareConsumer is a bare loop that consumes only.
func (o orders) bareConsumer(ctx context.Context) (*consumer, error) {
	w, err := parseWhere(o.URL)
	if err != nil {
		return nil, err
	}
	switch w.scheme {
	case "redis+list":
		c := bareRedis(w.host)
		return &consumer{
			next: func(ctx context.Context) (int, error) {
				_, popped, err := c.BLMPop(ctx, blockFor, "right", int64(o.Batch), listKey(w.queue)).Result()
				if errors.Is(err, redis.Nil) {
					err = nil
				}
				return len(popped), err
			},
			settled: nothingUnderWay, close: func() { _ = c.Close() },
		}, nil
	case "redis+streams":
		c := bareRedis(w.host)
		return &consumer{
			next:    func(ctx context.Context) (int, error) { return bareStream(ctx, c, w, o.Batch, nil) },
			settled: nothingUnderWay, close: func() { _ = c.Close() },
		}, nil
	case "redis+pubsub":
		c := bareRedis(w.host)
		sub := c.Subscribe(ctx, channel(w.queue))
		if _, err := sub.Receive(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("subscribe: %w", err), c.Close())
		}
		return &consumer{
			next: func(ctx context.Context) (int, error) {
				_, err := sub.ReceiveMessage(ctx)
				return 1, err
			},
			settled: nothingUnderWay, close: func() { _, _ = sub.Close(), c.Close() },
		}, nil
	}
	return nil, fmt.Errorf("there is no bare loop that consumes %s", w.scheme)
}

// bareLine is a bare loop that publishes and consumes.
func (o orders) bareLine(ctx context.Context) (*line, error) {
	w, err := parseWhere(o.URL)
	if err != nil {
		return nil, err
	}
	switch w.scheme + " " + o.Bare {
	case "redis+list go-redis", "redis+streams go-redis", "redis+pubsub go-redis":
		return w.redisLine(ctx)
	case "amqp amqp091-go":
		return w.amqpLine(o)
	case "kafka kafka-go":
		return w.kafkaGoLine(), nil
	case "kafka franz-go":
		return w.franzLine()
	}
	return nil, fmt.Errorf("there is no bare loop over %s for %s", o.Bare, w.scheme)
}

// amqpLine publishes persistent and mandatory messages, each confirmed, and acks
// each by hand, on a connection for either.
func (w where) amqpLine(o orders) (*line, error) {
	u := *w.url
	u.RawQuery = ""
	out, err := amqp.Dial(u.String())
	if err != nil {
		return nil, err
	}
	in, err := amqp.Dial(u.String())
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	l, err := w.amqpChannels(out, in, o.Batch)
	if err != nil {
		return nil, errors.Join(err, out.Close(), in.Close())
	}
	return l, nil
}

func (w where) amqpChannels(out, in *amqp.Connection, prefetch int) (*line, error) {
	publishing, err := out.Channel()
	if err == nil {
		err = publishing.Confirm(false)
	}
	if err != nil {
		return nil, err
	}
	consuming, err := in.Channel()
	if err == nil {
		err = consuming.Qos(prefetch, 0, false)
	}
	if err != nil {
		return nil, err
	}
	deliveries, err := consuming.Consume(w.queue+"."+w.group, "", false, false, false, false, nil)
	if err != nil {
		return nil, err
	}
	return &line{
		publish: func(ctx context.Context, m queue.Message) error {
			confirm, err := publishing.PublishWithDeferredConfirmWithContext(ctx, w.queue, "", true, false,
				amqp.Publishing{MessageId: m.ID, Body: m.Body, DeliveryMode: amqp.Persistent})
			if err != nil {
				return err
			}
			acked, err := confirm.WaitContext(ctx)
			if err == nil && !acked {
				err = errors.New("the broker refused a message")
			}
			return err
		},
		receive: func(ctx context.Context, seen func([]byte)) error {
			select {
			case d, open := <-deliveries:
				if !open {
					return errors.New("the broker ended the consumer")
				}
				seen(d.Body)
				return d.Ack(false)
			case <-ctx.Done():
				return ctx.Err()
			}
		},
		settled: nothingUnderWay,
		close:   func() { _, _ = out.Close(), in.Close() },
	}, nil
}

// kafkaGoLine writes each message as it comes; commits go on behind, each of all
// that has come and confirmed, as those of our backend do here.
func (w where) kafkaGoLine() *line {
	t := &kafkago.Transport{}
	out := &kafkago.Writer{Addr: kafkago.TCP(w.host), Topic: w.queue, Balancer: &kafkago.RoundRobin{}, BatchSize: 1,
		RequiredAcks: kafkago.RequireAll, MaxAttempts: 1, Transport: t}
	in := kafkago.NewReader(kafkago.ReaderConfig{Brokers: []string{w.host}, Topic: w.queue, GroupID: w.group,
		StartOffset: kafkago.FirstOffset, MinBytes: 1, MaxBytes: 1 << 20, ReadLagInterval: -1})
	commit, settled := behind(func(ms []kafkago.Message) error { return in.CommitMessages(context.Background(), ms...) })
	return &line{
		publish: func(ctx context.Context, m queue.Message) error {
			return out.WriteMessages(ctx, kafkago.Message{Value: m.Body, Headers: []kafkago.Header{{Key: "id", Value: []byte(m.ID)}}})
		},
		receive: func(ctx context.Context, seen func([]byte)) error {
			m, err := in.FetchMessage(ctx)
			if err != nil {
				return err
			}
			seen(m.Value)
			return commit([]kafkago.Message{m})
		},
		settled: settled,
		close:   func() { _, _ = in.Close(), out.Close(); t.CloseIdleConnections() },
	}
}

// franzLine produces without lingering; commits go on behind, likewise.
// Idempotent writes are off, as in our backend.
func (w where) franzLine() (*line, error) {
	out, err := kgo.NewClient(kgo.SeedBrokers(w.host), kgo.DefaultProduceTopic(w.queue), kgo.ProducerLinger(0),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.DisableIdempotentWrite(), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	if err != nil {
		return nil, err
	}
	in, err := kgo.NewClient(kgo.SeedBrokers(w.host), kgo.ConsumeTopics(w.queue), kgo.ConsumerGroup(w.group),
		kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		out.Close()
		return nil, err
	}
	commit, settled := behind(func(rs []*kgo.Record) error { return in.CommitRecords(context.Background(), rs...) })
	return &line{
		publish: func(ctx context.Context, m queue.Message) error {
			return out.ProduceSync(ctx, &kgo.Record{Value: m.Body, Headers: []kgo.RecordHeader{{Key: "id", Value: []byte(m.ID)}}}).FirstErr()
		},
		receive: func(ctx context.Context, seen func([]byte)) error {
			polled := in.PollFetches(ctx)
			if err := polled.Err(); err != nil {
				return err
			}
			rs := polled.Records()
			for _, r := range rs {
				seen(r.Value)
			}
			return commit(rs)
		},
		settled: settled,
		close:   func() { in.Close(); out.Close() },
	}, nil
}
