package redistest

import (
	"context"
	"encoding/csv"
	"fmt"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

// Body is the payload of every comparison.
var Body = make([]byte, 100)

// Bench is a queue for a comparison, and a bare client of the same server.
type Bench struct {
	*testing.B
	Queue  queue.Queue
	Client *redis.Client
	server *broker.Broker
}

// Bench opens the queue "bench" on an emptied server.
func (b Backend) Bench(tb *testing.B, query string) *Bench {
	tb.Helper()
	x := &Bench{B: tb, server: brokertest.Start(tb, "redis", "aof-everysec")}
	x.Client = Client(tb, x.server)
	if err := x.Client.FlushAll(tb.Context()).Err(); err != nil {
		tb.Fatal(err)
	}
	x.Queue = b.Queue(tb, x.server, "bench", query)
	return x
}

// Messages makes n of them.
func Messages(n int) []queue.Message {
	ms := make([]queue.Message, n)
	for i := range ms {
		ms[i] = queue.Message{ID: "1-0-0-" + strconv.Itoa(i), Key: "k", Body: Body}
	}
	return ms
}

// Publisher opens one of the queue.
func (x *Bench) Publisher() queue.Publisher {
	x.Helper()
	p, err := x.Queue.Publisher(x.Context())
	if err != nil {
		x.Fatal(err)
	}
	return p
}

// Consumer opens one of the queue.
func (x *Bench) Consumer() queue.Consumer {
	x.Helper()
	c, err := x.Queue.Consumer(x.Context())
	if err != nil {
		x.Fatal(err)
	}
	return c
}

// Publish publishes n messages by so many callers, batch of them in each call.
func (x *Bench) Publish(p queue.Publisher, n, callers, batch int) error {
	ms := Messages(callers * batch)
	return Callers(callers, func(caller int) error {
		own := ms[caller*batch:][:batch]
		for range n / callers / batch {
			if err := p.Publish(context.Background(), own...); err != nil {
				return err
			}
		}
		return nil
	})
}

// Consume receives n messages, at most so many at a time, and acks what each
// Receive returned at once.
func (x *Bench) Consume(c queue.Consumer, n, most int) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for n > 0 {
		ds, err := c.Receive(ctx, most)
		if err == nil {
			err = c.Ack(ctx, ds...)
		}
		if err != nil {
			return fmt.Errorf("%d messages before the end: %w", n, err)
		}
		n -= len(ds)
	}
	return nil
}

// Tool has redis-benchmark send n commands, by so many clients that pipeline so
// many each, and returns what it says of its rate, in commands per second: its
// start is no part of that. Without the tool the benchmark is skipped.
func (x *Bench) Tool(n, clients, pipeline int, command ...string) (float64, error) {
	x.Helper()
	path, err := exec.LookPath("redis-benchmark")
	if err != nil {
		x.Skip(err)
	}
	u, err := url.Parse(x.server.URL())
	if err != nil {
		return 0, err
	}
	args := append([]string{"-h", u.Hostname(), "-p", u.Port(), "--csv", "-n", strconv.Itoa(n),
		"-c", strconv.Itoa(clients), "-P", strconv.Itoa(pipeline)}, command...)
	out, err := exec.CommandContext(x.Context(), path, args...).Output() // ends with the benchmark
	if err != nil {
		return 0, fmt.Errorf("redis-benchmark: %w", err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(out))).ReadAll()
	if err != nil || len(rows) < 2 || len(rows[1]) < 2 {
		return 0, fmt.Errorf("redis-benchmark: its answer is no table: %q", out)
	}
	return strconv.ParseFloat(rows[1][1], 64)
}
