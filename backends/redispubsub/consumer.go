package redispubsub

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/driver"
	"queuelab/backends/internal/envelope"
	"queuelab/backends/internal/redisconn"
	"queuelab/queue"
)

// LossError tells that messages did not reach this consumer. Receive returns it
// once for each time, after the messages that came before.
type LossError struct {
	Dropped int           // messages that the full buffer had no room for
	Foreign int           // values on the channel that are not messages of this queue
	Gap     time.Duration // without a subscription: how many were missed nobody knows
	Cause   error         // of the gap
}

func (e *LossError) Error() string {
	switch {
	case e.Cause != nil:
		return fmt.Sprintf("redis-pubsub receive: not subscribed for %v, what was published then is lost: %v",
			e.Gap.Round(time.Millisecond), e.Cause)
	case e.Foreign > 0:
		return fmt.Sprintf("redis-pubsub receive: %d values on the channel are not messages of this queue", e.Foreign)
	}
	return fmt.Sprintf("redis-pubsub receive: the consumer is too slow, %d messages had no room in its buffer and are lost", e.Dropped)
}

// Unwrap returns the cause of a gap.
func (e *LossError) Unwrap() error { return e.Cause }

// Losses are what a consumer has missed since it was opened.
type Losses struct {
	Dropped int64         // messages that the full buffer had no room for
	Foreign int64         // values that are not messages of this queue
	Gaps    int64         // times without a subscription
	Gap     time.Duration // their sum
}

// LossCounter is implemented by the consumers of this package.
type LossCounter interface{ Losses() Losses }

type consumer struct {
	q      *pubsub
	client *redis.Client
	values []string     // for take alone
	life   *driver.Life // of the one that listens
	once   sync.Once
	err    error

	mu      sync.Mutex
	sub     *redis.PubSub
	items   []item // a loss stands where its messages are missing
	size    int    // messages among the items
	sum     Losses
	closed  bool
	arrived chan struct{}
	done    chan struct{}
}

// item is a message, or a loss.
type item struct {
	payload string
	loss    *LossError
}

var _ LossCounter = (*consumer)(nil)

