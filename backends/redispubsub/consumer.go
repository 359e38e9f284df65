package redispubsub

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

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
	head   []byte   // how each message begins on the wire
	values []string // for take alone
	life   context.Context
	stop   context.CancelFunc
	loop   sync.WaitGroup
	once   sync.Once

	mu      sync.Mutex
	sub     *redisconn.Wire
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
	c := &consumer{q: q, arrived: make(chan struct{}, 1), done: make(chan struct{})}
	c.head = redisconn.AppendText(redisconn.AppendText(redisconn.AppendHead(nil, 3), "message"), q.channel)
	c.life, c.stop = context.WithCancel(context.Background())
	err := q.Children.Add(c)
	if err == nil {
		if err = c.subscribe(ctx); err != nil {
			err = fmt.Errorf("redis-pubsub consumer: subscribe: %w", err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed { // by the queue, meanwhile
		return nil, queue.ErrClosed
	}
	c.loop.Go(c.listen)
	return c, nil
}

// subscribe returns once the server has confirmed it.
func (c *consumer) subscribe(ctx context.Context) error {
	sub, err := c.q.Dial(ctx)
	if err != nil {
		return err
	}
	sub.Command("subscribe", c.q.channel)
	if err = sub.Flush(); err == nil {
		sub.Until(time.Now().Add(c.q.Timeout))
		stop := context.AfterFunc(ctx, func() { sub.Break(ctx.Err()) })
		_, err = sub.Answer()
		stop()
		err = cmp.Or(sub.Broken(), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.closed {
		err = queue.ErrClosed
	}
	if err != nil {
		sub.Break(err)
		return err
	}
	c.sub = sub
	return nil
}

// listen puts what comes into the buffer, and never waits for room in it.
func (c *consumer) listen() {
	silent := false
	for c.life.Err() == nil {
		// Only this goroutine replaces sub, so it may read it without the lock.
		sub := c.sub
		sub.Until(time.Now().Add(c.q.Timeout))
		err := c.hear(sub)
		if err == nil {
			silent = false
			continue
		}
		var timeout interface{ Timeout() bool }
		if errors.As(err, &timeout) && timeout.Timeout() && !silent {
			// Nothing was published, or the peer is gone: a ping tells.
			sub.Command("ping")
			if err = sub.Flush(); err == nil {
				silent = true
				continue
			}
		}
		if c.life.Err() != nil {
			return
		}
		silent = false
		c.again(err)
	}
}

// hear takes the next message or other sign of life, and all that has come with
// it: they share a lock and an allocation.
func (c *consumer) hear(sub *redisconn.Wire) error {
	var texts []byte
	var ends []int
	for {
		reply, err := sub.Next()
		if err != nil {
			return err
		}
		if value, ok := bytes.CutPrefix(reply, c.head); ok {
			_, value, _ = bytes.Cut(value, []byte("\n")) // after its length
			texts = append(texts, value[:len(value)-len("\r\n")]...)
			ends = append(ends, len(texts))
		}
		if !sub.Ready() {
			c.put(string(texts), ends)
			return nil
		}
	}
}

// again subscribes anew, and notes the gap.
func (c *consumer) again(cause error) {
	lost := time.Now()
	c.sub.Break(cause)
	for failures := 0; ; {
		err := c.subscribe(c.life)
		if err == nil {
			c.gap(time.Since(lost), cause)
			return
		}
		failures++
		if !redisconn.Sleep(c.done, redisconn.Backoff(failures)) {
			return
		}
	}
}

// gap notes one. Gaps in a row are one: nobody may be receiving, and items is
// bounded.
func (c *consumer) gap(d time.Duration, cause error) {
	c.mu.Lock()
	c.sum.Gaps++
	c.sum.Gap += d
	if n := len(c.items); n > 0 && c.items[n-1].loss != nil && c.items[n-1].loss.Cause != nil {
		c.items[n-1].loss.Gap += d
	} else {
		c.items = append(c.items, item{loss: &LossError{Gap: d, Cause: cause}})
	}
	c.mu.Unlock()
	c.tell()
}

// put puts the messages of texts, each up to its end, into the buffer.
func (c *consumer) put(texts string, ends []int) {
	if len(ends) == 0 {
		return
	}
	c.mu.Lock()
	from := 0
	for i, end := range ends {
		if c.size == c.q.buffer {
			c.drop(len(ends) - i)
			break
		}
		c.items = append(c.items, item{payload: texts[from:end]})
		c.size++
		from = end
	}
	c.mu.Unlock()
	c.tell()
}

// drop notes n messages that have no room: one loss for all in a row.
func (c *consumer) drop(n int) {
	c.sum.Dropped += int64(n)
	if last := c.items[len(c.items)-1].loss; last != nil && last.Dropped > 0 {
		last.Dropped += n
	} else {
		c.items = append(c.items, item{loss: &LossError{Dropped: n}})
	}
}

func (c *consumer) tell() {
	select {
	case c.arrived <- struct{}{}:
	default:
	}
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
	values := c.values[:0]
	for len(values) < min(max, len(c.items)) && c.items[len(values)].loss == nil {
		values = append(values, c.items[len(values)].payload)
	}
	c.values = values
	n := len(values)
	var err error
	if n == 0 && len(c.items) > 0 {
		n, err = 1, c.items[0].loss
	}
	clear(c.items[:n])
	c.items = c.items[n:]
	c.size -= len(values)
	return values, err
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
		if c.sub != nil {
			c.sub.Break(queue.ErrClosed)
		}
		c.mu.Unlock()
		c.stop()
		c.loop.Wait()
		c.q.Children.Remove(c)
	})
	return nil
}
