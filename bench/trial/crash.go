package trial

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"queuelab/backends"
	"queuelab/bench/broker"
	"queuelab/bench/fault"
	"queuelab/bench/ledger"
	"queuelab/bench/node"
	"queuelab/queue"
)

// The leases and time-outs of crash trials: short enough to wait for, and
// printed with the result through the URL.
const (
	shortLease = 1500 * time.Millisecond
)

// crashQuery are the client's parameters in crash trials: one message at a
// time, so that what a victim holds is known.
func crashQuery(b backends.Backend, prefetch int) string {
	q := url.Values{}
	if b.Lease != "" {
		q.Set(b.Lease, shortLease.String())
	}
	if b.Broker == "rabbitmq" || b.Broker == "nats" {
		q.Set("prefetch", strconv.Itoa(prefetch))
	}
	return q.Encode()
}

// crash runs one trial under a fault.
func (l *Lab) crash(ctx context.Context, s Spec) (*measured, error) {
	f, ok := fault.Lookup(s.Fault)
	if !ok {
		return nil, fmt.Errorf("unknown fault %q", s.Fault)
	}
	t, err := l.newCrashTrial(ctx, s, f)
	if err != nil {
		return nil, err
	}
	defer t.close()
	if err := f.Run(ctx, t); err != nil {
		return nil, err
	}
	return t.judge(ctx)
}

// crashTrial is one trial in progress: the scene of its fault.
type crashTrial struct {
	lab      *Lab
	spec     Spec
	fault    fault.Fault
	broker   *broker.Broker
	database *broker.Broker
	trial    uint32
	url      string
	db       string
	effects  *node.Effects
	control  *ledger.Writer // the harness' own ledger: the fault
	watch    queue.Queue    // looks into the queue, from outside
	nodes    []*sceneNode

	producers, consumers uint16 // processes so far
	victims              []uint16
	probes               []uint16

	caps          queue.Capabilities
	facts         Facts
	frozen        bool  // the backlog was noted
	struckAt      int64 // by the fault's own word; 0: as it was confirmed
	stranded      bool  // the queue did not run dry in time
	left          int64 // what the queue still held at the end
	probed        bool
	probeAccepted int // of the messages after the heal
	invalid       []string
	notes         []string
}

// controlProcess is the harness in the ledger.
const controlProcess = 99

func (l *Lab) newCrashTrial(ctx context.Context, s Spec, f fault.Fault) (*crashTrial, error) {
	b, err := l.brokerOf(ctx, s)
	if err != nil {
		return nil, err
	}
	t := &crashTrial{lab: l, spec: s, fault: f, broker: b, trial: l.nextTrial()}
	t.url = l.queueURL(b, s.Setting, fmt.Sprintf("lab%d", t.trial), crashQuery(backendOf(s.Setting.Backend), s.Load.Prefetch))
	if t.db, t.database, err = l.effectsDatabase(ctx, s); err != nil {
		return nil, err
	}
	if t.effects, err = node.OpenEffects(ctx, t.db); err != nil {
		return nil, err
	}
	if t.control, err = ledger.Create(l.ledgerPath(t.trial, controlProcess), controlProcess); err != nil {
		t.effects.Close()
		return nil, err
	}
	if b != nil {
		if t.watch, err = backends.Open(ctx, t.url); err != nil {
			t.close()
			return nil, err
		}
		t.caps = t.watch.Capabilities()
	}
	return t, nil
}

func (t *crashTrial) close() {
	for _, n := range t.nodes {
		n.child.Kill()
	}
	if t.watch != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_ = t.watch.Delete(ctx) // a queue left behind costs memory, not truth
		cancel()
		t.watch.Close()
	}
	t.effects.Close()
	t.control.Close()
	t.lab.removeLedgers(t.trial)
}

// settle is how long after its declaration a queue is killed at the earliest.
func settle(kind string) time.Duration {
	if strings.HasPrefix(kind, "rabbitmq") {
		return 4 * time.Second // early crashes of 3.10 can lose the queue itself
	}
	return 500 * time.Millisecond
}

// freeze waits until the backlog stands still and notes it.
func (t *crashTrial) freeze(ctx context.Context) error {
	last, same := int64(-1), 0
	return waitFor(ctx, "the backlog to stand still", 10*time.Second, 100*time.Millisecond, func() (bool, error) {
		n, err := t.backlog(ctx)
		if err != nil {
			return false, err
		}
		if n == last {
			same++
		} else {
			last, same = n, 0
		}
		t.facts.Backlog = n
		return same >= 3, nil
	})
}

// backlog looks into the queue, from outside or, where it lives in a node,
// through that node.
func (t *crashTrial) backlog(ctx context.Context) (int64, error) {
	if t.watch != nil {
		return node.Left(ctx, t.watch)
	}
	if len(t.nodes) == 0 {
		return 0, errors.New("look into the queue: no process has it")
	}
	child := t.nodes[len(t.nodes)-1].child
	if err := child.Tell("backlog"); err != nil {
		return 0, err
	}
	e, err := child.Await(ctx, "backlog")
	if err != nil {
		return 0, err
	}
	return e.Backlog, nil
}

func (t *crashTrial) mark(e ledger.Event) {
	t.control.Append(ledger.Record{Event: e, Process: controlProcess, Trial: t.trial, At: ledger.Now()})
}
