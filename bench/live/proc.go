package live

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"queuelab/bench/ledger"
	"queuelab/bench/node"
	"queuelab/queue"
)

// The numbers of what takes part, in the ledger and for people: producers from 1,
// consumers from firstConsumer.
const (
	firstConsumer  = 50
	mostProcesses  = 40 // of a role, in one show
	controlProcess = 999
	brokerProcess  = 1000
	databaseNumber = 1001
)

const (
	roleProducer = "producer"
	roleConsumer = "consumer"
	roleBoth     = "both" // of a queue that lives in the process
)

// process is a child of a lane. Its fields are under the lane's lock, but for
// those that do not change.
type process struct {
	lane     *lane
	n        uint16
	role     string
	child    *node.Child
	path     string // of its ledger
	follower *ledger.Follower
	delay    time.Duration // of its handler
	produced chan struct{} // closed once all is published
	looked   chan queue.Backlog
	gone     chan struct{} // closed once it has ended, and the lane knows

	alive, frozen, slow bool
	stopped             bool   // it was told to end, in order
	said                string // how it ended
	endedAt             int64
	holds               map[ledger.ID]hold
}

func (p *process) name() string {
	role := p.role
	if role == roleBoth {
		role = "producer and consumer"
	}
	return fmt.Sprintf("%s %d", role, p.n)
}

// String implements fault.Victim.
func (p *process) String() string { return fmt.Sprintf("%s (pid %d)", p.name(), p.child.PID()) }

// Hand implements fault.Victim.
func (p *process) Hand() string {
	p.lane.mu.Lock()
	held := len(p.holds)
	p.lane.mu.Unlock()
	switch {
	case p.role == roleProducer:
		return ""
	case held == 0:
		return "which held nothing"
	case held == 1:
		return "which held 1 message"
	}
	return fmt.Sprintf("which held %d messages", held)
}

// Signal implements fault.Victim.
func (p *process) Signal(s os.Signal) error {
	if err := p.child.Signal(s); err != nil {
		return err
	}
	if s == syscall.SIGKILL {
		<-p.gone
		return nil
	}
	p.lane.mu.Lock()
	defer p.lane.mu.Unlock()
	p.frozen = s == syscall.SIGSTOP
	return nil
}

// slowest is at least how long a slow handler takes.
const slowest = time.Second

// Slow implements fault.Victim.
func (p *process) Slow(slow bool) error {
	delay := p.delay
	if slow {
		delay = max(10*delay, slowest)
	}
	if err := p.child.Tell("delay " + delay.String()); err != nil {
		return err
	}
	p.lane.mu.Lock()
	defer p.lane.mu.Unlock()
	p.slow = slow
	return nil
}

// listen hears what the process says, until it has ended.
func (p *process) listen() {
	failed := ""
	for {
		e, err := p.child.Next(context.Background())
		if err != nil {
			break
		}
		switch e.Event {
		case "produced":
			close(p.produced)
		case "backlog":
			if e.Look != nil {
				select {
				case p.looked <- *e.Look:
				default:
				}
			}
		case "error":
			failed = e.Error
		}
	}
	said := p.child.Ended()
	if failed != "" {
		said = failed
	}
	p.lane.mu.Lock()
	p.alive, p.frozen = false, false
	p.said, p.endedAt = said, ledger.Now()
	p.lane.mu.Unlock()
	close(p.gone)
}

// hold is a message in a consumer's hand.
type hold struct {
	n     int   // deliveries that are not settled
	since int64 // the latest
	done  bool  // its effect was made
}

// take follows what the process holds; under the lane's lock.
func (p *process) take(r ledger.Record) {
	h := p.holds[r.ID()]
	switch r.Event {
	case ledger.Delivered:
		h = hold{n: h.n + 1, since: r.At}
	case ledger.Effect:
		h.done = true
	case ledger.Acked:
		h.n = 0 // a delivery before it whose ack did not reach the broker is held no more, either
	case ledger.Nacked:
		h.n--
	default:
		return
	}
	if h.n <= 0 {
		delete(p.holds, r.ID())
		return
	}
	p.holds[r.ID()] = h
}

// inHand reports whether it has just begun with a message: whoever kills it now
// strikes while it holds it. Where messages are not held for long any will do.
func (p *process) inHand() bool {
	fresh := p.delay / 2
	if p.slow {
		fresh = max(10*p.delay, slowest) / 2
	}
	for _, h := range p.holds {
		if p.lane.show.scenario.ackHold > 0 || p.delay == 0 || !h.done && ledger.Now()-h.since < int64(fresh) {
			return true
		}
	}
	return false
}

// stop lets it finish what it has in hand, for a while.
func (p *process) stop(within time.Duration) {
	p.lane.mu.Lock()
	p.stopped = p.alive
	p.lane.mu.Unlock()
	if p.child.Tell("stop") == nil {
		select {
		case <-p.gone:
			return
		case <-time.After(within):
		}
	}
	p.child.Kill()
	<-p.gone
}
