package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"queuelab/queue"
)

// franzProducer is franz-go's idempotent producer: what it sends again has the
// number that it had, by which the broker knows that it is stored.
type franzProducer struct{ cl *kgo.Client }

func newFranzProducer(q *topicQueue) (franzProducer, error) {
	var turns atomic.Uint32
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(q.hosts...), kgo.ClientID(clientID), kgo.MaxVersions(named()), kgo.DisableClientMetrics(),
		kgo.Dialer(func(ctx context.Context, _, addr string) (net.Conn, error) { return q.cluster.dial(ctx, addr) }),
		kgo.DefaultProduceTopic(q.topic), kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordRetries(q.retries), kgo.ProducerLinger(q.linger), kgo.ProducerBatchMaxBytes(int32(max(512, q.maxBytes()))),
		kgo.ProducerBatchCompression(kgo.NoCompression()), // as all else here
		kgo.ProduceRequestTimeout(time.Duration(q.brokerTimeout())*time.Millisecond), kgo.RequestTimeoutOverhead(q.timeout),
		kgo.MetadataMinAge(retryFirst),
		kgo.RetryBackoffFn(func(n int) time.Duration { return min(retryFirst<<min(n, 10), retryMost) }),
		kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(func(string) func(*kgo.Record, int) int {
			return func(r *kgo.Record, n int) int {
				if r.Key == nil {
					return int(turns.Add(1) % uint32(n))
				}
				return keyPartition(string(r.Key), n)
			}
		})),
	)
	if err != nil {
		return franzProducer{}, fmt.Errorf("kafka: franz-go's producer: %w", err)
	}
	return franzProducer{cl}, nil
}

func (p franzProducer) send(ctx context.Context, msgs []queue.Message) error {
	type answer struct {
		place int
		err   error
	}
	answers := make(chan answer, len(msgs)) // its promises must not wait
	for i, m := range msgs {
		// Copied: a call that gives up leaves its messages with the producer.
		r := &kgo.Record{Value: bytes.Clone(m.Body), Headers: []kgo.RecordHeader{{Key: idHeader, Value: []byte(m.ID)}}}
		if m.Key != "" {
			r.Key = []byte(m.Key)
		}
		for name, value := range m.Headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
		}
		p.cl.Produce(ctx, r, func(_ *kgo.Record, err error) { answers <- answer{i, err} })
	}
	failed := unknown(len(msgs), nil)
	for range msgs {
		select {
		case a := <-answers:
			if a.err == nil {
				failed.Outcomes[a.place] = queue.Accepted
				continue
			}
			failed.Err = fmt.Errorf("kafka: publish: %w", a.err)
			if errors.Is(a.err, kerr.MessageTooLarge) { // which no try changes
				failed.Outcomes[a.place], failed.Err = queue.Rejected, queue.Reject(failed.Err)
			}
		case <-ctx.Done():
			failed.Err = fmt.Errorf("kafka: publish: %w", ctx.Err())
			return failed
		}
	}
	if failed.Err != nil {
		return failed
	}
	return nil
}

func (p franzProducer) close() { p.cl.Close() }
