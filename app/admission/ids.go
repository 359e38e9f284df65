package admission

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/app/sale"
)

//go:embed ids.lua
var idsSource string

const (
	idsKey = "seckill:ids"
	// idsBlock is how many ids one round trip brings.
	idsBlock = 256
	// idsFor is how long a block is used, so that ids of all instances are in the
	// order of their clicks to this much.
	idsFor = 10 * time.Millisecond
	// idsTries bounds the round trips for one block: a lost one costs only numbers.
	idsTries = 2
)

// Counter makes ids of a counter in Redis that all instances share: of Redis'
// own clock in milliseconds, and a number that grows within each. They are
// unique while that clock does not go back; if it does, while the counter is
// kept as well. A Redis that comes back without its counter repeats none, since
// time has passed. It implements sale.IDs.
type Counter struct {
	client redis.UniversalClient
	script *redis.Script
	now    func() time.Time

	mu       sync.Mutex
	ms       int64 // of the newest block
	next     int64
	end      int64
	until    time.Time
	fetching *fetch
}

// fetch is a round trip for a block, and all who wait for it.
type fetch struct {
	done chan struct{}
	err  error
}

// IDs is a counter in the gate's Redis, beside the vouchers.
func (g *Redis) IDs() *Counter {
	return &Counter{client: g.client, script: redis.NewScript(idsSource), now: time.Now}
}

// Next implements sale.IDs.
func (c *Counter) Next() (sale.ID, error) {
	for {
		c.mu.Lock()
		if c.next < c.end && c.now().Before(c.until) {
			ms, n := c.ms, c.next
			c.next++
			c.mu.Unlock()
			return sale.CountedID(ms, n)
		}
		f := c.fetching
		if f == nil {
			f = &fetch{done: make(chan struct{})}
			c.fetching = f
			go c.fetch(f, c.ms)
		}
		c.mu.Unlock()
		<-f.done
		if f.err != nil {
			return 0, f.err
		}
	}
}

// fetch gets a block. The client's timeouts bound it.
func (c *Counter) fetch(f *fetch, known int64) {
	var ms, first int64
	var errs error
	for range idsTries {
		got, err := c.script.Run(context.Background(), c.client, []string{idsKey}, idsBlock, sale.MaxCount, known).StringSlice()
		if err == nil {
			ms, first, err = block(got)
		}
		if err == nil {
			errs = nil
			break
		}
		errs = errors.Join(errs, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if errs != nil {
		f.err = fmt.Errorf("ids from Redis: %w", errs)
	} else {
		c.ms, c.next, c.end, c.until = ms, first, first+idsBlock, c.now().Add(idsFor)
	}
	c.fetching = nil
	close(f.done)
}

func block(got []string) (ms, first int64, err error) {
	if len(got) != 2 {
		return 0, 0, fmt.Errorf("%w: %q", errAnswer, got)
	}
	ms, err1 := strconv.ParseInt(got[0], 10, 64)
	first, err2 := strconv.ParseInt(got[1], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return 0, 0, fmt.Errorf("%w: %w", errAnswer, err)
	}
	return ms, first, nil
}
