package truth

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"queuelab/bench/proxy"
)

// reading stores three messages and lends a Reader of a group with its defaults,
// but for how long a fetch may be held, which its Close waits for.
func reading(ctx context.Context, s stand, read func(*kafkaStand, *kafka.Reader) (Seen, error)) (Seen, error) {
	k, err := s.kafka(ctx)
	if err != nil {
		return Seen{}, err
	}
	defer k.close(ctx)
	w, end := k.writer("")
	defer end()
	w.RequiredAcks, w.BatchTimeout = kafka.RequireAll, time.Millisecond
	if err := w.WriteMessages(ctx, kafka.Message{Value: []byte("A")}, kafka.Message{Value: []byte("B")}, kafka.Message{Value: []byte("C")}); err != nil {
		return Seen{}, err
	}
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{k.client.Addr.String()}, Topic: k.topic, GroupID: k.topic, MaxWait: 100 * time.Millisecond})
	seen, err := read(k, r)
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	return seen, err
}

// committed is the group's offset, -1 where it has none.
func (k *kafkaStand) committed(ctx context.Context) (int64, error) {
	r, err := k.client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: k.topic, Topics: map[string][]int{k.topic: {0}}})
	if err != nil {
		return 0, err
	}
	for _, p := range r.Topics[k.topic] {
		return p.CommittedOffset, p.Error
	}
	return -1, r.Error
}

func readCommits(ctx context.Context, s stand) (Seen, error) {
	return reading(ctx, s, func(k *kafkaStand, r *kafka.Reader) (Seen, error) {
		m, err := r.ReadMessage(ctx)
		if err != nil {
			return Seen{}, err
		}
		// Here its handler would begin.
		offset, err := k.committed(ctx)
		return Seen{
			Holds:   string(m.Value) == "A" && offset == 1,
			What:    fmt.Sprintf("as %s was handed over the group had committed offset %d, which is behind it", m.Value, offset),
			Numbers: []Number{count("committed", offset)},
		}, err
	})
}

func commitHighest(ctx context.Context, s stand) (Seen, error) {
	return reading(ctx, s, func(k *kafkaStand, r *kafka.Reader) (Seen, error) {
		var last kafka.Message
		for range 3 {
			m, err := r.FetchMessage(ctx)
			if err != nil {
				return Seen{}, err
			}
			last = m
		}
		before, err := k.committed(ctx)
		if err != nil {
			return Seen{}, err
		}
		if err := r.CommitMessages(ctx, last); err != nil {
			return Seen{}, err
		}
		after, err := k.committed(ctx)
		return Seen{
			Holds:   before < 1 && after == 3,
			What:    fmt.Sprintf("of A, B, C only %s was done and committed; the group goes on from offset %d, without A and B", last.Value, after),
			Numbers: []Number{count("committed", after), count("lost by a crash now", after-1)},
		}, err
	})
}

// idempotentOnce is the same fault as kafka-write-twice, on another library.
func idempotentOnce(ctx context.Context, s stand) (Seen, error) {
	k, err := s.kafka(ctx)
	if err != nil {
		return Seen{}, err
	}
	defer k.close(ctx)
	p, err := s.proxy()
	if err != nil {
		return Seen{}, err
	}
	defer p.Close()
	c, err := kgo.NewClient(kgo.SeedBrokers(p.Addr()), kgo.DefaultProduceTopic(k.topic))
	if err != nil {
		return Seen{}, err
	}
	defer c.Close()
	lost := p.LoseReply(proxy.KafkaRequest(proxy.KafkaProduce))
	wrote := c.ProduceSync(ctx, &kgo.Record{Value: []byte("order 1")}).FirstErr()
	if err := happened(ctx, lost); err != nil {
		return Seen{}, err
	}
	stored, err := k.stored(ctx)
	return Seen{
		Holds:   wrote == nil && stored == 1,
		What:    fmt.Sprintf("one call, sent again, %d stored, %s", stored, told(wrote)),
		Numbers: []Number{count("stored", stored)},
	}, err
}
