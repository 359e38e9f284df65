package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"queuelab/queue"
)

const (
	retryFirst = 50 * time.Millisecond
	retryMost  = time.Second
)

// fetch fills the partition's buffer until ctx ends, through every failure.
func (g *generation) fetch(ctx context.Context, p *assigned) {
	wait := retryFirst
	for ctx.Err() == nil {
		before := p.next
		err := p.fetchFrom(ctx)
		if ctx.Err() != nil {
			return
		}
		if p.next != before {
			wait = retryFirst
		}
		g.c.fail(fmt.Errorf("kafka: fetch partition %d of %s: %w", p.id, g.c.q.topic, err))
		if errors.Is(err, kafkago.OffsetOutOfRange) {
			if p, err = g.startOver(ctx, p); err != nil {
				g.c.fail(fmt.Errorf("kafka: find the place in partition %d of %s: %w", p.id, g.c.q.topic, err))
			}
		}
		_ = pause(ctx, wait)
		wait = min(2*wait, retryMost)
	}
}

// startOver finds a new place in a partition that does not have the message
// that was next: retention removed it, the broker lost the end of its log, or
// the topic is another one of the same name. Offsets may begin to mean other
// messages, so what is in hand is lost.
func (g *generation) startOver(ctx context.Context, p *assigned) (*assigned, error) {
	spans, err := g.c.q.spans(ctx)
	if err != nil {
		return p, err
	}
	fresh := &assigned{c: g.c, id: p.id, next: spans[p.id].from(), space: make(chan struct{}, 1)}
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	p.lost, p.buffer = true, nil
	g.parts[slices.Index(g.parts, p)] = fresh
	return fresh, nil
}

// fetchFrom fetches over one connection until that fails. The connection is
// closed when ctx ends: the broker may take its time over a fetch, and a
// consumer that closes has none.
func (p *assigned) fetchFrom(ctx context.Context) error {
	q := p.c.q
	addr, err := q.cluster.leader(ctx, p.id)
	if err != nil {
		return err
	}
	wire, err := q.cluster.dial(ctx, addr)
	if err != nil {
		return err
	}
	conn := kafkago.NewConnWith(wire, kafkago.ConnConfig{ClientID: clientID, Topic: q.topic, Partition: p.id})
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(q.timeout))
	if p.next < 0 {
		first, err := conn.ReadFirstOffset()
		if err != nil {
			return err
		}
		p.next = first
	}
	if _, err := conn.Seek(p.next, kafkago.SeekAbsolute|kafkago.SeekDontCheck); err != nil {
		return err
	}
	for {
		if err := p.awaitSpace(ctx); err != nil {
			return err
		}
		_ = conn.SetDeadline(time.Now().Add(q.maxWait + q.timeout))
		batch := conn.ReadBatchWith(kafkago.ReadBatchConfig{MinBytes: 1, MaxBytes: q.fetchBytes, MaxWait: q.maxWait})
		var msgs []kafkago.Message
		for {
			m, err := batch.ReadMessage()
			if err != nil {
				break // Close tells the end of the batch from a failure
			}
			msgs = append(msgs, m)
		}
		next := batch.Offset()
		err := batch.Close()
		if errors.Is(err, kafkago.RequestTimedOut) {
			err = nil // how kafka-go puts it that max-wait went by without a message
		}
		if len(msgs) > 0 {
			p.next = msgs[len(msgs)-1].Offset + 1
			p.push(msgs)
		}
		if err != nil {
			return err
		}
		p.next = max(p.next, next)
	}
}

func (p *assigned) awaitSpace(ctx context.Context) error {
	for {
		p.c.mu.Lock()
		full := len(p.buffer) >= p.c.q.prefetch
		p.c.mu.Unlock()
		if !full {
			return nil
		}
		select {
		case <-p.space:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *assigned) push(msgs []kafkago.Message) {
	ds := make([]*queue.Delivery, len(msgs))
	receipts := make([]receipt, len(msgs))
	for i, m := range msgs {
		receipts[i] = receipt{part: p, offset: m.Offset}
		ds[i] = queue.NewDelivery(fromRecord(m), 0, &receipts[i])
	}
	c := p.c
	c.mu.Lock()
	if len(p.buffer) == 0 {
		p.buffer = ds
	} else {
		p.buffer = append(p.buffer, ds...)
	}
	c.failure = nil
	c.mu.Unlock()
	signal(c.wake)
}
