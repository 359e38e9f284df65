package redissharded

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/driver"
	"queuelab/backends/internal/redisconn"
	"queuelab/queue"
)

// ErrRecreated: a partition or the group on it was gone, deleted or forgotten by
// the broker, and was created again. What was in it is lost, unless it was
// published again since.
var ErrRecreated = errors.New("a partition or its group was gone and was created again")

// entry is one delivery to this consumer, and its receipt.
type entry struct {
	id      string
	message queue.Message
	part    *partition
}

// partition is one for as long as it is leased to this consumer. Its fields are
// guarded by the consumer's mu.
type partition struct {
	consumer *consumer
	number   int
	token    string            // of the lease
	hand     map[string]*entry // read and not settled
	again    string            // where to go on reading what is pending; "": all that is, is in hand
	leaving  bool              // it is beyond the share: to be given up once the hand is empty
}

type consumer struct {
	q       *sharded
	name    string
	client  *redis.Client
	session *redisconn.Session
	puller  *driver.Puller[*entry]
	acks    *driver.Coalescer[*entry, error]
	life    *driver.Life  // of the keeper
	nudge   chan struct{} // for the keeper: look now
	dealt   chan struct{} // for the read: the partitions have changed
	reading sync.Mutex    // held by a read
	once    sync.Once
	err     error

	mu    sync.Mutex
	parts map[int]*partition
}

// Consumer implements queue.Queue. It has its share of the partitions as soon as
// the others have given up theirs.
func (q *sharded) Consumer(ctx context.Context) (queue.Consumer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := &consumer{
		q: q, name: redisconn.NewName(), client: q.Client(5), life: driver.NewLife(), parts: map[int]*partition{},
		nudge: make(chan struct{}, 1), dealt: make(chan struct{}, 1),
	}
	c.session = redisconn.NewSession(q.Server, c.client)
	c.puller = driver.NewPuller(c.read, c.wakeReader)
	c.acks = driver.NewCoalescer(1000, func(*entry) int { return 0 }, c.settle)
	err := q.Children.Keep(c,
		func() error { return q.Wrap("consumer", q.ensureGroups(ctx, c.client)) },
		func() error { return q.Wrap("consumer", c.balance(ctx)) },
		func() error { return c.life.Go(c.keep) })
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Receive implements queue.Consumer. An entry that is not a message is acked away,
// and is an error of the call after those that are.
func (c *consumer) Receive(ctx context.Context, max int) ([]*queue.Delivery, error) {
	return driver.Receive(ctx, c.puller, max, func(e *entry) (queue.Message, int) { return e.message, 0 })
}

// Ack implements queue.Consumer.
func (c *consumer) Ack(ctx context.Context, ds ...*queue.Delivery) error {
	return queue.Settle(ds, func(fresh []*queue.Delivery) error {
		_, err := driver.Settle(ctx, c.acks, fresh, func(e *entry) bool { return e.part.consumer == c })
		return err
	})
}

// settle acks in one script call, partition by partition.
func (c *consumer) settle(es []*entry, errs []error) {
	var parts []*partition
	of := map[*partition][]int{}
	for i, e := range es {
		if of[e.part] == nil {
			parts = append(parts, e.part)
		}
		of[e.part] = append(of[e.part], i)
	}
	keys, args := []string{c.q.owners(c.q.group)}, []any{c.q.group}
	for _, p := range parts {
		keys = append(keys, c.q.streams[p.number])
		args = append(args, p.number, p.token, len(of[p]))
		for _, i := range of[p] {
			args = append(args, &es[i].id)
		}
	}
	ctx, cancel := c.q.Within()
	defer cancel()
	valid, err := ackScript.Run(ctx, c.client, keys, args...).Int64Slice()
	if err == nil && len(valid) != len(parts) {
		err = fmt.Errorf("%d answers for %d partitions", len(valid), len(parts))
	}
	if err != nil {
		for i := range errs {
			errs[i] = c.q.Wrap("ack", err)
		}
		return // all are still in hand
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, p := range parts {
		for _, i := range of[p] {
			if valid[k] == 0 {
				errs[i] = queue.ErrLeaseLost
			}
			delete(p.hand, es[i].id)
		}
		if p.leaving && len(p.hand) == 0 {
			driver.Signal(c.nudge)
		}
	}
}

// Nack implements queue.Consumer.
func (c *consumer) Nack(context.Context, ...*queue.Delivery) error { return queue.ErrUnsupported }

// Close implements queue.Consumer. It gives up its partitions: what is unsettled
// stays pending, and comes first to whoever gets them.
func (c *consumer) Close() error {
	c.once.Do(func() {
		c.acks.Refuse()
		c.life.End()
		c.puller.Close() // what it returns is pending
		c.life.Wait()
		c.acks.Close(c.q.Timeout)
		ctx, cancel := c.q.Within()
		defer cancel()
		err := leaveScript.Run(ctx, c.client, []string{c.q.members(c.q.group), c.q.owners(c.q.group)}, c.name).Err()
		if err != nil {
			err = fmt.Errorf("redis-sharded close: unsettled messages come again after %v only: %w", c.q.claim, err)
		}
		c.err = errors.Join(err, c.session.Close(), c.client.Close())
		c.q.Children.Remove(c)
	})
	return c.err
}
