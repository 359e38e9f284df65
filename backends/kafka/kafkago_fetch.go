package kafka

import (
	"context"
	"fmt"
	"time"
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
		if outOfRange(err) {
			if p, err = g.startOver(ctx, p); err != nil {
				g.c.fail(fmt.Errorf("kafka: find the place in partition %d of %s: %w", p.id, g.c.q.topic, err))
			}
		}
		_ = pause(ctx, wait)
		wait = min(2*wait, retryMost)
	}
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
	l, err := q.cluster.connect(ctx, addr)
	if err != nil {
		return err
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { _ = l.Conn.Close() })()
	if p.next < 0 {
		if p.next, err = l.firstOffset(q, p.id); err != nil {
			return err
		}
	}
	var s shelf
	for {
		if err := p.awaitSpace(ctx); err != nil {
			return err
		}
		set, err := l.fetch(q, p.id, p.next)
		if err != nil {
			return err
		}
		ds, err := p.read(set, &s)
		p.push(ds)
		if err != nil {
			return err
		}
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
