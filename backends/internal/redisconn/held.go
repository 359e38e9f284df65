package redisconn

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"

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

// NewName is unique over hosts, processes and consumers, and tells a person
// whose it is. It has no spaces.
func NewName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	return fmt.Sprintf("%s-%d-%s", strings.ReplaceAll(host, " ", "-"), os.Getpid(), strings.ToLower(rand.Text()[:8]))
}

// HeldMessages is what a queue is capable of whose consumer is a Holder, and whose
// scripts tell whose a message is.
func (b *Base) HeldMessages() queue.Capabilities {
	return queue.Capabilities{
		Guarantee:     queue.AtLeastOnce,
		Confirm:       b.Facts.Confirm(),
		AckConfirmed:  true,
		Attempts:      queue.CountedByBroker,
		Nack:          true,
		OrderedPerKey: true,
		Stored:        true,
		Durable:       b.Facts.Durable(),
		Shared:        true,
		LeaseFenced:   true,
	}
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
