package trial

import (
	"context"
	"fmt"
	"time"

	"queuelab/backends"
	"queuelab/bench/broker"
	"queuelab/bench/fault"
	"queuelab/bench/ledger"
	"queuelab/queue"
)

// The leases and time-outs of crash trials: short enough to wait for, and
// printed with the result through the URL.
const (
	streamsClaim = 1500 * time.Millisecond
	kafkaSession = 1500 * time.Millisecond
)

// crashQuery are the client's parameters in crash trials: one message at a
// time, so that what a victim holds is known.
func crashQuery(backend string, prefetch int) string {
	switch backend {
	case "redis-streams":
		return fmt.Sprintf("claim=%v", streamsClaim)
	case "rabbitmq":
		return fmt.Sprintf("prefetch=%d", prefetch)
	case "kafka":
		return fmt.Sprintf("session=%v&heartbeat=%v", kafkaSession, kafkaSession/3)
	}
	return ""
}

// crash runs one trial under a fault.
func (l *Lab) crash(ctx context.Context, s Spec) (*measured, error) {
	t, err := l.newCrashTrial(ctx, s)
	if err != nil {
		return nil, err
	}
	defer t.close()
	switch {
	case s.Fault == FaultBrokerKill:
		err = t.killBroker(ctx)
	case s.Setting.Broker == "":
		err = t.killProcess(ctx)
	default:
		err = t.killConsumer(ctx)
	}
	if err != nil {
		return nil, err
	}
	return t.judge(ctx)
}

// crashTrial is one trial in progress.
type crashTrial struct {
	lab     *Lab
	spec    Spec
	broker  *broker.Broker
	trial   uint32
	url     string
	db      string
	effects *effects
	control *ledger.Writer // the harness' own ledger: the fault
	watch   queue.Queue    // looks into the queue, from outside
	nodes   []*child

	caps           queue.Capabilities
	facts          Facts
	stranded       bool  // the queue did not run dry in time
	left           int64 // what the queue still held at the end
	secondAccepted int   // of the messages after the heal
	invalid        []string
}

// controlProcess is the harness in the ledger.
const controlProcess = 99

