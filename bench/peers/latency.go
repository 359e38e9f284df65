package peers

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"queuelab/backends"
	"queuelab/bench/ledger"
	"queuelab/bench/load"
	"queuelab/queue"
)

// line is a publisher and a consumer of one queue, ours or bare.
type line struct {
	publish func(ctx context.Context, m queue.Message) error
	// receive waits for messages, shows each body as soon as it is here, and then acks.
	receive func(ctx context.Context, seen func(body []byte)) error
	settled func() error // waits for acks that are under way
	close   func()
}

// drainFor is how long the last messages may take.
const drainFor = 20 * time.Second

// latency sends at a rate that everything keeps up with, and measures from the
// due time of each message until it is received. Publisher and consumer share
// one process, and so one clock.
func (o orders) latency(ctx context.Context) (outcome, error) {
	open := o.ours
	if o.Bare != "" {
		open = o.bareLine
	}
	l, err := open(ctx)
	if err != nil {
		return outcome{}, err
	}

	defer l.close()
	return o.measureLine(ctx, l)
}

func (o orders) measureLine(ctx context.Context, l *line) (outcome, error) {
	s := &stamps{warm: o.Warm, want: o.Count, probes: make(chan struct{}, probes), all: make(chan struct{})}
	receiving, stop := context.WithCancel(ctx)
	failed := make(chan error, 1)
	var receiver sync.WaitGroup
	receiver.Go(func() {
		for receiving.Err() == nil {
			if err := l.receive(receiving, s.seen); err != nil {
				if receiving.Err() == nil {
					failed <- err
				}
				return
			}
		}
	})
	achieved, err := o.send(ctx, l, s, failed)
	stop()
	receiver.Wait()
	if err := errors.Join(err, l.settled()); err != nil {
		return outcome{}, err
	}
	r := outcome{Rate: achieved, Latency: s.micros()}
	if r.Latency.N != int(o.Count-o.Warm) {
		return outcome{}, fmt.Errorf("%d latencies of %d messages", r.Latency.N, o.Count-o.Warm)
	}
	return r, nil
}

// send sends all messages and returns, with the rate, once all have come.
func (o orders) send(ctx context.Context, l *line, s *stamps, failed <-chan error) (float64, error) {
	// A consumer group may still be dealing out its partitions: the load begins
	// once messages have come through one by one, over every partition.
	for i := range int64(probes) {
		if err := l.publish(ctx, s.message(-1-i, 0)); err != nil {
			return 0, fmt.Errorf("publish the first messages: %w", err)
		}
		if err := await(ctx, s.probes, failed, "the first messages"); err != nil {
			return 0, err
		}
	}
	pacer, start := load.Constant(o.Rate), ledger.Now()+int64(10*time.Millisecond)
	stats, err := load.Run(ctx, load.Generator{
		Pacer: pacer, Publisher: publishFunc(l.publish), Count: uint64(o.Count), Start: start,
		Message: func(n uint64) queue.Message { return s.message(int64(n), start+int64(pacer.Due(n))) },
	})
	switch {
	case err != nil:
		return 0, err
	case stats.Accepted != o.Count:
		return 0, fmt.Errorf("%d of %d messages were accepted: %s", stats.Accepted, o.Count, stats.Err)
	}
	return stats.Achieved, await(ctx, s.all, failed, "the last messages")
}

func await(ctx context.Context, fact <-chan struct{}, failed <-chan error, what string) error {
	t := time.NewTimer(drainFor)
	defer t.Stop()
	select {
	case <-fact:
		return nil
	case err := <-failed:
		return fmt.Errorf("receive %s: %w", what, err)
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return fmt.Errorf("%s did not come within %v", what, drainFor)
	}
}

// probes are the messages before the first; their numbers are negative.
const probes = 16

// stamps are the latencies of the messages after the warm-up. Each body carries
// its number and when it is due.
type stamps struct {
	warm, want int64
	probes     chan struct{} // receives for each of them
	all        chan struct{} // closed once all have come

	mu    sync.Mutex
	got   map[int64]bool
	micro []float64
}

func (s *stamps) message(n, due int64) queue.Message {
	b := body()
	binary.BigEndian.PutUint64(b, uint64(n))
	binary.BigEndian.PutUint64(b[8:], uint64(due))
	m := make([]queue.Message, 1)
	messages(m, b, n)
	return m[0]
}

func (s *stamps) seen(b []byte) {
	now := ledger.Now()
	if len(b) != payload {
		return
	}
	n, due := int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:]))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.got == nil {
		s.got = make(map[int64]bool, s.want+probes)
	}
	if s.got[n] {
		return // delivered again
	}
	s.got[n] = true
	if n < 0 {
		s.probes <- struct{}{}
		return
	}
	if n >= s.warm {
		s.micro = append(s.micro, float64(now-due)/1e3)
	}
	if int64(len(s.got)) == s.want+probes {
		close(s.all)
	}
}

func (s *stamps) micros() Micros {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.micro)
	n := len(s.micro)
	if n == 0 {
		return Micros{}
	}
	at := func(q float64) float64 { return s.micro[min(n-1, int(math.Ceil(q*float64(n)))-1)] }
	return Micros{P50: at(.5), P99: at(.99), Max: s.micro[n-1], N: n}
}

// publishFunc is a queue.Publisher of one message at a time.
type publishFunc func(context.Context, queue.Message) error

// Publish implements queue.Publisher.
func (f publishFunc) Publish(ctx context.Context, msgs ...queue.Message) error {
	for _, m := range msgs {
		if err := f(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// Close implements queue.Publisher.
func (publishFunc) Close() error { return nil }

// ours is the backend itself, by its contract alone.
func (o orders) ours(ctx context.Context) (*line, error) {
	q, err := backends.Open(ctx, o.URL)
	if err != nil {
		return nil, err
	}
	p, err := q.Publisher(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a publisher: %w", err), q.Close())
	}
	c, err := q.Consumer(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a consumer: %w", err), q.Close())
	}
	ack, settled := c.Ack, nothingUnderWay
	if o.AckBehind {
		ack, settled = ackBehind(c)
	}
	return &line{
		publish: func(ctx context.Context, m queue.Message) error { return p.Publish(ctx, m) },
		receive: func(ctx context.Context, seen func([]byte)) error {
			ds, err := c.Receive(ctx, o.Batch)
			if err != nil {
				return err
			}
			for _, d := range ds {
				seen(d.Body)
			}
			return ack(context.WithoutCancel(ctx), ds...)
		},
		settled: settled,
		close:   func() { _ = q.Close() }, // what was measured is known
	}, nil
}
