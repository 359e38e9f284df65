package truth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"queuelab/bench/proxy"
)

const kafkaGo = "github.com/segmentio/kafka-go"

func kafkaExperiments() []Experiment {
	in := func(library, name, claim, remedy string, try func(context.Context, stand) (Seen, error)) Experiment {
		return Experiment{Name: name, Library: library, Broker: "kafka", Claim: claim, Remedy: remedy, try: try}
	}
	return []Experiment{
		in(kafkaGo, "kafka-acks-none", "A Writer asks for no answer by default: it returns nil for what never reached the broker.",
			"Set RequiredAcks to RequireAll.", acksNone),
		in(kafkaGo, "kafka-one-second", "A Writer holds a lone message back for a second, to gather more: BatchTimeout.",
			"Set BatchTimeout to a few milliseconds, or BatchSize to 1.", oneSecond),
		in(kafkaGo, "kafka-write-twice", "A write whose reply is lost is sent again, up to ten times, and the broker cannot tell: two messages, no error.",
			"Set MaxAttempts to 1 and retry by yourself with the same id; or use a client with an idempotent producer.", lostWriteKafka(0, 2)),
		in(kafkaGo, "kafka-write-once", "With MaxAttempts 1 a write whose reply is lost stores one message and returns an error: the outcome is unknown.", "",
			lostWriteKafka(1, 1)),
		in(kafkaGo, "kafka-cancelled-write", "A write that was cancelled returns an error, and its message is stored later.",
			"Take it for unknown; never take it for a no.", cancelledWrite),
		in(kafkaGo, "kafka-read-commits", "ReadMessage in a group commits a message before its caller has it: a crash in the handler loses it.",
			"Use FetchMessage, and CommitMessages after the effect.", readCommits),
		in(kafkaGo, "kafka-commit-highest", "CommitMessages of a later message commits all before it, finished or not.",
			"Commit the finished prefix of each partition only.", commitHighest),
		in("github.com/twmb/franz-go", "kafka-idempotent-once", "franz-go's producer is idempotent: sent again after a lost reply, the message is stored once, and there is no error.", "",
			idempotentOnce),
	}
}

// kafkaStand is a topic of one partition, and a client to look into it.
type kafkaStand struct {
	client    *kafka.Client
	transport *kafka.Transport
	topic     string
}

func (s stand) kafka(ctx context.Context) (*kafkaStand, error) {
	u, err := url.Parse(s.broker.URL())
	if err != nil {
		return nil, err
	}
	t := newTransport()
	k := &kafkaStand{client: &kafka.Client{Addr: kafka.TCP(strings.Split(u.Host, ",")...), Transport: t}, transport: t, topic: s.name}
	r, err := k.client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: k.topic, NumPartitions: 1, ReplicationFactor: 1}}})
	if err == nil {
		err = r.Errors[k.topic]
	}
	if err == nil {
		err = k.led(ctx)
	}
	if err != nil {
		t.CloseIdleConnections()
		return nil, fmt.Errorf("create topic %s: %w", k.topic, err)
	}
	return k, nil
}

// newTransport is one for each client, since the library's own one is shared by
// the whole process and remembers where topics were.
func newTransport() *kafka.Transport { return &kafka.Transport{MetadataTTL: time.Second} }

