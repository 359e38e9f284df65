package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"queuelab/queue"
)

const (
	retryFirst = 50 * time.Millisecond
	retryMost  = time.Second
)

// fetch fills the partition's buffer until ctx ends, through every failure.
func (p *assigned) fetch(ctx context.Context) {
	offset, wait := p.start, retryFirst
	for ctx.Err() == nil {
		before := offset
		err := p.fetchFrom(ctx, &offset)
		if ctx.Err() != nil {
			return
		}
		p.g.c.fail(fmt.Errorf("kafka: fetch partition %d of %s: %w", p.id, p.g.c.q.topic, err))
		if errors.Is(err, kafkago.OffsetOutOfRange) {
			// Retention removed what was next, or the log lost its end. What is
			// left is delivered, rather too much of it than too little.
			offset = kafkago.FirstOffset
		}
		if offset != before {
			wait = retryFirst
		}
		_ = pause(ctx, wait)
		wait = min(2*wait, retryMost)
	}
}

// fetchFrom fetches over one connection until that fails, and keeps offset at
// the message after the last one in the buffer. The connection is closed when
// ctx ends: the broker may take its time over a fetch, and a consumer that
// closes has none.
func (p *assigned) fetchFrom(ctx context.Context, offset *int64) error {
	q := p.g.c.q
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
	if *offset < 0 {
		if *offset, err = conn.ReadFirstOffset(); err != nil {
			return err
		}
	}
	if _, err := conn.Seek(*offset, kafkago.SeekAbsolute|kafkago.SeekDontCheck); err != nil {
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
		p.push(msgs)
		if len(msgs) > 0 {
			*offset = msgs[len(msgs)-1].Offset + 1
		}
		if err != nil {
			return err
		}
		*offset = max(*offset, next)
	}
}

func (p *assigned) awaitSpace(ctx context.Context) error {
	for {
		p.g.c.mu.Lock()
		full := len(p.buffer) >= p.g.c.q.prefetch
		p.g.c.mu.Unlock()
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
	if len(msgs) == 0 {
		return
	}
	ds := make([]*queue.Delivery, len(msgs))
	receipts := make([]receipt, len(msgs))
	for i, m := range msgs {
		receipts[i] = receipt{part: p, offset: m.Offset}
		ds[i] = queue.NewDelivery(fromRecord(m), 0, &receipts[i])
	}
	c := p.g.c
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
