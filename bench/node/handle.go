package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"queuelab/bench/fault"
	"queuelab/bench/ledger"
	"queuelab/queue"
)

// handler is what a node's consumer does with what it receives. Its methods
// belong to one goroutine.
type handler struct {
	node     *node
	consumer queue.Consumer // as ledger.RecordConsumer returns it
	effects  *Effects
	failed   map[string]int // attempts at messages that always fail, by id
}

const (
	// downFor is how long a node puts up with a broker or a database that is
	// down: one that is down is part of the trial, one that stays down is not.
	downFor = time.Minute
	// settleFor is how long an ack is tried.
	settleFor = 20 * time.Second
)

// handle makes the effects of a batch and settles it: an ack only after the
// commit. What is not committed when the stop comes stays unsettled, and closing
// the consumer gives it back.
func (h *handler) handle(ctx context.Context, ds []*queue.Delivery) error {
	if ds = h.cast(ctx, ds); len(ds) == 0 {
		return nil
	}
	n := h.node
	committed, err := h.commit(ctx, ds)
	if !committed {
		return err
	}
	n.crash.Pass(fault.BeforeAck)
	time.Sleep(n.cfg.Consume.AckDelay)
	h.settle(ctx, "ack", h.consumer.Ack, ds)
	n.crash.Pass(fault.AfterAck)
	return nil
}

// commit tries until the effects are committed, and reports false where the stop
// came before. It holds the messages meanwhile, as a service does whose database
// is down: given back, they would come again at once, and use up their attempts.
func (h *handler) commit(ctx context.Context, ds []*queue.Delivery) (bool, error) {
	for began := time.Now(); ; {
		err := h.effects.Commit(ctx, h.node.ledger, h.node.cfg.Process, ds)
		switch {
		case err == nil:
			return true, nil
		case time.Since(began) > downFor:
			return false, err
		}
		fmt.Fprintln(os.Stderr, "node:", err)
		if !sleep(ctx, 100*time.Millisecond) {
			return false, nil
		}
	}
}

// cast lets the handler fail for the poisoned message, and returns the others.
// Where the queue cannot take it back it is handled again here, and what comes
// after it waits.
func (h *handler) cast(ctx context.Context, ds []*queue.Delivery) []*queue.Delivery {
	poison, every := h.node.cfg.Consume.Poison, h.node.cfg.Consume.PoisonEvery
	if poison == 0 && every == 0 {
		return ds
	}
	is := func(d *queue.Delivery) bool {
		id, err := ledger.ParseID(d.ID)
		return err == nil && (poison > 0 && id.Seq == poison || every > 0 && (id.Seq+1)%every == 0)
	}
	for _, d := range ds {
		if is(d) {
			h.fail(ctx, d)
		}
	}
	return slices.DeleteFunc(slices.Clone(ds), is)
}

// fail is one attempt at a message that always fails, or where it cannot be given
// back all that are left. It is counted as the queue counts, or here, whichever
// is more.
func (h *handler) fail(ctx context.Context, d *queue.Delivery) {
	for {
		attempt := max(d.Attempt, h.failed[d.ID]+1)
		h.failed[d.ID] = attempt
		if attempt >= fault.PoisonAttempts {
			ledger.RecordDeadLetter(h.node.ledger, d)
			h.settle(ctx, "ack", h.consumer.Ack, []*queue.Delivery{d})
			return
		}
		if !errors.Is(h.consumer.Nack(ctx), queue.ErrUnsupported) {
			h.settle(ctx, "nack", h.consumer.Nack, []*queue.Delivery{d})
			return
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return
		}
	}
}

// settle tries for as long as the queue gives no answer, also when the stop came
// meanwhile: what is handled is settled, and one delivery that is not would hold
// up all that follow it on a queue that remembers only how far it got.
func (h *handler) settle(ctx context.Context, op string, do func(context.Context, ...*queue.Delivery) error, ds []*queue.Delivery) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleFor)
	defer cancel()
	for {
		err := do(ctx, ds...)
		if err == nil {
			return
		}
		// What was settled before, or belongs to another consumer by now, is done.
		ds = slices.DeleteFunc(slices.Clone(ds), (*queue.Delivery).Settled)
		if len(ds) == 0 {
			return
		}
		fmt.Fprintf(os.Stderr, "node: %s: %v\n", op, err)
		if errors.Is(err, queue.ErrClosed) || !sleep(ctx, 50*time.Millisecond) {
			return
		}
	}
}

// sleep reports false where ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