// Consumer implements queue.Queue.
func (q *pubsub) Consumer(ctx context.Context) (queue.Consumer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := &consumer{q: q, client: q.Client(2), life: driver.NewLife(), arrived: make(chan struct{}, 1), done: make(chan struct{})}
	err := q.Children.Keep(c, func() error {
		early, err := c.subscribe(ctx)
		if err != nil {
			return fmt.Errorf("redis-pubsub consumer: subscribe: %w", err)
		}
		c.putAll(early)
		return c.life.Go(c.listen)
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// subscribe returns once the server has confirmed it, with what came from one
// channel before another was confirmed. go-redis' own Subscribe does not wait for
// that, and swallows its error.
func (c *consumer) subscribe(ctx context.Context) (early []item, err error) {
	sub := c.client.Subscribe(ctx, c.q.channels...)
	if len(c.q.patterns) > 0 {
		err = sub.PSubscribe(ctx, c.q.patterns...)
	}
	for open := len(c.q.channels) + len(c.q.patterns); open > 0 && err == nil; {
		var v any
		v, err = sub.ReceiveTimeout(ctx, c.q.Timeout)
		switch v := v.(type) {
		case *redis.Subscription:
			open--
		case *redis.Message:
			early = append(early, item{payload: v.Payload})
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.closed {
		err = queue.ErrClosed
	}
	if err != nil {
		_ = sub.Close() // err says more
		return nil, err
	}
	c.sub = sub
	return early, nil
}

// listen puts what comes into the buffer, and never waits for room in it.
func (c *consumer) listen(ctx context.Context) {
	for ctx.Err() == nil {
		// Only this goroutine replaces sub, so it may read it without the lock.
		v, err := redisconn.Hear(ctx, c.sub, c.q.Timeout)
		if err == nil {
			if m, ok := v.(*redis.Message); ok {
				c.put(item{payload: m.Payload})
			}
			continue
		}
		if ctx.Err() != nil {
			return
		}
		c.again(ctx, err)
	}
}

// again subscribes anew, and notes the gap.
func (c *consumer) again(ctx context.Context, cause error) {
	lost := time.Now()
	_ = c.sub.Close() // it is broken
	for failures := 0; ; {
		early, err := c.subscribe(ctx)
		if err == nil {
			gap := time.Since(lost)
			c.mu.Lock()
			c.sum.Gaps++
			c.sum.Gap += gap
			c.mu.Unlock()
			c.put(item{loss: &LossError{Gap: gap, Cause: cause}})
			c.putAll(early)
			return
		}
		failures++
		if !driver.Sleep(ctx.Done(), driver.Backoff(failures)) {
			return
		}
	}
}

func (c *consumer) putAll(items []item) {
	for _, i := range items {
		c.put(i)
	}
}

func (c *consumer) put(i item) {
	c.mu.Lock()
	switch {
	case i.loss != nil:
		// Gaps in a row are one: nobody may be receiving, and items is bounded.
		if n := len(c.items); n > 0 && c.items[n-1].loss != nil && c.items[n-1].loss.Cause != nil {
			c.items[n-1].loss.Gap += i.loss.Gap
		} else {
			c.items = append(c.items, i)
		}
	case c.size < c.q.buffer:
		c.items = append(c.items, i)
		c.size++
	default:
		c.sum.Dropped++
		// One loss for all that are dropped in a row.
		if last := c.items[len(c.items)-1].loss; last != nil && last.Dropped > 0 {
			last.Dropped++
		} else {
			c.items = append(c.items, item{loss: &LossError{Dropped: 1}})
		}
	}
	c.mu.Unlock()
	driver.Signal(c.arrived)
}

// Receive implements queue.Consumer.
func (c *consumer) Receive(ctx context.Context, max int) ([]*queue.Delivery, error) {
	if max < 1 {
		return nil, fmt.Errorf("redis-pubsub receive: max is %d, want at least 1", max)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for {
		ds, err := c.take(max)
		if len(ds) > 0 || err != nil {
			return ds, err
		}
		select {
		case <-c.arrived:
		case <-c.done:
			return nil, queue.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take returns messages up to the next loss, or that loss.
func (c *consumer) take(max int) ([]*queue.Delivery, error) {
	values, err := c.next(max)
	if len(values) == 0 {
		return nil, err
	}
	ds, foreign, _ := envelope.Deliveries(values)
	clear(values)
	if foreign == 0 {
		return ds, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sum.Foreign += int64(foreign)
	loss := &LossError{Foreign: foreign}
	if len(ds) == 0 {
		return nil, loss
	}
	c.items = slices.Insert(c.items, 0, item{loss: loss})
	return ds, nil
}

// next takes values out of the buffer, up to the next loss, or that loss.
func (c *consumer) next(max int) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, queue.ErrClosed
	}
	c.values = c.values[:0]
	for _, i := range c.items[:min(max, len(c.items))] {
		if i.loss != nil {
			break
		}
		c.values = append(c.values, i.payload)
	}
	n := len(c.values)
	var err error
	if n == 0 && len(c.items) > 0 {
		n, err = 1, c.items[0].loss
	}
	clear(c.items[:n])
	c.items = c.items[n:]
	c.size -= len(c.values)
	return c.values, err
}

// Losses implements LossCounter.
func (c *consumer) Losses() Losses {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sum
}

// Ack implements queue.Consumer. Nobody waits for it: it settles in this process.
func (c *consumer) Ack(_ context.Context, ds ...*queue.Delivery) error {
	return queue.Settle(ds, func([]*queue.Delivery) error { return nil })
}

// Nack implements queue.Consumer.
func (c *consumer) Nack(context.Context, ...*queue.Delivery) error { return queue.ErrUnsupported }

// Close implements queue.Consumer.
func (c *consumer) Close() error {
	c.once.Do(func() {
		c.mu.Lock()
		c.closed = true
		close(c.done)
		sub := c.sub
		c.mu.Unlock()
		c.life.End()
		if sub != nil {
			_ = sub.Close() // it may be broken already; this ends the read on it
		}
		c.life.Wait()
		c.err = c.client.Close()
		c.q.Children.Remove(c)
	})
	return c.err
}
