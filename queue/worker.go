package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// ErrAttempts is the cause that DeadLetter gets for a delivery whose attempts
// were used up before it could be handled again: the earlier handlings ended
// without an answer, such as with the death of the process.
var ErrAttempts = errors.New("queue: the attempts are used up, and the last one gave no answer")

// Worker drains a queue: it receives, handles in lanes, settles, counts
// attempts, gives up, and stops in two phases. Fields must not change while
// Run runs.
//
// Messages of one key are handled one after another, in the order in which
// they were received, for as long as none fails. A failed delivery is nacked
// where the queue can; it then comes again after those of its key that the
// worker already holds. Where the queue cannot nack, the delivery is retried in
// its lane, and those of its key wait for it.
//
// A worker holds at most 4 * Lanes * Batch deliveries. Prefetch and leases must
// allow for the time in which it works through so many.
type Worker struct {
	// Consumer is left open by Run: closing it afterwards gives back what was
	// received and not handled.
	Consumer Consumer
	// Handle works on a batch (deliveries of one lane, in order) and returns
	// nil, or one error per delivery, nil for each that is done. What is done
	// is acked. A panic counts as an error of every delivery of the batch.
	Handle func(ctx context.Context, batch []*Delivery) []error
	// Lanes is how many batches are handled at once. A key is in one of them at a
	// time. Default 1.
	Lanes int
	// Batch is the most deliveries that Handle gets at once; a batch is what is
	// there, waited for no longer than Linger. Default 1.
	Batch int
	// Linger is how long a batch that is not full waits for more while other lanes
	// are at work. It is for handlers that cost much a batch and little a message,
	// such as those that wait for a disk. Default 0: not at all.
	Linger time.Duration
	// MaxAttempts is how often a message is handled before it is given up. 0:
	// for ever. A queue that only flags redeliveries may flag a message that
	// nobody handled, so that with such a queue 1 gives up innocent messages.
	MaxAttempts int
	// Attempts notes, durably, that the deliveries of a batch are about to be
	// handled, and returns how often that was so of each, in the same order, this
	// time included. It is called before each handling, so that a message that kills
	// the process is counted too; ended, unless it is nil, is called after it, and
	// before anything is settled, with those that are not done. Set it where the queue
	// does not count, or merely flags. Nil: what the queue says, or what failed in
	// this Run, whichever is more; that is also used when Attempts fails, which
	// OnError is told.
	Attempts func(ctx context.Context, batch []*Delivery) (numbers []int, ended func(ctx context.Context, failed []*Delivery) error, err error)
	// DeadLetter takes a message whose attempts are used up; after nil the
	// delivery is acked, after an error it counts as failed once more. It must
	// be set where MaxAttempts is.
	DeadLetter func(ctx context.Context, d *Delivery, cause error) error
	// Backoff is how long a delivery that has failed for the attempt-th time
	// waits before it is given back or retried. Nil: not at all.
	Backoff func(attempt int) time.Duration
	// DrainTimeout is how long running handlers may go on after ctx has ended,
	// before their ctx ends too.
	DrainTimeout time.Duration
	// OnError hears what Run cannot return: failures to receive, settle, count
	// or dead-letter, and the errors of Handle. It is called from several
	// goroutines at once. Nil: nobody hears them.
	OnError func(error)
}

// settleTimeout bounds an Ack or Nack with its retries. Settling must outlive
// the context of Run: what a handler finished while draining is still acked.
const settleTimeout = 5 * time.Second

// settleAgain is the pause before what was not settled within settleTimeout is tried
// again, until the worker stops.
const settleAgain = time.Second

// Run works until ctx ends or the consumer is closed. Then it receives no more
// and starts no more handlers, lets those that run finish until DrainTimeout,
// ends their ctx, and waits for them. What was not finished stays unsettled, so
// that closing the consumer gives it back.
//
// nil is a wanted stop: ctx ended. A consumer that was closed under a running
// worker is ErrClosed.
func (w *Worker) Run(ctx context.Context) error {
	switch {
	case w.Consumer == nil || w.Handle == nil:
		return errors.New("queue: worker: Consumer and Handle must be set")
	case w.MaxAttempts > 0 && w.DeadLetter == nil:
		return errors.New("queue: worker: MaxAttempts without DeadLetter would drop messages silently")
	}
	stopping, stop := context.WithCancel(ctx)
	defer stop()
	handling, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r := &run{
		Worker:   w,
		stopping: stopping,
		handling: handling,
		limit:    4 * max(w.Lanes, 1) * max(w.Batch, 1),
		backlog:  newBacklog(max(w.Batch, 1), w.Linger),
		freed:    make(chan struct{}, 1),
		failed:   make(map[string]int),
		// Asked without deliveries, which costs nothing.
		canNack: !errors.Is(w.Consumer.Nack(ctx), ErrUnsupported),
	}
	for lane := range max(w.Lanes, 1) {
		r.wg.Go(func() { r.work(lane) })
	}
	err := r.receive()
	stop()

	finished := make(chan struct{})
	go func() {
		defer close(finished)
		r.wg.Wait()
	}()
	drain := time.NewTimer(w.DrainTimeout)
	defer drain.Stop()
	select {
	case <-finished:
	case <-drain.C:
		cancel()
		<-finished
	}
	return err
}

// run is one call of Run.
type run struct {
	*Worker
	stopping context.Context // ends the receiving, and every wait
	handling context.Context // what handlers get
	limit    int
	canNack  bool

	backlog *backlog
	wg      sync.WaitGroup

	held  atomic.Int64
	freed chan struct{}

	mu     sync.Mutex
	failed map[string]int // by message id, what failed in this run
}

func (r *run) receive() error {
	for {
		room := r.limit - int(r.held.Load())
		if room < 1 {
			select {
			case <-r.freed:
				continue
			case <-r.stopping.Done():
				return nil
			}
		}
		ds, err := r.Consumer.Receive(r.stopping, room)
		r.held.Add(int64(len(ds)))
		r.backlog.add(ds)
		switch {
		case err == nil:
		case r.stopping.Err() != nil:
			return nil //nolint:nilerr // a wanted stop ended the Receive
		case errors.Is(err, ErrClosed):
			return fmt.Errorf("queue: worker: receive: %w", err)
		default:
			// Receive waits as long as back-off asks before it fails again.
			r.report("receive", err)
		}
	}
}

// release makes room for n more deliveries.
func (r *run) release(n int) {
	r.held.Add(-int64(n))
	select {
	case r.freed <- struct{}{}:
	default:
	}
}

func (r *run) report(op string, err error) {
	if r.OnError != nil {
		r.OnError(fmt.Errorf("queue: worker: %s: %w", op, err))
	}
}
