package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/driver"
	"queuelab/backends/internal/redisconn"
	"queuelab/queue"
)

// ErrRecreated: the stream or the group was gone, deleted or forgotten by the
// broker, and was created again. What was in it is lost, unless it was published
// again since.
var ErrRecreated = errors.New("the stream or its group was gone and was created again")

// GoneError: entries were pending and their bodies are gone, deleted or trimmed
// by somebody else. They were acked away.
type GoneError struct{ Entries int }

func (e *GoneError) Error() string {
	return fmt.Sprintf("%d pending entries had been deleted or trimmed by somebody else: acked away", e.Entries)
}

// entry is one delivery to this consumer, and its receipt.
type entry struct {
	id       string
	attempt  int
	message  queue.Message
	body     bool // it still has its fields
	consumer *consumer

	// Guarded by the consumer's mu.
	lost     bool // its lease is
	nacked   bool // a nack of it is under way or was done
	askedAck bool // an earlier ack of it has an unknown outcome
	askedNak bool
}

type consumer struct {
	q       *streams
	name    string
	client  *redis.Client
	session *redisconn.Session
	puller  *driver.Puller[*entry]
	acks    *driver.Coalescer[*entry, error]
	nacks   *driver.Coalescer[*entry, error]
	life    *driver.Life // of the keeper
	once    sync.Once
	err     error

	mu   sync.Mutex
	hand map[string]*entry // read and not settled: their leases are extended

	// Only for the goroutine that reads.
	nextClaim time.Time
	cursor    string // of the claim under way; "0-0" begins anew
	rereadAt  string // where to go on reading the own pending entries; "" for not
	moreFreed bool   // more may have been given back than the last take took
}

// Consumer implements queue.Queue.
func (q *streams) Consumer(ctx context.Context) (queue.Consumer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := &consumer{
		q: q, name: redisconn.NewName(), client: q.Client(6), life: driver.NewLife(),
		hand: map[string]*entry{}, cursor: "0-0", nextClaim: time.Now(),
	}
	c.session = redisconn.NewSession(q.Server, c.client)
	c.puller = driver.NewPuller(c.read, c.session.Unblock)
	c.acks = driver.NewCoalescer(scriptIDs, noSize, func(es []*entry, errs []error) { c.settle(opAck, es, errs) })
	c.nacks = driver.NewCoalescer(scriptIDs, noSize, func(es []*entry, errs []error) { c.settle(opNack, es, errs) })

	err := q.Children.Keep(c,
		func() error { return q.Wrap("consumer", q.ensureGroup(ctx, c.client)) },
		func() error { return q.Wrap("consumer", c.extend(ctx)) },
		func() error { return c.life.Go(c.keep) })
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Receive implements queue.Consumer. An entry that is not a message is acked away,
// and is an error of the call after those that are.
func (c *consumer) Receive(ctx context.Context, max int) ([]*queue.Delivery, error) {
	return driver.Receive(ctx, c.puller, max, func(e *entry) (queue.Message, int) {
		if c.q.noAck {
			return e.message, 0
		}
		return e.message, e.attempt
	})
}
