// Package node is the process that publishes and consumes: a child of the
// harness, started from its own program (the hidden command "node"), that keeps a
// ledger and can be killed, frozen or told to kill itself. Trials, lessons and the
// live lab start the same ones.
package node

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"queuelab/backends"
	"queuelab/bench/fault"
	"queuelab/bench/host/meter"
	"queuelab/bench/ledger"
	"queuelab/bench/load"
	"queuelab/queue"
)

// Config tells a node what to be. It is sent as the first line of its standard
// input.
type Config struct {
	Queue       string // URL
	Ledger      string // path of its own ledger file
	Process     uint16
	Trial       uint32
	Producer    uint16
	Incarnation uint16
	Connections int     // queues opened, which publishers and consumers take turns to use; 0 is 1
	Slow        float64 // the queue takes this share longer, on purpose
	Fake        *Fake   // a queue with known faults in its place

	Produce *Produce
	Consume *Consume
}

// Produce is the load of a node. Rate 0 is a closed loop.
type Produce struct {
	Rate     float64       // messages a second, open loop
	Count    uint64        // messages in all; with Rate 0 at most so many
	Duration time.Duration // closed loop: how long
	Senders  int           // closed loop: callers of Publish at once
	Batch    int           // messages in one Publish
	Window   int64         // closed loop with a consumer in the same node: most messages published and not yet delivered
	Payload  int           // bytes

	Shape     string        // open loop: see load.ParseShape; "" is constant at Rate
	Seed      uint64        // of the shape, the keys and the content
	Span      time.Duration // open loop with a shape: the messages due within it
	Content   string        // of the payload; see load.ParseContent
	Keys      string        // see load.ParseKeys
	Producers int           // publishers; 0 is 1
	InFlight  int           // open loop: most calls without an answer; 0: more than any queue needs
	Retries   int           // how often a publish that ended unknown is tried again, with the same id

	Orders string        // URL of the shop's database: an order is committed there first; empty: none
	Outbox bool          // the message is committed with its order, and published by a relay
	Gap    time.Duration // without Outbox: between the commit and the publish
}

// Consume is what a node does with what it receives.
type Consume struct {
	Consumers     int // handlers, each with a consumer of its own
	ReceiveMax    int
	Effects       string // URL of the database that effects are committed to; empty: none
	CrashPoint    string // see fault.Point
	CrashAtNth    int64
	Mutant        string        // see Mutants
	HandleDelay   time.Duration // holds a message so long before its effect; the command "delay" changes it
	AckDelay      time.Duration // holds it so long after its effect, before its ack
	Unique        bool          // effects are unique by message id: a second one leaves no row
	CommitTimeout time.Duration // how long a commit is waited for; 0: 10 s
	Poison        uint64        // the sequence number whose handler always fails; 0: none
	PoisonEvery   uint64        // likewise one in so many; 0: none
}

// Event is one line of a node's standard output.
type Event struct {
	Event string // ready, produced, drained, backlog, stopped, error
	Error string `json:",omitempty"`
	Stats *load.Stats
	Caps  *queue.Capabilities

	Backlog int64          // ready and in flight; -1: the queue does not tell
	Look    *queue.Backlog `json:",omitempty"` // the same in parts

	Usage *meter.Usage `json:",omitempty"` // of the node so far, in ready and drained
}

// Main runs a node: it reads its config and then commands from in ("produce",
// "stop"), and answers with events on out. It ends when in ends, so that no
// node outlives the harness.
func Main(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		return errors.New("node: no configuration on standard input")
	}
	var cfg Config
	if err := json.Unmarshal(lines.Bytes(), &cfg); err != nil {
		return fmt.Errorf("node: configuration: %w", err)
	}
	commands := make(chan string)
	go func() {
		defer close(commands)
		for lines.Scan() {
			commands <- lines.Text()
		}
	}()
	n := &node{cfg: cfg, out: json.NewEncoder(out)}
	if err := n.run(ctx, commands); err != nil {
		n.tell(Event{Event: "error", Error: err.Error()})
		return err
	}
	n.tell(Event{Event: "stopped"})
	return nil
}

type node struct {
	cfg    Config
	ledger *ledger.Writer // of its consumers
	orders *orders        // nil: it commits none
	crash  *fault.Point

	mu  sync.Mutex
	out *json.Encoder

	delay    atomic.Int64 // see Consume.HandleDelay
	received atomic.Int64
	accepted atomic.Int64 // by the queue, once all is sent
}

func (n *node) tell(e Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_ = n.out.Encode(e) // the parent that reads this may be gone: nobody to tell
}