// led waits until the topic's partition has a leader.
func (k *kafkaStand) led(ctx context.Context) error {
	for {
		_, err := k.stored(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (k *kafkaStand) close(ctx context.Context) {
	// In a broker that is about to go, or full of others.
	_, _ = k.client.DeleteTopics(context.WithoutCancel(ctx), &kafka.DeleteTopicsRequest{Topics: []string{k.topic}})
	k.transport.CloseIdleConnections()
}

// stored is how many messages the topic holds.
func (k *kafkaStand) stored(ctx context.Context) (int64, error) {
	r, err := k.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{k.topic: {kafka.FirstOffsetOf(0), kafka.LastOffsetOf(0)}}})
	if err != nil {
		return 0, err
	}
	for _, p := range r.Topics[k.topic] {
		if p.Error == nil && p.LastOffset >= 0 {
			return p.LastOffset - max(0, p.FirstOffset), nil
		}
		err = p.Error
	}
	return 0, fmt.Errorf("offsets of %s: %w", k.topic, errors.Join(err, errNoOffsets))
}

var errNoOffsets = errors.New("the broker tells none")

// until waits for so many to be stored, and returns how many are when the time
// is over.
func (k *kafkaStand) until(ctx context.Context, want int64, most time.Duration) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		n, err := k.stored(context.WithoutCancel(ctx))
		if err != nil || n >= want {
			return n, err
		}
		select {
		case <-ctx.Done():
			return n, nil
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// writer is the library's with its defaults, which must have a transport of its
// own to be closed.
func (k *kafkaStand) writer(addr string) (w *kafka.Writer, end func()) {
	t := newTransport()
	t.MetadataTTL = time.Minute // nothing is asked again while something is broken
	if addr == "" {
		addr = k.client.Addr.String()
	}
	w = &kafka.Writer{Addr: kafka.TCP(addr), Topic: k.topic, Transport: t}
	return w, func() {
		_ = w.Close() // everything was waited for
		t.CloseIdleConnections()
	}
}

func acksNone(ctx context.Context, s stand) (Seen, error) {
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
	w, end := k.writer(p.Addr())
	defer end()
	if err := w.WriteMessages(ctx, kafka.Message{Value: []byte("order 1")}); err != nil {
		return Seen{}, err
	}
	if n, err := k.until(ctx, 1, 5*time.Second); err != nil || n != 1 {
		return Seen{}, fmt.Errorf("the first message did not arrive: %w", errors.Join(err, errNoOffsets))
	}
	p.Set(proxy.ToServer, proxy.Rule{Drop: true}) // a broker that has gone without a word
	wrote := w.WriteMessages(ctx, kafka.Message{Value: []byte("order 2")})
	if err := p.Await(ctx, func(c proxy.Counts) bool { return c.Dropped[proxy.ToServer] > 0 }); err != nil {
		return Seen{}, err
	}
	stored, err := k.stored(ctx)
	return Seen{
		Holds:   wrote == nil && stored == 1,
		What:    fmt.Sprintf("the second of two messages went nowhere, with %s; %d stored", told(wrote), stored),
		Numbers: []Number{count("stored", stored)},
	}, err
}

func oneSecond(ctx context.Context, s stand) (Seen, error) {
	k, err := s.kafka(ctx)
	if err != nil {
		return Seen{}, err
	}
	defer k.close(ctx)
	w, end := k.writer("")
	defer end()
	w.RequiredAcks = kafka.RequireAll
	began := time.Now()
	if err := w.WriteMessages(ctx, kafka.Message{Value: []byte("order 1")}); err != nil {
		return Seen{}, err
	}
	took := time.Since(began)
	return Seen{
		Holds:   took >= 900*time.Millisecond, // at least what its timer waits
		What:    fmt.Sprintf("one message took %d ms to be accepted", took.Milliseconds()),
		Numbers: []Number{millis("took", took)},
	}, nil
}

func lostWriteKafka(attempts int, copies int64) func(context.Context, stand) (Seen, error) {
	return func(ctx context.Context, s stand) (Seen, error) {
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
		w, end := k.writer(p.Addr())
		defer end()
		w.RequiredAcks, w.BatchTimeout, w.MaxAttempts = kafka.RequireAll, 10*time.Millisecond, attempts
		lost := p.LoseReply(proxy.KafkaRequest(proxy.KafkaProduce))
		wrote := w.WriteMessages(ctx, kafka.Message{Value: []byte("order 1")})
		if err := happened(ctx, lost); err != nil {
			return Seen{}, errors.Join(err, wrote)
		}
		stored, err := k.stored(ctx)
		return Seen{
			Holds:   stored == copies && (wrote == nil) == (copies > 1),
			What:    fmt.Sprintf("one call, %d stored, %s", stored, told(wrote)),
			Numbers: []Number{count("stored", stored)},
		}, err
	}
}

func cancelledWrite(ctx context.Context, s stand) (Seen, error) {
	k, err := s.kafka(ctx)
	if err != nil {
		return Seen{}, err
	}
	defer k.close(ctx)
	w, end := k.writer("")
	defer end()
	w.RequiredAcks = kafka.RequireAll
	// The first one finds out where the topic is, which the second need not.
	if err := w.WriteMessages(ctx, kafka.Message{Value: []byte("order 0")}); err != nil {
		return Seen{}, err
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	wrote := w.WriteMessages(short, kafka.Message{Value: []byte("order 1")})
	then, err := k.stored(ctx)
	if err != nil {
		return Seen{}, err
	}
	later, err := k.until(ctx, 2, 5*time.Second)
	return Seen{
		Holds:   errors.Is(wrote, context.DeadlineExceeded) && then == 1 && later == 2,
		What:    fmt.Sprintf("the write ended with %s; %d were stored then, and %d later, of it and one before", told(wrote), then, later),
		Numbers: []Number{count("stored then", then), count("stored later", later)},
	}, err
}
