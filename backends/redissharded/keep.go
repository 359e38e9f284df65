package redissharded

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"queuelab/backends/internal/driver"
	"queuelab/backends/internal/redisconn"
)

// balanceEvery is how soon the consumers of a group notice each other, at most.
const balanceEvery = 250 * time.Millisecond

// keep renews the leases, and takes and gives up partitions as consumers come and
// go. An error is not reported: the next round tries again, and a lease that was
// lost shows when a delivery is settled.
func (c *consumer) keep(ctx context.Context) {
	tick := time.NewTicker(min(c.q.claim/3, balanceEvery))
	defer tick.Stop()
	trimmed, again := time.Now(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-c.nudge:
		}
		_ = c.balance(ctx)
		// A read of a consumer that was given up for dead may still have been under
		// way: what it was delivered then is pending, and in nobody's hand.
		if now := time.Now(); now.Sub(again) >= c.q.claim {
			again = now
			c.readAgain()
		}
		if now := time.Now(); c.q.trim > 0 && now.Sub(trimmed) >= c.q.trim {
			trimmed = now
			c.trim(ctx)
		}
	}
}

func (c *consumer) trim(ctx context.Context) {
	c.mu.Lock()
	mine := slices.Collect(maps.Keys(c.parts))
	c.mu.Unlock()
	for _, n := range mine {
		redisconn.Trim(ctx, c.client, c.q.streams[n])
	}
}

// wakeReader makes a read under way return soon.
func (c *consumer) wakeReader() {
	driver.Signal(c.dealt)
	c.session.Unblock()
}

// balance renews the lease, gives up what is to be given up, and takes what it is
// given.
func (c *consumer) balance(ctx context.Context) error {
	args := []any{c.name, c.q.claim.Milliseconds(), len(c.q.streams)}
	for _, p := range c.emptied() {
		args = append(args, p.number, p.token)
	}
	bounded, cancel := context.WithTimeout(ctx, c.q.Timeout)
	defer cancel()
	answer, err := balanceScript.Run(bounded, c.client, []string{c.q.members(c.q.group), c.q.owners(c.q.group)}, args...).Slice()
	if err != nil {
		return err
	}
	share, tokens, err := dealt(answer, len(c.q.streams))
	if err != nil {
		return err
	}
	if c.deal(share, tokens) {
		c.wakeReader()
	}
	return nil
}

// emptied are the partitions that can be given up now: all that was read of them
// is settled, and no read of them is under way.
func (c *consumer) emptied() (parts []*partition) {
	leaving := func() (ps []*partition) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, p := range c.parts {
			if p.leaving && len(p.hand) == 0 {
				ps = append(ps, p)
			}
		}
		return ps
	}
	if len(leaving()) == 0 {
		return nil
	}
	// The next read leaves them out; one that began before must end first.
	ended := make(chan struct{})
	go func() {
		c.reading.Lock()
		defer c.reading.Unlock()
		close(ended)
	}()
	for {
		// It may not have begun to block when it is unblocked: again, until it ends.
		c.wakeReader()
		select {
		case <-ended:
			return leaving()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// dealt reads what the script answers.
func dealt(answer []any, partitions int) (share int, tokens map[int]string, err error) {
	tokens = map[int]string{}
	bad := fmt.Errorf("an unexpected answer: %v", answer)
	if len(answer)%2 != 1 {
		return 0, nil, bad
	}
	n, ok := answer[0].(int64)
	if !ok {
		return 0, nil, bad
	}
	for i := 1; i < len(answer); i += 2 {
		number, err := strconv.Atoi(fmt.Sprint(answer[i]))
		token, ok := answer[i+1].(string)
		if err != nil || !ok || number < 0 || number >= partitions {
			return 0, nil, bad
		}
		tokens[number] = token
	}
	return int(n), tokens, nil
}

// deal makes the partitions those that the tokens are for, and marks those beyond
// the share. It reports whether the next read must be another one.
func (c *consumer) deal(share int, tokens map[int]string) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, p := range c.parts {
		if tokens[n] != p.token {
			delete(c.parts, n)
			changed = true
		}
	}
	for n, token := range tokens {
		if c.parts[n] == nil {
			c.parts[n] = &partition{consumer: c, number: n, token: token, hand: map[string]*entry{}, again: "0"}
			changed = true
		}
	}
	kept := 0
	for n := range c.q.streams {
		p := c.parts[n]
		if p == nil {
			continue
		}
		leaving := kept >= share
		if !leaving {
			kept++
		}
		if leaving != p.leaving {
			p.leaving, changed = leaving, true
		}
		if leaving && len(p.hand) == 0 {
			driver.Signal(c.nudge)
		}
	}
	return changed
}
