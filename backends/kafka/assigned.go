package kafka

import (
	"context"
	"errors"
	"slices"

	kafkago "github.com/segmentio/kafka-go"

	"queuelab/queue"
)

// startOver finds a new place in a partition that does not have the message
// that was next: retention removed it, the broker lost the end of its log, or
// the topic is another one of the same name. Offsets may begin to mean other
// messages, so what is in hand is lost.
func (g *generation) startOver(ctx context.Context, p *assigned) (*assigned, error) {
	spans, err := g.c.q.spans(ctx)
	if err != nil {
		return p, err
	}
	return g.fetchAnew(p, spans[p.id].from()), nil
}

func outOfRange(err error) bool { return errors.Is(err, kafkago.OffsetOutOfRange) }

// fetchAnew gives up what is in hand and in the buffer of a partition, and
// begins it again at an offset.
func (g *generation) fetchAnew(p *assigned, from int64) *assigned {
	fresh := g.c.newAssigned(p.id, from)
	fresh.committed = 0
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	p.lost, p.buffer = true, nil
	g.parts[slices.Index(g.parts, p)] = fresh
	return fresh
}

// part is the partition of that number, nil if it is not dealt to g.
func (g *generation) part(id int) *assigned {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	for _, p := range g.parts {
		if p.id == id {
			return p
		}
	}
	return nil
}

// push puts deliveries where Receive finds them.
func (p *assigned) push(ds []*queue.Delivery) {
	if len(ds) == 0 {
		return
	}
	c := p.c
	c.mu.Lock()
	p.brought = len(ds)
	if len(p.buffer) == 0 {
		p.buffer = ds
	} else {
		p.buffer = append(p.buffer, ds...)
	}
	c.failure = nil
	c.mu.Unlock()
	signal(c.wake)
}
