package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"queuelab/backends"
	"queuelab/queue"
)

// clock times the messages after the warm-up.
type clock struct {
	warm  int64
	count atomic.Int64
	once  sync.Once
	begun time.Time
	base  int64
}

// begin starts the clock, unless it runs.
func (m *clock) begin(count int64) {
	m.once.Do(func() { m.begun, m.base = time.Now(), count })
}

func (m *clock) add(n int) int64 {
	now := m.count.Add(int64(n))
	if m.warm > 0 && now >= m.warm && now-int64(n) < m.warm {
		m.begin(now)
	}
	return now
}

// rate stops the clock.
func (m *clock) rate() (float64, error) {
	end, n := time.Now(), m.count.Load()
	m.begin(n) // where the warm-up never ended
	took := end.Sub(m.begun).Seconds()
	if n -= m.base; n <= 0 || took <= 0 {
		return 0, errors.New("it was over before the warm-up was")
	}
	return float64(n) / took, nil
}

// window is the time of a run, where it is by time: the clock starts after the
// warm-up, and stop is called at the end.
func (o orders) window(ctx context.Context, m *clock, stop func()) {
	if o.Count > 0 {
		return
	}
	for _, step := range []struct {
		after time.Duration
		do    func()
	}{
		{o.WarmFor, func() { m.begin(m.count.Load()) }},
		{o.For, stop},
	} {
		t := time.NewTimer(step.after)
		select {
		case <-t.C:
			step.do()
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

// messages makes a caller's messages: one body for all, and an id for each.
func messages(msgs []queue.Message, body []byte, first int64) {
	for i := range msgs {
		id := make([]byte, 0, 20)
		id = strconv.AppendInt(append(id, "peers-"...), 1_000_000_000+first+int64(i), 10)
		msgs[i] = queue.Message{ID: string(id), Body: body}
	}
}

func body() []byte { return bytes.Repeat([]byte{'q'}, payload) }

// publish has callers publish side by side through one publisher, each waiting
// for its answer before it publishes again.
func (o orders) publish(ctx context.Context) (outcome, error) {
	q, err := backends.Open(ctx, o.URL)
	if err != nil {
		return outcome{}, err
	}
	defer q.Close()
	p, err := q.Publisher(ctx)
	if err != nil {
		return outcome{}, fmt.Errorf("open a publisher: %w", err)
	}
	m := &clock{warm: o.Warm}
	if err := o.feed(ctx, p, m); err != nil {
		return outcome{}, err
	}
	rate, err := m.rate()
	return outcome{Rate: rate}, err
}

// feed publishes what is ordered. Any message that is not accepted ends it with
// an error: a rate of refusals is none.
func (o orders) feed(ctx context.Context, p queue.Publisher, m *clock) error {
	var stopped atomic.Bool
	timing, cancel := context.WithCancel(ctx)
	var timer sync.WaitGroup
	timer.Go(func() { o.window(timing, m, func() { stopped.Store(true) }) })
	defer timer.Wait()
	defer cancel()
	if o.Count > 0 && o.Warm == 0 {
		m.begin(0)
	}
	var next atomic.Int64
	var failed atomic.Pointer[error]
	shared := body()
	var callers sync.WaitGroup
	for range o.Callers {
		callers.Go(func() {
			msgs := make([]queue.Message, o.Batch)
			for !stopped.Load() && ctx.Err() == nil {
				first := next.Add(int64(o.Batch)) - int64(o.Batch)
				if o.Count > 0 {
					if first >= o.Count {
						return
					}
					msgs = msgs[:min(int64(o.Batch), o.Count-first)]
				}
				messages(msgs, shared, first)
				if err := p.Publish(ctx, msgs...); err != nil {
					failed.CompareAndSwap(nil, &err)
					stopped.Store(true)
					return
				}
				m.add(len(msgs))
			}
		})
	}
	callers.Wait()
	if err := failed.Load(); err != nil {
		return fmt.Errorf("publish: %w", *err)
	}
	return ctx.Err()
}

// consume receives and acks, one consumer.
func (o orders) consume(ctx context.Context) (outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := &clock{warm: o.Warm}
	c, err := o.consumer(ctx)
	if err != nil {
		return outcome{}, err
	}
	defer c.close()
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel()
	var over atomic.Bool
	beside.Go(func() { o.window(ctx, m, func() { over.Store(true) }) })
	if o.Progress {
		beside.Go(func() { tellProgress(ctx, o.URL, &m.count) })
	}
	if o.Count > 0 && o.Warm == 0 {
		m.begin(0)
	}
	for !over.Load() && (o.Count == 0 || m.count.Load() < o.Count) {
		n, err := c.next(ctx)
		if err != nil {
			return outcome{}, fmt.Errorf("after %d messages: %w", m.count.Load(), err)
		}
		m.add(n)
	}
	if err := c.settled(); err != nil {
		return outcome{}, err
	}
	rate, err := m.rate()
	return outcome{Rate: rate}, err
}

// consumer is one that is measured, ours or bare.
type consumer struct {
	next    func(context.Context) (int, error) // receives, acks and counts once
	settled func() error                       // waits for acks that are under way
	close   func()
}

func nothingUnderWay() error { return nil }

func (o orders) consumer(ctx context.Context) (*consumer, error) {
	if o.Bare != "" {
		return o.bareConsumer(ctx)
	}
	q, err := backends.Open(ctx, o.URL)
	if err != nil {
		return nil, err
	}
	c, err := q.Consumer(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a consumer: %w", err), q.Close())
	}
	ack, settled := c.Ack, nothingUnderWay
	if o.AckBehind {
		ack, settled = ackBehind(c)
	}
	return &consumer{
		next: func(ctx context.Context) (int, error) {
			ds, err := c.Receive(ctx, o.Batch)
			if err != nil {
				return 0, fmt.Errorf("receive: %w", err)
			}
			if err := ack(ctx, ds...); err != nil {
				return 0, fmt.Errorf("ack: %w", err)
			}
			return len(ds), nil
		},
		settled: settled,
		close: func() {
			_ = settled()
			_ = q.Close() // what was measured is known, and closing cannot change it
		},
	}, nil
}

// ackBehind acks in a goroutine of its own.
func ackBehind(c queue.Consumer) (ack func(context.Context, ...*queue.Delivery) error, settled func() error) {
	put, settled := behind(func(ds []*queue.Delivery) error { return c.Ack(context.Background(), ds...) })
	return func(_ context.Context, ds ...*queue.Delivery) error { return put(ds) }, settled
}

// behind does something to what it is given in a goroutine of its own, to all
// that has come meanwhile at once. Its put returns an earlier call's error; none
// may come after settled.
func behind[T any](do func([]T) error) (put func([]T) error, settled func() error) {
	batches := make(chan []T, 64)
	var failed atomic.Pointer[error]
	get := func() error {
		if err := failed.Load(); err != nil {
			return *err
		}
		return nil
	}
	var doer sync.WaitGroup
	doer.Go(func() {
		for open := true; open; {
			var all []T
			if all, open = <-batches; !open {
				return
			}
			for more := true; more; {
				select {
				case also, ok := <-batches:
					all, more, open = append(all, also...), ok, ok
				default:
					more = false
				}
			}
			if failed.Load() != nil {
				continue // so that nobody waits for room
			}
			if err := do(all); err != nil {
				failed.CompareAndSwap(nil, &err)
			}
		}
	})
	var once sync.Once
	return func(ts []T) error {
			batches <- ts
			return get()
		}, func() error {
			once.Do(func() { close(batches); doer.Wait() })
			return get()
		}
}
