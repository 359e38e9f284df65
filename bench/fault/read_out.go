package fault

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"queuelab/queue"
)

// lastWord is the id of the message that is published behind what a queue holds.
// The trial's ledgers know nothing of it, so that it must not outlive its image.
const lastWord = "the-last-word"

// readOut takes everything from a queue whose broker was just restarted, beside
// the trial's ledgers, and returns how many of the wanted messages are not in it;
// it is for an image that is thrown away afterwards.
//
// A count would not do. A quorum queue of RabbitMQ says 0 while it has no leader
// and fewer than it has until its log is replayed, both for as long as that takes;
// and messages whose publish had no answer stand in for those that are gone. Here
// a message is only missing if one that was accepted by the restarted queue came
// out of it, and it is empty. An error says that it cannot be told.
func readOut(ctx context.Context, s Scene, wanted map[string]bool) (missing int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, readOutWithin)
	defer cancel()
	r := &reading{queue: s.Queue(), left: maps.Clone(wanted)}
	defer func() { r.close() }()
	var last error
	for len(r.left) > 0 {
		n, err := r.next(ctx)
		if err != nil {
			last = err
		}
		switch {
		case ctx.Err() != nil:
			return 0, fmt.Errorf("%d of %d messages were read within %v, and whether more would come is not known: %w (last: %w)",
				len(wanted)-len(r.left), len(wanted), readOutWithin, ctx.Err(), last)
		case n > 0:
			continue
		case !r.heard: // again, since nobody knows what became of an earlier one
			last = r.say(ctx)
		default:
			if left, err := waiting(ctx, s); err != nil || left > 0 {
				last = err
				continue
			}
			return int64(len(r.left)), nil
		}
	}
	return 0, nil
}

const (
	readOutWithin = time.Minute
	// silent is how long nothing comes from a queue that may be empty.
	silent = time.Second
)

// reading is a queue on its way to be empty.
type reading struct {
	queue     queue.Queue
	consumer  queue.Consumer
	publisher queue.Publisher
	left      map[string]bool // wanted, and not read yet
	heard     bool            // the last word came out
}

// next takes what comes within a while, and returns how many that was.
func (r *reading) next(ctx context.Context) (int, error) {
	if r.consumer == nil {
		c, err := r.queue.Consumer(ctx)
		if err != nil { // it is asked again: the broker was just restarted
			return 0, errors.Join(err, pass(ctx, silent/10))
		}
		r.consumer = c
	}
	short, cancel := context.WithTimeout(ctx, silent)
	defer cancel()
	ds, err := r.consumer.Receive(short, 100)
	for _, d := range ds {
		delete(r.left, d.ID)
		r.heard = r.heard || d.ID == lastWord
	}
	if len(ds) == 0 {
		if err != nil && short.Err() == nil {
			err = errors.Join(err, pass(ctx, silent/10))
		}
		return 0, err
	}
	if err := r.consumer.Ack(ctx, ds...); err != nil {
		return len(ds), fmt.Errorf("ack: %w", err) // it comes again, and is read already
	}
	return len(ds), nil
}

// say publishes the last word.
func (r *reading) say(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if r.publisher == nil {
		p, err := r.queue.Publisher(ctx)
		if err != nil {
			return err
		}
		r.publisher = p
	}
	return r.publisher.Publish(ctx, queue.Message{ID: lastWord, Key: "0"})
}

// close ends what the reading opened. What they say is of no interest: the broker
// is killed next.
func (r *reading) close() {
	if r.consumer != nil {
		_ = r.consumer.Close()
	}
	if r.publisher != nil {
		_ = r.publisher.Close()
	}
}
