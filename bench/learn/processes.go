package learn

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"queuelab/bench/ledger"
	"queuelab/bench/node"
	"queuelab/queue"
)

// nodes are the processes of a lesson.
type nodes struct {
	started uint16
	ledgers []string
}

// Process is a producer or a consumer that can be killed, with a ledger of what
// it did.
type Process struct {
	*node.Child
	s      *Stand
	number uint16 // in its ledger's records
}

// Produce starts a producer: Produced waits until all is published.
func (s *Stand) Produce(queueURL string, p node.Produce) *Process {
	c := s.process(node.Config{Queue: queueURL, Produce: &p})
	s.Must(c.Tell("produce"))
	return c
}

// Consume starts a consumer that commits the effect of each message and then
// acks it. With CrashPoint it kills itself there: see package fault for the
// places, and Struck.
func (s *Stand) Consume(queueURL string, c node.Consume) *Process {
	c.Consumers, c.ReceiveMax = max(1, c.Consumers), max(1, c.ReceiveMax)
	c.Effects = cmp.Or(c.Effects, s.effects())
	return s.process(node.Config{Queue: queueURL, Consume: &c})
}

// Both is Produce and Consume in one process, for a queue that lives in it.
func (s *Stand) Both(queueURL string, p node.Produce, c node.Consume) *Process {
	c.Consumers, c.ReceiveMax = max(1, c.Consumers), max(1, c.ReceiveMax)
	c.Effects = cmp.Or(c.Effects, s.effects())
	both := s.process(node.Config{Queue: queueURL, Produce: &p, Consume: &c})
	s.Must(both.Tell("produce"))
	return both
}

func (s *Stand) effects() string { return "sqlite:" + filepath.Join(s.dir, "effects.db") }

func (s *Stand) process(c node.Config) *Process {
	s.nodes.started++
	c.Process, c.Producer, c.Trial = s.nodes.started, s.nodes.started, s.number
	c.Ledger = filepath.Join(s.dir, fmt.Sprintf("ledger-%d", c.Process))
	s.nodes.ledgers = append(s.nodes.ledgers, c.Ledger)
	child, _, err := node.Start(s.ctx, c)
	s.Must(err)
	s.After(func() error { child.Kill(); return nil })
	return &Process{child, s, c.Process}
}

// Die kills the process with SIGKILL, and returns once it is dead.
func (p *Process) Die() { p.Kill() }

// Struck waits for the process' own death at its crash point, and confirms that
// it was SIGKILL.
func (p *Process) Struck() { p.s.Must(p.KilledBySIGKILL(p.s.ctx)) }

// Produced waits until all is published.
func (p *Process) Produced() {
	_, err := p.Await(p.s.ctx, "produced")
	p.s.Must(err)
}

// End lets it finish what it has in hand.
func (p *Process) End() { p.s.Must(p.Stop(p.s.ctx)) }

// Records are those of all processes of the lesson so far.
func (s *Stand) Records() []ledger.Record {
	files := slices.DeleteFunc(slices.Clone(s.nodes.ledgers), func(f string) bool {
		_, err := os.Stat(f)
		return err != nil
	})
	rs, err := ledger.Read(files...)
	s.Must(err)
	return rs
}

// Which are the messages of which the process has recorded that so far.
func (p *Process) Which(what ledger.Event) []ledger.ID {
	of := map[ledger.ID]bool{}
	for _, r := range p.s.Records() {
		if r.Process == p.number && r.Event == what {
			of[r.ID()] = true
		}
	}
	return slices.Collect(maps.Keys(of))
}

// Tally is how many they are.
func (p *Process) Tally(what ledger.Event) int64 { return int64(len(p.Which(what))) }

// Account is the ledger's verdict over them. What still lies in the queue counts
// as lost: drain it first.
func (s *Stand) Account() ledger.Report {
	rs := s.Records()
	return ledger.Account(ledger.Input{Records: rs, CountEffects: true, Confirm: queue.ConfirmMemory})
}

// AccountOf is Account over what one producer published.
func (s *Stand) AccountOf(producer *Process) ledger.Report { return s.Accounts(producer)[0] }

// Accounts is AccountOf for each of several producers.
func (s *Stand) Accounts(producers ...*Process) []ledger.Report {
	of := map[uint16][]ledger.Record{}
	for _, r := range s.Records() {
		of[r.Producer] = append(of[r.Producer], r)
	}
	reports := make([]ledger.Report, len(producers))
	for i, p := range producers {
		reports[i] = ledger.Account(ledger.Input{Records: of[p.number], CountEffects: true, Confirm: queue.ConfirmMemory})
	}
	return reports
}

// Settled waits until nothing new has come into the ledgers for so long.
func (s *Stand) Settled(quiet time.Duration) {
	last, since := -1, time.Now()
	s.Eventually("the processes to have nothing more to do", 20*time.Second, func() bool {
		if n := len(s.Records()); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) >= quiet
	})
}
