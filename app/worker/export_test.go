package worker

import (
	"context"

	"queuelab/queue"
)

// Reconcile is for tests of what is told to the gate too late.
var Reconcile = reconcile

// Handle is what the queue's worker calls for a batch.
func (w *Worker) Handle(ctx context.Context, batch []*queue.Delivery) []error {
	return w.handle(ctx, batch)
}

// GiveUp is what the queue's worker calls once the attempts are used up.
func (w *Worker) GiveUp(ctx context.Context, d *queue.Delivery, cause error) error {
	return w.deadLetter(ctx, d, cause)
}
