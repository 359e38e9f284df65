package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"queuelab/backends"
	"queuelab/queue"
)

// Publish, receive, ack: the whole life of a message.
func Example() {
	ctx := context.Background()
	q, err := backends.Open(ctx, "memory://orders")
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	c, err := q.Consumer(ctx)
	if err != nil {
		log.Fatal(err)
	}
	p, err := q.Publisher(ctx)
	if err != nil {
		log.Fatal(err)
	}

	if err := p.Publish(ctx, queue.Message{ID: "1", Body: []byte("one ticket")}); err != nil {
		log.Fatal(err)
	}
	ds, err := c.Receive(ctx, 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range ds {
		fmt.Printf("%s: %s, attempt %d\n", d.ID, d.Body, d.Attempt)
	}
	fmt.Println("first ack:", c.Ack(ctx, ds...))
	fmt.Println("second ack:", c.Ack(ctx, ds...))
	// Output:
	// 1: one ticket, attempt 1
	// first ack: <nil>
	// second ack: queue: delivery already settled
}

// A publish has three outcomes per message. What was rejected may be told to
// the buyer; what is unknown may not.
func ExampleOutcomeOf() {
	ctx := context.Background()
	q, err := backends.Open(ctx, "memory://orders?capacity=2&full=reject")
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	p, err := q.Publisher(ctx)
	if err != nil {
		log.Fatal(err)
	}
	batch := []queue.Message{{ID: "1"}, {ID: "2"}, {ID: "3"}}
	err = p.Publish(ctx, batch...)
	for i, m := range batch {
		fmt.Println(m.ID, queue.OutcomeOf(err, i))
	}
	fmt.Println(errors.Is(err, queue.ErrRejected))
	// Output:
	// 1 accepted
	// 2 accepted
	// 3 rejected
	// true
}

// What a queue promises is data, so that a program can refuse it.
func ExampleCapabilities_Lossy() {
	ctx := context.Background()
	q, err := backends.Open(ctx, "memory://orders")
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	caps := q.Capabilities()
	fmt.Printf("%s, confirmed by: %s, durable: %v, lossy: %v\n", caps.Guarantee, caps.Confirm, caps.Durable, caps.Lossy())
	// Output:
	// at least once, confirmed by: memory, durable: false, lossy: true
}

// A consumer that is closed gives back what it has not settled.
func ExampleConsumer_close() {
	ctx := context.Background()
	q, err := backends.Open(ctx, "memory://orders")
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	p, err := q.Publisher(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Publish(ctx, queue.Message{ID: "1"}); err != nil {
		log.Fatal(err)
	}
	for range 3 {
		c, err := q.Consumer(ctx)
		if err != nil {
			log.Fatal(err)
		}
		ds, err := c.Receive(ctx, 1)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("attempt", ds[0].Attempt)
		c.Close() // without an ack
	}
	// Output:
	// attempt 1
	// attempt 2
	// attempt 3
}

// A worker drains a queue: it acks what succeeds, retries what fails, and
// gives up what never will.
func ExampleWorker() {
	ctx, stop := context.WithCancel(context.Background())
	q, err := backends.Open(ctx, "memory://orders")
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	c, err := q.Consumer(ctx)
	if err != nil {
		log.Fatal(err)
	}
	p, err := q.Publisher(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Publish(ctx, queue.Message{ID: "good"}, queue.Message{ID: "poison"}); err != nil {
		log.Fatal(err)
	}
	w := queue.Worker{
		Consumer: c,
		Handle: func(_ context.Context, batch []*queue.Delivery) []error {
			errs := make([]error, len(batch))
			for i, d := range batch {
				fmt.Println("handle", d.ID, "attempt", d.Attempt)
				if d.ID == "poison" {
					errs[i] = errors.New("no such voucher")
				}
			}
			return errs
		},
		MaxAttempts: 2,
		DeadLetter: func(_ context.Context, d *queue.Delivery, cause error) error {
			fmt.Println("give up", d.ID+":", cause)
			stop() // an example has an end
			return nil
		},
		DrainTimeout: time.Second,
	}
	fmt.Println("stopped:", w.Run(ctx))
	// Output:
	// handle good attempt 1
	// handle poison attempt 1
	// handle poison attempt 2
	// give up poison: no such voucher
	// stopped: <nil>
}
