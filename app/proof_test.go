package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"queuelab/backends"
	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

// proven are the queues of the small proof; a soak proves every durable one.
var proven = map[string]bool{"redis-streams": true, "rabbitmq": true}

// queries are parameters by which a dead consumer's orders come back soon, once
// for each way in which the queue keeps what it has.
func queries(b backends.Backend, soak bool) []string {
	switch {
	case b.Name == "rabbitmq" && soak:
		return []string{"type=quorum", "type=classic"}
	case b.Name == "rabbitmq":
		return []string{"type=quorum"}
	case b.Name == "kafka":
		return []string{"session=2s&heartbeat=500ms"}
	case b.Lease != "":
		return []string{b.Lease + "=2s"}
	}
	return []string{""}
}

// keeps reports whether a queue keeps what it accepted, whoever is killed, and
// can be shared.
func keeps(t *testing.T, rawURL string) bool {
	t.Helper()
	q, err := backends.Open(t.Context(), rawURL)
	if err != nil {
		t.Fatal(err)
	}
	c := q.Capabilities()
	if err := errors.Join(q.Delete(t.Context()), q.Close()); err != nil {
		t.Fatal(err)
	}
	return c.Guarantee == queue.AtLeastOnce && c.Durable && c.Shared && !c.Broadcast && !c.Lossy()
}

func TestASaleSurvivesTheDeathOfEachOfItsParts(t *testing.T) {
	soak := os.Getenv("QUEUELAB_SOAK") != ""
	redis := []string{"aof-everysec"}
	stock, repeats := 120, 1
	if soak {
		redis, stock, repeats = append(redis, "aof-always"), 300, 2
	}
	for _, b := range backends.All() {
		if b.Broker == "" || !soak && !proven[b.Name] {
			continue
		}
		for _, setting := range redis {
			for _, query := range queries(b, soak) {
				t.Run(b.Name+"/"+query+"/"+setting, func(t *testing.T) {
					gate := brokertest.Start(t, "redis", setting)
					own := ""
					if b.Broker == "redis" {
						own = setting
					}
					broker := brokertest.Start(t, b.Broker, own)
					rawURL := func() string {
						return broker.QueueURL(b.Scheme, fmt.Sprintf("proof%d", time.Now().UnixNano()), query)
					}
					if !keeps(t, rawURL()) {
						t.Skipf("queue %s may lose what it holds, or gives it to everybody, and says so", b.Name)
					}
					for range repeats {
						prove(t, gate, broker, rawURL(), stock)
					}
				})
			}
		}
	}
}

// cast are the processes of a sale; each can be killed and comes back.
type cast struct {
	t      *testing.T
	dir    string
	args   []string
	door   *entrance
	front  *process // the buyers' door
	worker *process // who decides their orders
	parts  []*part
}

func (c *cast) start(role string) *process {
	c.t.Helper()
	return start(c.t, c.dir, append(c.args, "--role", role)...)
}

type part struct {
	name  string
	death func()
}

func broken(t *testing.T, b *broker.Broker) func() {
	return func() {
		t.Helper()
		if err := b.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond) // long enough to be noticed: the sale goes on, or tells buyers to come again
		if err := b.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// prove kills the service, a worker, Redis, the queue's broker and PostgreSQL in
// turn, each while orders are on their way, and wants every unit sold once, every
// buyer answered, and a verify that finds nothing.
func prove(t *testing.T, gate, broker *broker.Broker, queueURL string, stock int) {
	t.Helper()
	db := postgres(t)
	c := &cast{t: t, dir: t.TempDir(), args: []string{"--db", db, "--redis", gate.URL(),
		"--queue", queueURL}}
	c.front, c.worker = c.start("web"), c.start("worker")
	c.door = newDoor(t, c.front.base, stock)
	c.door.patience, c.door.own = 2*time.Minute, true
	pg := brokertest.Start(t, "postgres", "")
	c.parts = []*part{
		{"the service", func() {
			c.front.kill()
			c.front = c.start("web")
			c.door.base.Store(c.front.base)
		}},
		{"a worker", func() { c.worker.kill(); c.worker = c.start("worker") }},
		{"the Redis of admission", broken(t, gate)},
		{"PostgreSQL", broken(t, pg)},
	}
	if broker != gate && broker != pg {
		c.parts = append(c.parts, &part{"the queue's broker", broken(t, broker)})
	}
	c.sell(stock)
	wantConfirmed(t, c.door.results(), stock)
	c.verify(0)
	c.door.audit(db, stock)
	c.worker.stop(t)
	c.front.stop(t)
	c.verify(0)
}

// sell lets in as many buyers at a time as keep the sale going until each part
// has died.
func (c *cast) sell(stock int) {
	c.t.Helper()
	demand := 3 * stock
	buyers := make(chan string, demand)
	var wg sync.WaitGroup
	wg.Go(func() { c.door.serve(buyers) })
	share, next := stock/(len(c.parts)+1), 0
	enter := func(n int) {
		for range n {
			next++
			buyers <- fmt.Sprint(next)
		}
	}
	defer wg.Wait()
	defer close(buyers)
	for i, p := range c.parts {
		enter(share)
		at := int64(i*share + share/4)
		waitFor(c.t, "the sale is under way before "+p.name+" dies", func() bool { return c.door.count.Load() >= at })
		p.death()
	}
	enter(demand - next)
}

// verify runs seckill verify as an operator does.
func (c *cast) verify(want int, more ...string) string {
	c.t.Helper()
	code, out := verify(c.t, append(c.args, append([]string{c.door.voucher}, more...)...)...)
	if code != want {
		c.t.Errorf("seckill verify: got exit %d, want %d:\n%s", code, want, out)
	}
	return out
}

func verify(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	return child(t, append([]string{"verify"}, args...)...)
}

// child runs seckill to its end.
func child(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	cmd.Env = append(os.Environ(), childEnv+"=1")
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), strings.TrimSpace(b.String())
}