func (n *node) run(ctx context.Context, commands <-chan string) error {
	w, err := ledger.Create(n.cfg.Ledger, n.cfg.Process)
	if err != nil {
		return err
	}
	defer w.Close()
	n.ledger = w
	if f := n.cfg.Fake; f != nil && f.Skew != 0 {
		if n.ledger, err = ledger.Create(n.cfg.Ledger+".skewed", n.cfg.Process+1); err != nil {
			return err
		}
		defer n.ledger.Close()
		n.ledger.Skew(f.Skew)
	}

	opening, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var queues []queue.Queue
	for range max(1, n.cfg.Connections) {
		q, err := n.open(opening)
		if err != nil {
			return err
		}
		defer q.Close()
		queues = append(queues, q)
	}
	q := queues[0]

	receiving, stopReceiving := context.WithCancel(ctx)
	defer stopReceiving()
	producing, quieten := context.WithCancel(receiving)
	defer quieten()
	var wg sync.WaitGroup
	failed := make(chan error, 1)
	report := func(err error) {
		select {
		case failed <- err:
		default:
		}
	}
	// Handling begins once the harness was told of a node that is ready: with a crash
	// point it may be over a moment later.
	var begin []func()
	if c := n.cfg.Consume; c != nil {
		if n.crash, err = fault.ParsePoint(c.CrashPoint, c.CrashAtNth); err != nil {
			return err
		}
		if err := CheckMutant(c.Mutant); err != nil {
			return err
		}
		n.delay.Store(int64(c.HandleDelay))
		open := OpenEffects
		if c.Unique {
			open = OpenUniqueEffects
		}
		effects, err := open(opening, c.Effects)
		if err != nil {
			return err
		}
		defer effects.Close()
		effects.timeout = cmp.Or(c.CommitTimeout, effects.timeout)
		for i := range c.Consumers {
			consumer, err := queues[i%len(queues)].Consumer(opening)
			if err != nil {
				return fmt.Errorf("open a consumer: %w", err)
			}
			begin = append(begin, func() {
				if err := n.consume(receiving, consumer, effects); err != nil {
					report(err)
				}
			})
		}
	}
	var publisher queue.Publisher
	if p := n.cfg.Produce; p != nil {
		var some turns
		for i := range max(1, p.Producers) {
			one, err := queues[i%len(queues)].Publisher(opening)
			if err != nil {
				return fmt.Errorf("open a publisher: %w", err)
			}
			some.publishers = append(some.publishers, one)
		}
		publisher = some.publishers[0]
		if len(some.publishers) > 1 {
			publisher = &some
		}
		publisher = ledger.RecordPublisher(publisher, w)
		if p.Retries > 0 {
			publisher = persistent{publisher, p.Retries}
		}
		if f := n.cfg.Fake; f != nil && f.RetryEvery > 0 {
			publisher = retrying{publisher, f.RetryEvery}
		}
		if p.Orders != "" {
			orders, err := openOrders(opening, publisher, n.cfg)
			if err != nil {
				return err
			}
			defer orders.close()
			if p.Outbox {
				wg.Go(func() { orders.relay(receiving) })
			}
			n.orders, publisher = orders, orders
		}
	}
	caps := q.Capabilities()
	n.tell(Event{Event: "ready", Caps: &caps, Usage: usage()})
	for _, handle := range begin {
		wg.Go(handle)
	}

	for {
		select {
		case err := <-failed:
			return err
		case cmd, open := <-commands:
			switch {
			case open && cmd == "produce" && publisher != nil:
				wg.Go(func() {
					stats, err := n.produce(producing, publisher)
					if err != nil {
						report(fmt.Errorf("produce: %w", err))
						return
					}
					if n.orders != nil {
						n.orders.awaitRelayed(receiving)
					}
					n.accepted.Store(stats.Accepted)
					n.tell(Event{Event: "produced", Stats: &stats})
				})
			case open && cmd == "backlog":
				b, err := Look(ctx, q)
				if err != nil {
					return err
				}
				n.tell(Event{Event: "backlog", Backlog: sum(b), Look: &b})
			case open && cmd == "drain":
				wg.Go(func() {
					e := Event{Event: "drained"}
					if !n.awaitQuiet(receiving) {
						e.Error = fmt.Sprintf("messages still came %v after the last was sent", DrainDeadline)
					}
					e.Usage = usage()
					n.tell(e)
				})
			case open && cmd == "quiet":
				quieten()
			case open && strings.HasPrefix(cmd, "delay "):
				d, err := time.ParseDuration(strings.TrimPrefix(cmd, "delay "))
				if err != nil {
					return fmt.Errorf("node: %w", err)
				}
				n.delay.Store(int64(d))
			case open && cmd != "stop":
				return fmt.Errorf("node: unknown command %q", cmd)
			default: // "stop", or the harness is gone
				stopReceiving()
				wg.Wait()
				select {
				case err := <-failed:
					return err
				default:
					return nil
				}
			}
		}
	}
}

// open opens the node's queue, or what stands in for it on purpose.
func (n *node) open(ctx context.Context) (queue.Queue, error) {
	if n.cfg.Fake != nil {
		return openFake(*n.cfg.Fake), nil
	}
	q, err := backends.Open(ctx, n.cfg.Queue)
	if p := n.cfg.Produce; err == nil && n.cfg.Slow > 0 {
		q = slowed(q, n.cfg.Slow, p != nil && p.Rate == 0 && p.Shape == "")
	}
	return q, err
}

