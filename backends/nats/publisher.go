package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"queuelab/backends/internal/driver"
	"queuelab/backends/internal/envelope"
	"queuelab/queue"
)

type publisher struct {
	q     *stream
	link  *link
	asker *asker
	life  *driver.Life // of its calls
	once  sync.Once
}

// Publisher implements queue.Queue.
func (q *stream) Publisher(ctx context.Context) (queue.Publisher, error) {
	l, err := q.dial(ctx, "publisher")
	if err != nil {
		return nil, q.wrap(ctx, "publisher", err)
	}
	p := &publisher{q: q, link: l, life: driver.NewLife()}
	if p.asker, err = newAsker(l); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	if err := q.children.Keep(p); err != nil {
		return nil, err
	}
	return p, nil
}

// Publish implements queue.Publisher.
func (p *publisher) Publish(ctx context.Context, msgs ...queue.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	out := make([]*nats.Msg, len(msgs))
	for i, m := range msgs {
		if m.ID == "" {
			return queue.Reject(fmt.Errorf("nats publish: message %d of %d has no id", i+1, len(msgs)))
		}
		out[i] = nats.NewMsg(p.q.subject)
		out[i].Data = envelope.Append(make([]byte, 0, envelope.Size(m)), m)
		if p.q.dedupe > 0 {
			out[i].Header.Set(jetstream.MsgIDHeader, url.QueryEscape(m.ID)) // which a header can hold, and no two ids share
		}
	}
	if err := p.life.Begin(); err != nil {
		return err
	}
	defer p.life.Done()
	if len(msgs) == 0 {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, p.q.timeout)
	defer cancel()
	answers := p.asker.ask(within, out)
	return driver.Outcomes("nats publish", len(msgs), func(i int) (queue.Outcome, error) {
		outcome, err := outcomeOf(answers[i])
		if err != nil && ctx.Err() != nil {
			err = ctx.Err()
		}
		return outcome, err
	})
}

// outcomeOf reads a stream's answer to a message.
func outcomeOf(a answer) (queue.Outcome, error) {
	switch {
	case a.refused:
		return queue.Rejected, queue.Reject(a.err)
	case a.msg == nil:
		return queue.Unknown, a.err
	case noResponders(a.msg):
		return queue.Rejected, queue.Reject(errors.New("no stream takes messages of this queue: was it deleted, or is the server still starting?"))
	}
	var said struct {
		Stream string              `json:"stream"`
		Error  *jetstream.APIError `json:"error"`
	}
	err := json.Unmarshal(a.msg.Data, &said)
	switch {
	case err != nil:
		return queue.Unknown, fmt.Errorf("an answer that is none: %w", err)
	case said.Error == nil && said.Stream != "":
		return queue.Accepted, nil
	case said.Error == nil:
		return queue.Unknown, errors.New("an answer that is none: it names no stream")
	case said.Error.Code < 500 || strings.Contains(said.Error.Description, "maximum"):
		return queue.Rejected, queue.Reject(said.Error)
	}
	return queue.Unknown, said.Error // it failed to store, and perhaps only in part
}

// Close implements queue.Publisher. Publishes in flight end with the time that
// they have for an answer.
func (p *publisher) Close() error {
	p.once.Do(func() {
		p.life.End()
		p.life.Wait()
		p.link.Close()
		p.q.children.Remove(p)
	})
	return nil
}
