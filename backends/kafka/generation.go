package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"queuelab/queue"
)

// generation is what the group dealt out to this consumer, until it deals
// again. Its fields are guarded by the consumer's mutex.
type generation struct {
	c     *consumer
	gen   *kafkago.Generation
	parts []*assigned

	stopped bool          // nothing is fetched or handed out any more
	over    bool          // nothing can be committed any more
	inHand  int           // handed out and not done
	settled chan struct{} // signalled when the above or a commit moves

	gathering *commit // what the next commit carries
	busy      bool    // a commit is under way
}

// assigned is one partition in one generation.
type assigned struct {
	g         *generation
	id        int
	start     int64 // where fetching begins
	buffer    []*queue.Delivery
	space     chan struct{} // signalled when the buffer wants more
	track     tracker
	committed int64
}

// receipt is what it takes to settle a delivery.
type receipt struct {
	part   *assigned
	offset int64
}

// begin makes gen the one that Receive takes from.
func (c *consumer) begin(gen *kafkago.Generation) *generation {
	g := &generation{c: c, gen: gen, settled: make(chan struct{}, 1)}
	for _, a := range gen.Assignments[c.q.topic] {
		g.parts = append(g.parts, &assigned{g: g, id: a.ID, start: a.Offset, space: make(chan struct{}, 1)})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current, c.failure = g, nil
	return g
}

// run serves the generation until the group ends it. The group deals again
// only after run has returned.
func (g *generation) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var fetchers sync.WaitGroup
	for _, p := range g.parts {
		fetchers.Go(func() { p.fetch(ctx) })
	}
	<-ctx.Done()
	fetchers.Wait()

	g.c.mu.Lock()
	g.stopped = true
	if g.c.current == g {
		g.c.current = nil
	}
	for _, p := range g.parts {
		p.buffer = nil
	}
	g.c.mu.Unlock()
	g.drain()
}

// drain gives what is in hand a while to be settled, which the coordinator
// still takes from this generation: every delivery that makes it is one that
// does not come twice. It must end well within the session, because nobody
// sends heartbeats meanwhile. When the consumer closes only a commit that is
// under way is waited for.
func (g *generation) drain() {
	limit := time.NewTimer(min(g.c.q.session/4, time.Second))
	defer limit.Stop()
	closing := g.c.ctx.Done()
	for {
		g.c.mu.Lock()
		wait := !g.over && (g.busy || g.inHand > 0 && !g.c.closed)
		if !wait {
			g.over = true
		}
		g.c.mu.Unlock()
		if !wait {
			return
		}
		select {
		case <-g.settled:
		case <-closing:
			closing = nil
		case <-limit.C:
			g.c.mu.Lock()
			g.over = true
			g.c.mu.Unlock()
		}
	}
}

// take hands out at most max deliveries, a fair share of each partition first,
// beginning with another one each turn.
func (g *generation) take(max, turn int) []*queue.Delivery {
	if g.stopped || g.over {
		return nil
	}
	ready, total := 0, 0
	for _, p := range g.parts {
		if n := p.ready(); n > 0 {
			ready++
			total += n
		}
	}
	if ready == 0 {
		return nil
	}
	out := make([]*queue.Delivery, 0, min(max, total))
	for share := (max + ready - 1) / ready; len(out) < cap(out); share = max {
		for i := range g.parts {
			p := g.parts[(turn+i)%len(g.parts)]
			out = p.handOut(out, min(share, p.ready(), cap(out)-len(out)))
		}
	}
	g.inHand += len(out)
	return out
}

// ready counts what may be handed out: nothing while too much is done beyond a
// delivery that is not, since all of that would come again after a crash.
func (p *assigned) ready() int {
	if p.track.held >= p.g.c.q.maxUncommitted {
		return 0
	}
	return len(p.buffer)
}

func (p *assigned) handOut(out []*queue.Delivery, n int) []*queue.Delivery {
	for _, d := range p.buffer[:n] {
		p.track.add(d.Receipt().(*receipt).offset)
		out = append(out, d)
	}
	clear(p.buffer[:n])
	p.buffer = p.buffer[n:]
	if len(p.buffer) < p.g.c.q.prefetch {
		signal(p.space)
	}
	return out
}

// done marks an offset as done, and reports whether that is still to be
// committed: not if it was, nor if the offset is beyond one that is not done.
func (p *assigned) done(offset int64) bool {
	held := p.track.held
	if p.track.done(offset) {
		p.g.inHand--
		signal(p.g.settled)
	}
	if held >= p.g.c.q.maxUncommitted && p.track.held < held {
		signal(p.g.c.wake)
	}
	return p.track.next > offset && p.committed <= offset
}

// commit is one request to the coordinator, for all who wait for it.
type commit struct {
	done chan struct{}
	err  error // valid once done is closed
}

func (c *commit) wait(ctx context.Context) error {
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// nextCommit returns the commit that carries what is done by now. It is sent
// when the one under way has come back, and takes along what gathers until then.
func (g *generation) nextCommit() *commit {
	if g.gathering == nil {
		g.gathering = &commit{done: make(chan struct{})}
	}
	if !g.busy {
		g.busy = true
		g.c.work.Go(g.commit)
	}
	return g.gathering
}

// commit sends until nothing gathers.
func (g *generation) commit() {
	c := g.c
	c.mu.Lock()
	defer c.mu.Unlock()
	for g.gathering != nil {
		now := g.gathering
		g.gathering = nil
		offsets := map[int]int64{}
		for _, p := range g.parts {
			if p.track.next > p.committed {
				offsets[p.id] = p.track.next
			}
		}
		c.mu.Unlock()
		now.err = g.send(offsets)
		c.mu.Lock()
		if now.err == nil {
			for _, p := range g.parts {
				p.committed = max(p.committed, offsets[p.id])
			}
		}
		if errors.Is(now.err, queue.ErrLeaseLost) {
			g.over = true
		}
		close(now.done)
	}
	g.busy = false
	signal(g.settled)
}

func (g *generation) send(offsets map[int]int64) error {
	if len(offsets) == 0 {
		return nil
	}
	err := g.gen.CommitOffsets(map[string]map[int]int64{g.c.q.topic: offsets})
	for _, gone := range []kafkago.Error{
		kafkago.IllegalGeneration, kafkago.UnknownMemberId, kafkago.RebalanceInProgress, kafkago.FencedInstanceID,
	} {
		if errors.Is(err, gone) {
			return fmt.Errorf("%w: %w", queue.ErrLeaseLost, err)
		}
	}
	if err != nil {
		return fmt.Errorf("kafka: commit: %w", err)
	}
	return nil
}