func usage() *meter.Usage {
	u := meter.Self()
	return &u
}

// Left returns how many messages are in a queue, ready and in flight, or -1 where
// it does not tell.
func Left(ctx context.Context, q queue.Queue) (int64, error) {
	b, err := Look(ctx, q)
	return sum(b), err
}

func sum(b queue.Backlog) int64 {
	if b.Ready < 0 && b.InFlight < 0 {
		return -1
	}
	return max(b.Ready, 0) + max(b.InFlight, 0)
}

// Look looks into a queue. What it does not tell is -1.
func Look(ctx context.Context, q queue.Queue) (queue.Backlog, error) {
	looker, ok := q.(queue.Backlogger)
	if !ok {
		return queue.Backlog{Ready: -1, InFlight: -1, Dead: -1}, nil
	}
	b, err := looker.Backlog(ctx)
	if err != nil {
		return queue.Backlog{}, fmt.Errorf("look into the queue: %w", err)
	}
	return b, nil
}

// DrainDeadline is how long a node that drains waits for quiet.
const DrainDeadline = 2 * time.Minute

// awaitQuiet returns once nothing has come for half a second and nothing is
// missing, or for five seconds where something is: a broker that stalls has
// lost nothing. It reports false where that takes longer than DrainDeadline.
func (n *node) awaitQuiet(ctx context.Context) bool {
	last, since, began := int64(-1), time.Now(), time.Now()
	for time.Since(began) < DrainDeadline {
		now, quiet := n.received.Load(), 500*time.Millisecond
		if now != last {
			last, since = now, time.Now()
		}
		if now < n.accepted.Load() {
			quiet = 5 * time.Second
		}
		if time.Since(since) >= quiet {
			return true
		}
		select {
		case <-ctx.Done():
			return true // nobody waits for the answer
		case <-time.After(20 * time.Millisecond):
		}
	}
	return false
}

func (n *node) produce(ctx context.Context, p queue.Publisher) (load.Stats, error) {
	c := n.cfg.Produce
	source, err := c.Source(n.cfg)
	if err != nil {
		return load.Stats{}, err
	}
	message := source.Messages()
	if c.Rate > 0 || c.Shape != "" {
		pacer, count := load.Constant(c.Rate), c.Count
		if c.Shape != "" {
			shape, err := load.ParseShape(c.Shape, c.Seed)
			if err != nil {
				return load.Stats{}, err
			}
			if pacer, count = shape, load.CountBefore(shape, c.Span); count == 0 {
				return load.Stats{}, fmt.Errorf("the shape %s has no message due within %v", c.Shape, c.Span)
			}
		}
		return load.Run(ctx, load.Generator{Pacer: pacer, Count: count, Message: message, Publisher: p, MaxInFlight: cmp.Or(c.InFlight, 4096)})
	}
	return load.Closed(ctx, load.ClosedLoop{
		Senders: c.Senders, Batch: c.Batch, Count: c.Count, Duration: c.Duration, Message: message, Publisher: p,
		Window: c.Window, Delivered: n.received.Load,
	})
}

// What messages are where the load does not say.
const DefaultKeys, DefaultContent = "uniform:16", "text"

// Source makes the messages of a node that is configured so.
func (c *Produce) Source(n Config) (load.Source, error) {
	content, err := load.ParseContent(cmp.Or(c.Content, DefaultContent))
	if err != nil {
		return load.Source{}, err
	}
	keys, err := load.ParseKeys(cmp.Or(c.Keys, DefaultKeys), c.Seed)
	if err != nil {
		return load.Source{}, err
	}
	s := load.Source{
		Trial: n.Trial, Producer: n.Producer, Incarnation: n.Incarnation,
		Size: c.Payload, Content: content, Seed: c.Seed, KeyPlan: keys,
	}
	return s, s.Check()
}

func (n *node) consume(ctx context.Context, c queue.Consumer, effects *Effects) error {
	defer c.Close()
	c = ledger.RecordConsumer(mutate(n.cfg.Consume.Mutant, c), n.ledger)
	h := &handler{node: n, consumer: c, effects: effects, failed: map[string]int{}}
	quiet := time.Now()
	for {
		ds, err := c.Receive(ctx, n.cfg.Consume.ReceiveMax)
		switch {
		case ctx.Err() != nil && len(ds) == 0:
			return nil
		case errors.Is(err, queue.ErrClosed):
			return err
		case err != nil:
			if time.Since(quiet) > downFor {
				return fmt.Errorf("receive: %w", err)
			}
			continue
		}
		quiet = time.Now()
		n.received.Add(int64(len(ds)))
		n.crash.Pass(fault.OnReceive)
		time.Sleep(time.Duration(n.delay.Load()))
		n.crash.Pass(fault.MidHandle)
		if err := h.handle(ctx, ds); err != nil {
			return err
		}
	}
}