func (l *Lab) newCrashTrial(ctx context.Context, s Spec) (*crashTrial, error) {
	b, err := l.broker(ctx, s.Setting)
	if err != nil {
		return nil, err
	}
	t := &crashTrial{lab: l, spec: s, broker: b, trial: l.nextTrial()}
	t.url = l.queueURL(b, s.Setting, fmt.Sprintf("lab%d", t.trial), crashQuery(s.Setting.Backend, s.Load.Prefetch))
	if t.db, err = l.effectsDatabase(ctx, s.Setting); err != nil {
		return nil, err
	}
	if t.effects, err = openEffects(ctx, t.db); err != nil {
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
		n.Kill()
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

func (t *crashTrial) node(ctx context.Context, process uint16, p *ProduceConfig, c *ConsumeConfig) (*child, error) {
	cfg := NodeConfig{Queue: t.url, Ledger: t.lab.ledgerPath(t.trial, process), Process: process, Trial: t.trial, Producer: process, Produce: p, Consume: c}
	n, ready, err := startNode(ctx, cfg)
	if err != nil {
		return nil, err
	}
	t.nodes = append(t.nodes, n)
	t.caps = *ready.Caps
	return n, nil
}

func (t *crashTrial) producer(ctx context.Context, process uint16, count uint64) (*child, error) {
	return t.node(ctx, process, &ProduceConfig{Rate: t.spec.Load.Rate / 2, Count: count, Payload: t.spec.Load.Payload, Keys: "uniform:1"}, nil)
}

func (t *crashTrial) consumer(ctx context.Context, process uint16, point string, nth int64) (*child, error) {
	return t.node(ctx, process, nil, &ConsumeConfig{Consumers: 1, ReceiveMax: 1, Effects: t.db, CrashPoint: point, CrashAtNth: nth, Mutant: t.lab.Mutant})
}

// crashPlace is where in its work a consumer dies under a fault; "": nowhere.
func crashPlace(name string) string {
	switch name {
	case FaultConsumerKillMidHandle:
		return fault.MidHandle
	case FaultConsumerKillBeforeAck:
		return fault.BeforeAck
	}
	return ""
}

// killConsumer lets a consumer kill itself at a named point under load, and a
// second one take over.
func (t *crashTrial) killConsumer(ctx context.Context) error {
	n := t.spec.Load.Messages
	victim, err := t.consumer(ctx, firstConsumer, crashPlace(t.spec.Fault), int64(n/4))
	if err != nil {
		return err
	}
	producer, err := t.producer(ctx, producerProcess, n)
	if err != nil {
		return err
	}
	if struck, err := t.strike(ctx, victim, producer); !struck {
		return err
	}
	if _, err := t.consumer(ctx, secondConsumer, "", 0); err != nil {
		return err
	}
	t.mark(ledger.FaultHealed)
	return t.finish(ctx, producer)
}

// killProcess is the same for the memory queue: its producer and consumer are
// one process, which dies as a whole; what is published after it belongs to
// another queue.
func (t *crashTrial) killProcess(ctx context.Context) error {
	n := t.spec.Load.Messages
	victim, err := t.node(ctx, firstConsumer,
		&ProduceConfig{Rate: t.spec.Load.Rate, Count: n, Payload: t.spec.Load.Payload, Keys: "uniform:1"},
		// Handlers slower than the load, so that there is a backlog to lose.
		&ConsumeConfig{Consumers: 1, ReceiveMax: 1, Effects: t.db, CrashPoint: crashPlace(t.spec.Fault), CrashAtNth: int64(n / 8), HandleDelay: 4 * time.Millisecond, Mutant: t.lab.Mutant})
	if err != nil {
		return err
	}
	_, err = t.strike(ctx, victim, victim)
	return err
}

// strike loads the victim until it has killed itself. It reports false where the
// trial ends here: without a fault it is over, and a victim that did not die as
// it should proves nothing.
func (t *crashTrial) strike(ctx context.Context, victim, producer *child) (bool, error) {
	if err := producer.tell("produce"); err != nil {
		return false, err
	}
	if t.spec.Fault == FaultNone {
		return false, t.finish(ctx, producer)
	}
	t.mark(ledger.FaultAsked)
	dying, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := victim.killedBySIGKILL(dying); err != nil {
		t.invalid = append(t.invalid, err.Error())
		return false, nil
	}
	t.mark(ledger.FaultConfirmed)
	return true, nil
}

// killBroker freezes a backlog with no consumer, since one that keeps up would
// hide what the broker forgets; kills and restarts the broker; and reads
// everything back.
func (t *crashTrial) killBroker(ctx context.Context) error {
	if t.caps.Stored {
		// Metadata settles before the load: the trial is about messages.
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(settle(t.spec.Setting.Backend)):
		}
	}
	producer, err := t.producer(ctx, producerProcess, t.spec.Load.Messages)
	if err != nil {
		return err
	}
	if err := t.produceAll(ctx, producer); err != nil {
		return err
	}
	if err := producer.stop(ctx); err != nil {
		return err
	}
	if t.caps.Stored {
		if err := t.freeze(ctx); err != nil {
			return err
		}
	}
	if t.broker.Kind() == "redis" {
		if err := settleRedis(ctx, t.broker); err != nil {
			t.invalid = append(t.invalid, err.Error())
			return nil
		}
	}
	t.mark(ledger.FaultAsked)
	if err := t.broker.Kill(ctx); err != nil {
		return err
	}
	t.mark(ledger.FaultConfirmed)
	if err := t.broker.Restart(ctx); err != nil {
		return fmt.Errorf("restart the broker: %w", err)
	}
	if _, err := t.consumer(ctx, secondConsumer, "", 0); err != nil {
		return err
	}
	t.mark(ledger.FaultHealed)
	// The broker must take new messages, or its silence proves nothing.
	second, err := t.producer(ctx, secondProducer, 20)
	if err != nil {
		return err
	}
	if err := second.tell("produce"); err != nil {
		return err
	}
	return t.finish(ctx, second)
}

// settle is how long after its declaration a queue is killed at the earliest.
func settle(backend string) time.Duration {
	if backend == "rabbitmq" {
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
		return lookInto(ctx, t.watch)
	}
	node := t.nodes[len(t.nodes)-1]
	if err := node.tell("backlog"); err != nil {
		return 0, err
	}
	e, err := node.await(ctx, "backlog")
	if err != nil {
		return 0, err
	}
	return e.Backlog, nil
}

func (t *crashTrial) produceAll(ctx context.Context, producer *child) error {
	if err := producer.tell("produce"); err != nil {
		return err
	}
	_, err := producer.await(ctx, "produced")
	return err
}

// finish waits for the producer, then for the queue to run dry, then stops
// the consumers, so that what they hold is settled or given back.
func (t *crashTrial) finish(ctx context.Context, producer *child) error {
	if _, err := producer.await(ctx, "produced"); err != nil {
		return err
	}
	if err := t.drain(ctx); err != nil {
		t.invalid = append(t.invalid, err.Error())
	}
	for _, n := range t.nodes {
		select {
		case <-n.exited:
			continue
		default:
		}
		if err := n.stop(ctx); err != nil {
			return err
		}
	}
	if t.watch == nil {
		return nil
	}
	// What a consumer had taken in advance shows only now that it is given back,
	// which the broker does in its own time.
	last, same := int64(-2), 0
	return waitFor(ctx, "what is left to stand still", 10*time.Second, 50*time.Millisecond, func() (bool, error) {
		left, err := lookInto(ctx, t.watch)
		if left == last {
			same++
		} else {
			last, same = left, 0
		}
		t.left = left
		return same >= 3, err
	})
}

func (t *crashTrial) mark(e ledger.Event) {
	t.control.Append(ledger.Record{Event: e, Process: controlProcess, Trial: t.trial, At: ledger.Now()})
}
