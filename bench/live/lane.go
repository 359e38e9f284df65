package live

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"queuelab/backends"
	"queuelab/bench/broker"
	"queuelab/bench/fault"
	"queuelab/bench/ledger"
	"queuelab/bench/load"
	"queuelab/bench/node"
	"queuelab/bench/trial"
	"queuelab/queue"
)

// The states of a lane, and of a show.
const (
	stateStarting = "starting"
	stateRunning  = "running"
	stateDraining = "draining"
	stateEnding   = "ending"
	stateEnded    = "ended"
	stateFailed   = "failed"
)

// lane is one setting of a show: its queue, its processes, and what is known of
// its messages.
type lane struct {
	show    *show
	n       int
	setting trial.Setting
	backend backends.Backend
	kind    string
	trial   uint32
	keyOf   func(ledger.ID) string

	// Set once, before the lane runs.
	warm    *warm // nil: the queue lives in a process
	name    string
	url     string
	watch   queue.Queue // looks into the queue; nil where it lives in a process
	caps    queue.Capabilities
	looker  looker
	control *ledger.Writer

	striking sync.Mutex // one strike at a time

	mu        sync.Mutex
	state     string
	err       string
	processes []*process
	account   *account
	fresh     []ledger.Record // read, and not told yet
	look      look
	struck    lastStrike
	news      laneTick // to be told with the next tick
	told      told     // what the page knows
	final     *ended

	brokerStruck bool // at some time
	still        bool // what is left is stopped in order: the picture stays
	closed       bool // its ledgers have all that they will have, and it was read
	blows        []death
}

// kindOf is what a setting's queue is drawn as.
func kindOf(s trial.Setting) string {
	switch s.Backend {
	case "memory":
		return "memory"
	case "redis-pubsub":
		return "pubsub"
	case "redis-streams":
		return "stream"
	case "rabbitmq", "rabbitmq-3":
		return "rabbitmq"
	case "kafka", "kafka-3":
		return "kafka"
	case "redis-list", "redis-list-reliable", "redis-poll", "redis-doing", "redis-bell", "redis-sentinel":
		return "list"
	}
	return "other"
}

func newLane(s *show, n int, set trial.Setting) *lane {
	plan, _ := load.ParseKeys(s.scenario.keys, keySeed) // the scenarios' own
	return &lane{
		show: s, n: n, setting: set, backend: set.Client(), kind: kindOf(set), trial: s.server.trials.Add(1),
		keyOf: load.Source{KeyPlan: plan}.KeyOf, state: stateStarting, name: fmt.Sprintf("live%s_%d", s.tag, n),
	}
}

const keySeed = 1

// query are the parameters of the lane's queue: those of the setting, and those
// that make a show of it.
func (l *lane) query() string {
	q, err := url.ParseQuery(l.setting.Query)
	if err != nil {
		return l.setting.Query // the backend says what is wrong
	}
	if l.backend.Lease != "" && !q.Has(l.backend.Lease) {
		q.Set(l.backend.Lease, "2s") // who died is missed in time to be seen
	}
	if (l.backend.Broker == "rabbitmq" || l.backend.Broker == "nats") && l.show.currentSpeed() <= eachUpTo {
		q.Set("prefetch", "1")
	}
	for name, value := range l.show.scenario.params {
		if q.Has(name) {
			q.Set(name, value)
		}
	}
	return q.Encode()
}

// prepare opens the lane's queue on its broker.
func (l *lane) prepare(ctx context.Context) (err error) {
	if l.control, err = ledger.Create(l.path(controlProcess), controlProcess); err != nil {
		return err
	}
	if l.setting.Broker == "" {
		l.url = "memory://" + l.name + "?" + l.query()
		l.looker = memoryLooker{l}
		return nil
	}
	w, err := l.show.server.pool.get(ctx, l.place())
	if err != nil {
		return err
	}
	l.url = w.broker.QueueURL(l.backend.Scheme, l.name, l.query())
	q, err := backends.Open(ctx, l.url)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.warm, l.watch, l.caps = w, q, q.Capabilities()
	l.mu.Unlock()
	if l.warm.storage {
		// A power cut is about the messages, not about the queue.
		if err := l.settleStorage(ctx); err != nil {
			return err
		}
	}
	l.looker, err = newLooker(l)
	return err
}

func (l *lane) settleStorage(ctx context.Context) error {
	l.warm.mu.Lock()
	defer l.warm.mu.Unlock()
	return l.warm.broker.SettleStorage(ctx)
}

func (l *lane) place() place { return place{kind: l.setting.Broker, conf: l.setting.Conf} }

func (l *lane) path(process uint16) string {
	return filepath.Join(l.show.dir, fmt.Sprintf("lane-%d-process-%d.ledger", l.n, process))
}

// populate starts the first processes.
func (l *lane) populate(ctx context.Context) error {
	if l.setting.Broker == "" {
		_, err := l.start(ctx, roleBoth)
		return err
	}
	for range l.show.consumers {
		if _, err := l.start(ctx, roleConsumer); err != nil {
			return err
		}
	}
	_, err := l.start(ctx, roleProducer)
	return err
}

