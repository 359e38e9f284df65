package redisconn

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/driver"
	"queuelab/backends/internal/envelope"
	"queuelab/queue"
)

// Taken is a message that a Holder has, and that the server remembers until it
// is acked.
type Taken struct {
	Token   string // what the queue's scripts know it by
	Lease   string // tells this taking from another of the same token, where that is needed
	Value   string // as Envelopes made it
	Attempt int    // 0: not counted

	holder  *Holder
	order   int // of taking
	message queue.Message
}

// Tokens are the arguments of a script that settles.
func Tokens(ts []*Taken) []any {
	args := make([]any, len(ts))
	for i := range ts {
		args[i] = &ts[i].Token // a pointer needs no allocation of its own
	}
	return args
}

// Clock is Lua: now, in ms by the server's clock, which all leases run by.
const Clock = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
`

// Held is how one queue takes, settles and gives back. The server's errors are
// returned as they are; the Holder wraps them.
type Held interface {
	// Take takes about so many, and more only where their replies were lost. It
	// returns after about Block at the latest, and may return none. Only one call
	// is under way.
	Take(h *Holder, most int) ([]*Taken, error)
	// Ack and Nack return for each whether it was still this consumer's.
	Ack(ctx context.Context, h *Holder, ts []*Taken) ([]bool, error)
	Nack(ctx context.Context, h *Holder, ts []*Taken) ([]bool, error)
	// Tend is called before the first Take, and then every so often: it keeps
	// leases, and gives back what the dead have left.
	Tend(ctx context.Context, h *Holder) error
	// Leave gives back all that the consumer has taken; ts are those it knows of,
	// in the order in which they were taken.
	Leave(ctx context.Context, h *Holder, ts []*Taken) error
}

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

	err := b.Children.Add(h)
	if err == nil {
		if err = held.Tend(ctx, h); err != nil {
			err = b.Wrap("consumer", err)
		}
	}
	if err == nil {
		err = h.life.Go(func(ctx context.Context) { h.tend(ctx, tend) })
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// NewName is unique over hosts, processes and consumers, and tells a person
// whose it is. It has no spaces.
func NewName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	return fmt.Sprintf("%s-%d-%s", strings.ReplaceAll(host, " ", "-"), os.Getpid(), strings.ToLower(rand.Text()[:8]))
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

// Counts counts by a script what waits, and what consumers have taken.
func (b *Base) Counts(ctx context.Context, s *redis.Script, keys ...string) (queue.Backlog, error) {
	n, err := s.Run(ctx, b.Control, keys).Int64Slice()
	if err == nil && len(n) != 2 {
		err = fmt.Errorf("%d answers, want 2", len(n))
	}
	if err != nil {
		return queue.Backlog{}, b.Wrap("count the backlog", err)
	}
	return queue.Backlog{Ready: n[0], InFlight: n[1], Dead: -1}, nil
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
