package redisconn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/driver"
	"queuelab/backends/internal/envelope"
	"queuelab/queue"
)

// Holder is the consumer of every queue on lists and sets whose messages stay
// with the server until they are acked. It implements queue.Consumer.
type Holder struct {
	Client *redis.Client

	base    *Base
	held    Held
	session *Session
	puller  *driver.Puller[*Taken]
	acks    *driver.Coalescer[*Taken, error]
	nacks   *driver.Coalescer[*Taken, error]
	life    *driver.Life
	once    sync.Once
	err     error

	mu    sync.Mutex
	hand  map[*Taken]struct{}
	taken int
}

// holderLimit bounds what one script settles.
const holderLimit = 1000

// NewHolder opens a consumer of the queue that tends so often.
func NewHolder(ctx context.Context, b *Base, held Held, tend time.Duration) (queue.Consumer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h := &Holder{Client: b.Client(6), base: b, held: held, life: driver.NewLife(), hand: map[*Taken]struct{}{}}
	h.session = NewSession(b.Server, h.Client)
	h.puller = driver.NewPuller(h.read, h.session.Unblock)
	size := func(t *Taken) int { return len(t.Token) + len(t.Value) }
	h.acks = driver.NewCoalescer(holderLimit, size, func(ts []*Taken, errs []error) { h.settle("ack", held.Ack, ts, errs) })
	h.nacks = driver.NewCoalescer(holderLimit, size, func(ts []*Taken, errs []error) { h.settle("nack", held.Nack, ts, errs) })

	err := b.Children.Keep(h,
		func() error { return b.Wrap("consumer", held.Tend(ctx, h)) },
		func() error { return h.life.Go(func(ctx context.Context) { h.tend(ctx, tend) }) })
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Do sends a command on the one connection that may block for Block.
func (h *Holder) Do(args ...any) (Reply, error) { return h.session.Do(args...) }

// Run runs a script that belongs to no caller.
func (h *Holder) Run(s *redis.Script, keys []string, args ...any) (Reply, error) {
	ctx, cancel := h.base.Within()
	defer cancel()
	return Run(ctx, h.Client, s, keys, args...)
}

// Flags runs a script that answers 1 or 0 for each of n.
func (h *Holder) Flags(ctx context.Context, n int, s *redis.Script, keys []string, args ...any) ([]bool, error) {
	r, err := Run(ctx, h.Client, s, keys, args...)
	if err != nil {
		return nil, err
	}
	if got, err := r.Array(); err != nil || got != n {
		return nil, fmt.Errorf("%d answers for %d deliveries: %w", got, n, errors.Join(err, errReply))
	}
	flags := make([]bool, n)
	for i := range flags {
		flag, err := r.Int()
		if err != nil {
			return nil, err
		}
		flags[i] = flag > 0
	}
	return flags, nil
}

// Hand counts the tokens of what was taken and is not settled.
func (h *Holder) Hand() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	tokens := make(map[string]int, len(h.hand))
	for t := range h.hand {
		tokens[t.Token]++
	}
	return tokens
}

func (h *Holder) tend(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			// The next round tries again, and what was lost shows when it is settled.
			_ = h.held.Tend(ctx, h)
		}
	}
}

// read takes messages into the hand, and acks away what is none.
func (h *Holder) read(most int) ([]*Taken, error) {
	ts, err := h.held.Take(h, most)
	size := 0
	for _, t := range ts {
		size += len(t.Value)
	}
	bodies, kept := make([]byte, 0, size), ts[:0]
	var foreign []*Taken
	var why error
	h.mu.Lock()
	for _, t := range ts {
		m, e := envelope.Decode(t.Value, &bodies)
		if e != nil {
			foreign, why = append(foreign, t), e
			continue
		}
		t.holder, t.order, t.message = h, h.taken, m
		h.taken++
		h.hand[t] = struct{}{}
		kept = append(kept, t)
	}
	h.mu.Unlock()
	if len(foreign) > 0 {
		ctx, cancel := h.base.Within()
		defer cancel()
		_, e := h.held.Ack(ctx, h, foreign)
		err = errors.Join(err, fmt.Errorf("dropped %d values of the queue %s: %w", len(foreign), h.base.Name, why), e)
	}
	if err != nil {
		err = h.base.Wrap("receive", err)
	}
	return kept, err
}

// Receive implements queue.Consumer. A value that is not a message is dropped, and
// is an error of the call after those that are.
func (h *Holder) Receive(ctx context.Context, max int) ([]*queue.Delivery, error) {
	return driver.Receive(ctx, h.puller, max, func(t *Taken) (queue.Message, int) { return t.message, t.Attempt })
}

// Ack implements queue.Consumer.
func (h *Holder) Ack(ctx context.Context, ds ...*queue.Delivery) error {
	return queue.Settle(ds, func(fresh []*queue.Delivery) error { return h.share(ctx, h.acks, fresh) })
}

// Nack implements queue.Consumer.
func (h *Holder) Nack(ctx context.Context, ds ...*queue.Delivery) error {
	return queue.Settle(ds, func(fresh []*queue.Delivery) error { return h.share(ctx, h.nacks, fresh) })
}

func (h *Holder) share(ctx context.Context, to *driver.Coalescer[*Taken, error], ds []*queue.Delivery) error {
	_, err := driver.Settle(ctx, to, ds, func(t *Taken) bool { return t.holder == h })
	return err
}

func (h *Holder) settle(op string, do func(context.Context, *Holder, []*Taken) ([]bool, error), ts []*Taken, errs []error) {
	ctx, cancel := h.base.Within()
	defer cancel()
	mine, err := do(ctx, h, ts)
	if err != nil {
		err = h.base.Wrap(op, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, t := range ts {
		if errs[i] = err; err != nil {
			continue // still in hand
		}
		delete(h.hand, t)
		if !mine[i] {
			errs[i] = queue.ErrLeaseLost
		}
	}
}

// Close implements queue.Consumer. All that is unsettled is given back.
func (h *Holder) Close() error {
	h.once.Do(func() {
		h.acks.Refuse()
		h.nacks.Refuse()
		h.life.End()
		h.puller.Close() // what it returns is in the hand, too
		h.life.Wait()
		h.acks.Close(h.base.Timeout)
		h.nacks.Close(h.base.Timeout)
		h.mu.Lock()
		hand := slices.SortedFunc(maps.Keys(h.hand), func(a, b *Taken) int { return a.order - b.order })
		h.mu.Unlock()
		ctx, cancel := h.base.Within()
		defer cancel()
		err := h.held.Leave(ctx, h, hand)
		if err != nil {
			err = h.base.Wrap("close", fmt.Errorf("unsettled messages come again later: %w", err))
		}
		h.err = errors.Join(err, h.session.Close(), h.Client.Close())
		h.base.Children.Remove(h)
	})
	return h.err
}
