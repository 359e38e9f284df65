package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"queuelab/backends/internal/driver"
	"queuelab/backends/internal/envelope"
	"queuelab/queue"
)

// expiry is how long a request for messages stays with the server.
const expiry = 5 * time.Second

type consumer struct {
	q     *stream
	link  *link
	asker *asker
	inbox string         // where messages, and what the server says of requests, arrive
	news  chan *nats.Msg // what has arrived
	sub   *nats.Subscription
	done  chan struct{}
	once  sync.Once
	err   error

	receiving sync.Mutex // guards what only Receive uses, below, and holds off Close
	asked     int        // messages that were asked for and have not come
	until     time.Time  // when every request has ended, whatever was heard of it
	failures  int        // in a row

	mu   sync.Mutex
	held map[*nats.Msg]struct{} // returned by Receive and not settled
}

// Consumer implements queue.Queue.
func (q *stream) Consumer(ctx context.Context) (queue.Consumer, error) {
	l, err := q.dial(ctx, "consumer")
	if err != nil {
		return nil, q.wrap(ctx, "consumer", err)
	}
	c := &consumer{
		q: q, link: l, inbox: nats.NewInbox(), done: make(chan struct{}), held: map[*nats.Msg]struct{}{},
		news: make(chan *nats.Msg, 2*q.prefetch+64), // a full one would make the library drop messages
	}
	if c.asker, err = newAsker(l); err == nil {
		c.sub, err = l.ChanSubscribe(c.inbox, c.news)
	}
	if err != nil {
		l.Close()
		return nil, q.wrap(ctx, "consumer", err)
	}
	if err := q.children.Keep(c); err != nil {
		return nil, q.wrap(ctx, "consumer", err)
	}
	return c, nil
}

