package main

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"queuelab/app/sale"
	"queuelab/queue"
)

// diary notes what happens, in its order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, what)
}

// at is where a line stands: the first, or the last one.
func (d *diary) at(what string, last bool) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !last {
		return slices.Index(d.lines, what)
	}
	for i := len(d.lines) - 1; i >= 0; i-- {
		if d.lines[i] == what {
			return i
		}
	}
	return -1
}

type notedConsumer struct {
	queue.Consumer
	d *diary
	// hold keeps the worker from getting anything, until it is closed.
	hold chan struct{}
}

func (c notedConsumer) Receive(ctx context.Context, max int) ([]*queue.Delivery, error) {
	select {
	case <-c.hold:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return c.Consumer.Receive(ctx, max)
}

func (c notedConsumer) Ack(ctx context.Context, ds ...*queue.Delivery) error {
	c.d.note("acked")
	return c.Consumer.Ack(ctx, ds...)
}

func (c notedConsumer) Close() error { c.d.note("consumer closed"); return c.Consumer.Close() }

type notedPublisher struct {
	queue.Publisher
	d *diary
}

func (p notedPublisher) Close() error { p.d.note("publisher closed"); return p.Publisher.Close() }

type notedGate struct {
	sale.Gate
	d *diary
}

func (g notedGate) Close() error { g.d.note("gate closed"); return g.Gate.Close() }

type notedQueue struct {
	queue.Queue
	d *diary
}

func (q notedQueue) Close() error { q.d.note("queue closed"); return q.Queue.Close() }

// A stop first ends the clicks, then decides what was admitted, and only then
// closes what that needs.
func TestAStopEndsThingsInTheirOrder(t *testing.T) {
	c, _, err := parse([]string{"--listen", "127.0.0.1:0", "--trust-user-header", "--operator-token", operatorToken,
		"--db", "sqlite:" + filepath.Join(t.TempDir(), "x.db")}, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	s, err := open(t.Context(), &c.flags, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	d := &diary{}
	hold := make(chan struct{})
	s.consumer, s.publisher = notedConsumer{s.consumer, d, hold}, notedPublisher{s.publisher, d}
	s.gate, s.queue = notedGate{s.gate, d}, notedQueue{s.queue, d}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx) }()

	base := "http://" + s.listener.Addr().String()
	door := newDoor(t, base, 3)
	door.rush(3)
	waiting := make(chan int, 1)
	go func() {
		status, _, err := call(base, "GET", "/api/orders/"+door.told["1"]+"?wait=30s", "", "1")
		if err != nil {
			status = -1
		}
		d.note("answered")
		waiting <- status
	}()
	waitFor(t, "somebody waits", func() bool { return s.results.Waiting() == 1 })
	d.note("stop")
	stop()
	if status := <-waiting; status != 200 {
		t.Errorf("got %d for the request that ran, want its answer", status)
	}
	waitFor(t, "nobody new gets in", func() bool {
		conn, err := net.Dial("tcp", s.listener.Addr().String())
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	waitFor(t, "nor does who was in", func() bool {
		_, _, err := call(base, "GET", "/healthz", "", "")
		return err != nil
	})
	d.note("no more requests")
	close(hold)
	if err := <-ended; err != nil {
		t.Errorf("got %v, want a stop in order", err)
	}
	order := []string{"stop", "answered", "no more requests", "acked", "publisher closed", "consumer closed", "queue closed", "gate closed"}
	for i := 1; i < len(order); i++ {
		before, after := d.at(order[i-1], true), d.at(order[i], false)
		if before < 0 || after < before {
			t.Errorf("got %v, want %q before %q", d.lines, order[i-1], order[i])
		}
	}
	door.audit(c.DB, 3)
}
