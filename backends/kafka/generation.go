package kafka

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"queuelab/queue"
)

// generation is what the group dealt out to this consumer, until it deals
// again. Its fields are guarded by the consumer's mutex.
type generation struct {
	c     *consumer
	deal  deal
	parts []*assigned

	stopped bool          // nothing is fetched or handed out any more
	over    bool          // nothing can be committed any more
	moved   chan struct{} // signalled when something was settled or committed

	gathering *answer // to the commit that takes along what is done by now
	busy      bool    // a commit is under way
}

// deal is what a client library was dealt.
type deal struct {
	generation int
	offsets    map[int]int64 // by partition, where the group is; negative: nothing was committed yet
	committer
}

// committer commits offsets by partition, for one generation. An error of the
// group's coordinator is a kafkago.Error.
type committer interface {
	commit(offsets map[int]int64) error
}

// assigned is one partition, for as long as the group leaves it here.
type assigned struct {
	c         *consumer
	id        int
	next      int64 // what to fetch next, negative: the first there is; used by the one that fetches
	brought   int   // by the last fetch
	buffer    []*queue.Delivery
	space     chan struct{} // signalled when the buffer wants more
	track     tracker
	committed int64 // what the coordinator has
	lost      bool  // it is somebody else's, or fetched anew
}

// receipt is what it takes to settle a delivery.
type receipt struct {
	part   *assigned
	offset int64
}

// answer is waited for by any number of goroutines.
type answer struct {
	done chan struct{}
	err  error // valid once done is closed; nil: look again, something has changed
}

func newAnswer() *answer { return &answer{done: make(chan struct{})} }

// begin makes a deal the generation that Receive takes from. Partitions that stay
// go on where they are, with what is in hand: a generation that follows on ours
// without another in between says that nobody else had them meanwhile.
func (c *consumer) begin(d deal) *generation {
	g := &generation{c: c, deal: d, moved: make(chan struct{}, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := map[int]*assigned{}
	if old := c.current; old != nil {
		for _, p := range old.parts {
			if d.generation == old.deal.generation+1 && !p.lost {
				before[p.id] = p
			}
			p.lost = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(d.offsets)) {
		p, offset := before[id], d.offsets[id]
		if p == nil || !p.goesOn(offset) {
			p = c.newAssigned(id, offset)
		}
		p.lost = false
		g.parts = append(g.parts, p)
	}
	for _, p := range before {
		if p.lost {
			p.buffer = nil
		}
	}
	if c.current == nil {
		close(c.joined)
	}
	c.current, c.failure = g, nil
	close(c.dealt.done)
	c.dealt = newAnswer()
	signal(c.wake)
	return g
}

func (c *consumer) newAssigned(id int, from int64) *assigned {
	return &assigned{c: c, id: id, next: from, committed: max(0, from), space: cmp.Or(c.space, make(chan struct{}, 1))}
}

// goesOn reports whether what the coordinator has for the partition is what
// was committed here, or a commit whose answer was lost.
func (p *assigned) goesOn(offset int64) bool {
	offset = max(0, offset) // negative: nothing was committed yet
	if offset < p.committed || offset > max(p.committed, p.track.next) {
		return false
	}
	p.committed = offset
	return true
}

// end stops the generation. It gives what is in hand a while to be settled, which the coordinator
// still takes from this generation: a delivery that makes it does not come
// again, whoever gets the partition. It must end well within the session,
// because nobody sends heartbeats meanwhile. When the consumer closes only a
// commit that is under way is waited for.
func (g *generation) end() {
	g.c.mu.Lock()
	g.stopped = true
	if g.c.q.periodic() {
		g.commitDone() // what Receive has returned is nobody's to get again
	}
	g.c.mu.Unlock()
	limit := time.NewTimer(min(g.c.q.session/4, time.Second))
	defer limit.Stop()
	closing := g.c.ctx.Done()
	for late := false; ; {
		g.c.mu.Lock()
		g.over = g.over || late || !g.busy && (g.c.closed || g.inHand() == 0)
		over := g.over
		g.c.mu.Unlock()
		if over {
			return
		}
		select {
		case <-g.moved:
		case <-closing:
			closing = nil
		case <-limit.C:
			late = true
		}
	}
}

// inHand counts what was handed out and is not done.
func (g *generation) inHand() int {
	n := 0
	for _, p := range g.parts {
		n += len(p.track.open) - p.track.held
	}
	return n
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
	return out
}

// ready counts what may be handed out: nothing while too much is done beyond a
// delivery that is not, since all of that would come again after a crash.
func (p *assigned) ready() int {
	if p.track.held >= p.c.q.maxUncommitted {
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
	if len(p.buffer) < p.c.q.prefetch {
		signal(p.space)
	}
	return out
}

// done marks an offset as done, and reports whether that is still to be
// committed: not if it was, nor if the offset is beyond one that is not done.
func (p *assigned) done(offset int64) bool {
	held := p.track.held
	p.track.done(offset)
	if held >= p.c.q.maxUncommitted && p.track.held < held {
		signal(p.c.wake)
	}
	return p.track.next > offset && p.committed <= offset
}

// nextCommit returns the answer to the commit that takes along what is done by
// now. It is sent when the one under way has come back, and so carries what
// gathers until then.
func (g *generation) nextCommit() *answer {
	if g.gathering == nil {
		g.gathering = newAnswer()
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
		sent := map[*assigned]int64{}
		for _, p := range g.parts {
			if !p.lost && p.track.next > p.committed {
				offsets[p.id], sent[p] = p.track.next, p.track.next
			}
		}
		c.mu.Unlock()
		var err error
		if len(offsets) > 0 {
			err = g.deal.commit(offsets)
		}
		c.mu.Lock()
		switch {
		case err == nil:
			for p, offset := range sent {
				p.committed = max(p.committed, offset)
			}
		case fenced(err):
			g.over = true
			for _, p := range g.parts {
				p.lost = p.lost || c.current == g
			}
		case !g.over: // otherwise the next generation decides
			now.err = fmt.Errorf("kafka: commit: %w", err)
		}
		close(now.done)
	}
	g.busy = false
	signal(g.moved)
}

// fenced reports whether the group has gone on without this consumer.
func fenced(err error) bool {
	for _, e := range []kafkago.Error{
		kafkago.IllegalGeneration, kafkago.UnknownMemberId, kafkago.RebalanceInProgress, kafkago.FencedInstanceID,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