// Receive implements queue.Consumer.
func (c *consumer) Receive(ctx context.Context, max int) ([]*queue.Delivery, error) {
	if max < 1 {
		return nil, fmt.Errorf("nats receive: max is %d, want at least 1", max)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.receiving.Lock()
	defer c.receiving.Unlock()
	select {
	case <-c.done:
		return nil, queue.ErrClosed
	default:
	}
	ds, err := c.receive(ctx, max)
	switch {
	case err == nil:
		c.failures = 0
	case ctx.Err() != nil || errors.Is(err, queue.ErrClosed):
	default:
		c.failures++
		err = fmt.Errorf("nats receive: %w", err)
	}
	return ds, err
}

func (c *consumer) receive(ctx context.Context, max int) ([]*queue.Delivery, error) {
	timer := time.NewTimer(driver.Backoff(c.failures))
	defer timer.Stop()
	for paused := c.failures > 0; ; paused = false {
		up, down := c.link.state()
		if paused {
			down = nil
		} else {
			select {
			case <-up:
				if err := c.pull(); err != nil {
					return nil, err
				}
			default:
				return nil, errDown
			}
			timer.Reset(time.Until(c.until))
		}
		select {
		case m := <-c.news:
			if ds, err := c.take(m, max); len(ds) > 0 || err != nil {
				return ds, err
			}
		case <-timer.C: // the pause is over, or the requests are, and nobody said so
			c.asked = 0
		case <-down:
			c.asked = 0
			return nil, errDown
		case <-c.done:
			return nil, queue.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// pull asks for more messages once half of the prefetch is used up.
func (c *consumer) pull() error {
	ahead := c.asked + len(c.news)
	if ahead > c.q.prefetch/2 {
		return nil
	}
	n := c.q.prefetch - ahead
	request, err := json.Marshal(map[string]any{"batch": n, "expires": expiry})
	if err != nil {
		return err
	}
	if err := c.link.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+c.q.name+"."+c.q.group, c.inbox, request); err != nil {
		return err
	}
	const late = 2 * time.Second
	c.asked += n
	c.until = time.Now().Add(expiry + late)
	return nil
}

// take makes deliveries of m and of what else is there, at most max. There may
// be none: then m was the server's word about a request.
func (c *consumer) take(m *nats.Msg, max int) (ds []*queue.Delivery, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if m.Subject == c.inbox {
			err = c.told(m)
		} else {
			var d *queue.Delivery
			if c.asked > 0 {
				c.asked--
			}
			if d, err = delivery(m); err == nil {
				ds = append(ds, d)
				c.held[m] = struct{}{}
			} else {
				_ = c.link.Publish(m.Reply, []byte("+TERM")) // else it comes again, for ever
			}
		}
		if err != nil || len(ds) == max {
			break
		}
		select {
		case m = <-c.news:
			continue
		default:
		}
		break
	}
	if len(ds) > 0 {
		err = nil // seen again by the next request
	}
	return ds, err
}

func delivery(m *nats.Msg) (*queue.Delivery, error) {
	meta, err := m.Metadata()
	if err != nil {
		return nil, err
	}
	bodies := make([]byte, 0, len(m.Data))
	message, err := envelope.Decode(string(m.Data), &bodies)
	if err != nil {
		return nil, fmt.Errorf("dropped what somebody else has published to %s: %w", m.Subject, err)
	}
	return queue.NewDelivery(message, int(meta.NumDelivered), m), nil
}

// told reads the server's word about a request: it is over, with so many
// messages still owed.
func (c *consumer) told(m *nats.Msg) error {
	owed, err := strconv.Atoi(m.Header.Get("Nats-Pending-Messages"))
	if err != nil {
		owed = c.asked
	}
	c.asked = max(0, c.asked-owed)
	status, words := m.Header.Get("Status"), m.Header.Get("Description")
	switch {
	case status == "404", status == "408", strings.EqualFold(words, "Batch Completed"):
		return nil // nothing came in time
	case noResponders(m):
		words = "the consumer is not there: was the queue deleted, or is the server still starting?"
	}
	return fmt.Errorf("status %s: %s", status, words)
}

// Ack implements queue.Consumer.
func (c *consumer) Ack(ctx context.Context, ds ...*queue.Delivery) error {
	return c.settle(ctx, "ack", "+ACK", ds)
}

// Nack implements queue.Consumer.
func (c *consumer) Nack(ctx context.Context, ds ...*queue.Delivery) error {
	return c.settle(ctx, "nack", "-NAK", ds)
}

func (c *consumer) settle(ctx context.Context, op, word string, ds []*queue.Delivery) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return queue.Settle(ds, func(fresh []*queue.Delivery) error {
		select {
		case <-c.done:
			return queue.ErrClosed
		default:
		}
		within, cancel := context.WithTimeout(ctx, c.q.timeout)
		defer cancel()
		msgs := make([]*nats.Msg, len(fresh))
		for i, d := range fresh {
			msgs[i] = d.Receipt().(*nats.Msg)
		}
		errs := c.say(within, word, msgs)
		for i, err := range errs {
			if err != nil {
				errs[i] = fmt.Errorf("nats %s: message %s: %w", op, fresh[i].ID, err)
			}
		}
		return driver.Each(errs)
	})
}

// say settles messages and returns one error for each.
func (c *consumer) say(ctx context.Context, word string, msgs []*nats.Msg) []error {
	out := make([]*nats.Msg, len(msgs))
	for i, m := range msgs {
		out[i] = &nats.Msg{Subject: m.Reply, Data: []byte(word)}
	}
	errs := make([]error, len(msgs))
	answers := c.asker.ask(ctx, out)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, a := range answers {
		switch {
		case a.msg == nil:
			errs[i] = a.err
		case noResponders(a.msg):
			errs[i] = errors.New("the consumer is gone: was the queue deleted?")
		default:
			delete(c.held, msgs[i])
		}
	}
	return errs
}

// Close implements queue.Consumer.
func (c *consumer) Close() error {
	c.once.Do(func() {
		close(c.done)
		c.receiving.Lock()
		defer c.receiving.Unlock()
		if err := c.giveBack(); err != nil {
			c.err = fmt.Errorf("nats close: what was not settled comes again only after the ack-wait of %v: %w", c.q.ackWait, err)
		}
		c.link.Close()
		c.q.children.Remove(c)
	})
	return c.err
}

// giveBack nacks what was not settled, and what has come or still comes without
// having been received.
func (c *consumer) giveBack() error {
	ctx, cancel := context.WithTimeout(context.Background(), c.q.timeout)
	defer cancel()
	const patience = time.Second // with a server that may just come back
	coming, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if err := c.link.await(coming); err != nil {
		return err
	}
	c.mu.Lock()
	msgs := make([]*nats.Msg, 0, len(c.held)+len(c.news))
	for m := range c.held {
		msgs = append(msgs, m)
	}
	c.mu.Unlock()
	// When the answer to the flush is here, so is all that the server sent
	// before it heard of the end of the subscription.
	if err := c.sub.Drain(); err != nil {
		return err
	}
	if err := c.link.FlushWithContext(ctx); err != nil {
		return err
	}
	for len(c.news) > 0 {
		if m := <-c.news; m.Subject != c.inbox {
			msgs = append(msgs, m)
		}
	}
	if len(msgs) == 0 {
		return nil
	}
	// Nobody answers for a consumer that is gone.
	_, err := c.q.js.Consumer(ctx, c.q.name, c.q.group)
	if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return errors.Join(c.say(ctx, "-NAK", msgs)...)
}