// start starts a process; a producer does not publish yet.
func (l *lane) start(ctx context.Context, role string) (*process, error) {
	ctx, cancel := context.WithTimeout(ctx, 40*time.Second)
	defer cancel()
	l.mu.Lock()
	n := uint16(1)
	if role == roleConsumer {
		n = firstConsumer
	}
	started := 0
	for _, p := range l.processes {
		if p.role == role {
			started++
			n++
		}
	}
	l.mu.Unlock()
	if started >= mostProcesses {
		return nil, fmt.Errorf("start a %s: this show has had %d, which is enough", role, started)
	}
	cfg := l.config(role, n)
	child, ready, err := node.Start(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("start %s %d: %w", role, n, err)
	}
	f, err := ledger.Follow(cfg.Ledger)
	if err != nil {
		child.Kill()
		return nil, err
	}
	p := &process{
		lane: l, n: n, role: role, child: child, path: cfg.Ledger, follower: f, alive: true,
		produced: make(chan struct{}), looked: make(chan queue.Backlog, 1), gone: make(chan struct{}), holds: map[ledger.ID]hold{},
	}
	if cfg.Consume != nil {
		p.delay = cfg.Consume.HandleDelay
	}
	l.mu.Lock()
	if l.watch == nil && ready.Caps != nil {
		l.caps = *ready.Caps
	}
	l.processes = append(l.processes, p)
	l.mu.Unlock()
	go p.listen()
	return p, nil
}

func (l *lane) config(role string, n uint16) node.Config {
	s, sc := l.show, l.show.scenario
	speed := s.currentSpeed()
	_, databaseURL := s.effects()
	cfg := node.Config{Queue: l.url, Ledger: l.path(n), Process: n, Trial: l.trial, Producer: n}
	if role != roleConsumer {
		p := &node.Produce{Rate: speed, Payload: 100, Keys: sc.keys, Seed: keySeed, Retries: sc.retries, Count: s.messages()}
		if p.Shape = sc.shape(speed); p.Shape != "" {
			p.Rate, p.Span = 0, time.Duration(s.seconds)*time.Second
		}
		if sc.orders {
			p.Orders, p.Outbox = databaseURL, sc.outbox
			if !sc.outbox {
				p.Gap = min(time.Duration(float64(time.Second)/speed/2), 300*time.Millisecond)
			}
		}
		cfg.Produce = p
	}
	if role != roleProducer {
		before, after := sc.handling(speed, s.consumers)
		c := &node.Consume{
			Consumers: 1, ReceiveMax: 1, Effects: databaseURL, HandleDelay: before, AckDelay: after, Unique: sc.unique,
			PoisonEvery: sc.poison, CommitTimeout: 5 * time.Second,
		}
		if speed > eachUpTo {
			c.ReceiveMax = 64
		}
		if role == roleBoth {
			c.Consumers = s.consumers
		}
		cfg.Consume = c
	}
	return cfg
}

// living are the processes that run and pass; under the lock.
func (l *lane) living(pass func(*process) bool) []*process {
	var some []*process
	for _, p := range l.processes {
		if p.alive && (pass == nil || pass(p)) {
			some = append(some, p)
		}
	}
	return some
}

func consumes(p *process) bool { return p.role != roleProducer }
func produces(p *process) bool { return p.role != roleConsumer }

// fail says why the lane is no more, and ends its processes.
func (l *lane) fail(err error) {
	l.mu.Lock()
	l.state, l.err = stateFailed, err.Error()
	some := l.living(nil)
	l.mu.Unlock()
	for _, p := range some {
		p.child.Kill()
	}
}

// close ends what is left of a lane; its ledgers stay.
func (l *lane) close() error {
	var errs []error
	for _, p := range l.processes {
		p.child.Kill()
		<-p.gone
	}
	l.mu.Lock()
	l.collect()
	l.closed = true
	for _, p := range l.processes {
		errs = append(errs, p.follower.Close())
	}
	l.mu.Unlock()
	if l.watch != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		if l.warm.struck() == "" {
			_ = l.watch.Delete(ctx) // left behind it costs memory, not truth
		}
		cancel()
		errs = append(errs, l.watch.Close())
	}
	if l.control != nil {
		errs = append(errs, l.control.Close())
	}
	return errors.Join(errs...)
}

// target is what strikes are told of the lane.
func (l *lane) target() fault.Target {
	return fault.Target{
		Backend: l.setting.Backend, Setting: l.setting.String(), Broker: l.setting.Broker, Scheme: l.backend.Scheme, Caps: l.caps,
	}
}

// ours is the broker, if a strike may strike it.
func (l *lane) ours() *broker.Broker {
	if l.warm == nil || l.warm.broker == nil || l.warm.broker.External() {
		return nil
	}
	return l.warm.broker
}

func (l *lane) mark(e ledger.Event) {
	l.control.Append(ledger.Record{Event: e, Process: controlProcess, Trial: l.trial, At: ledger.Now()})
}

// processOf finds the process whose id a consumer's name in the broker holds, as
// those of our Redis queues do: host-PID-random.
func (l *lane) processOf(name string) *uint16 {
	parts := strings.Split(name, "-")
	if len(parts) < 3 {
		return nil
	}
	pid, err := strconv.Atoi(parts[len(parts)-2])
	if err != nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.processes, func(p *process) bool { return p.child.PID() == pid })
	if i < 0 {
		return nil
	}
	return &l.processes[i].n
}
