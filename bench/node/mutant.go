package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"queuelab/queue"
)

// Mutants are the ways in which a node can spoil its queue on purpose, between
// the backend and the ledger, to prove that the harness says so. They are for
// tests of the harness and for teaching, never for a result.
func Mutants() []string {
	return []string{"ack-deleted", "ack-early", "drop-one-in-a-thousand", "deliver-one-twice"}
}

// CheckMutant refuses a name that is no mutant's; the empty one is none.
func CheckMutant(name string) error {
	if name != "" && !slices.Contains(Mutants(), name) {
		return fmt.Errorf("unknown mutant %q: the mutants are %s", name, strings.Join(Mutants(), ", "))
	}
	return nil
}

// mutate spoils a consumer; the empty name leaves it as it is.
func mutate(name string, c queue.Consumer) queue.Consumer {
	if name == "" {
		return c
	}
	return &mutantConsumer{Consumer: c, name: name}
}

type mutantConsumer struct {
	queue.Consumer
	name     string
	received atomic.Int64
	again    []*queue.Delivery // owned by the one goroutine in Receive
}

func (m *mutantConsumer) Receive(ctx context.Context, n int) ([]*queue.Delivery, error) {
	if len(m.again) > 0 {
		ds := m.again
		m.again = nil
		return ds, nil
	}
	for {
		ds, err := m.Consumer.Receive(ctx, n)
		if err != nil {
			return ds, err
		}
		switch m.name {
		case "ack-early":
			if err := m.Consumer.Ack(ctx, ds...); err != nil {
				return ds, err
			}
		case "drop-one-in-a-thousand":
			var kept []*queue.Delivery
			for _, d := range ds {
				if m.received.Add(1)%1000 == 100 {
					if err := m.Consumer.Ack(ctx, d); err != nil {
						return ds, err
					}
					continue
				}
				kept = append(kept, d)
			}
			ds = kept
		case "deliver-one-twice":
			for _, d := range ds {
				if m.received.Add(1) == 100 {
					m.again = []*queue.Delivery{queue.NewDelivery(d.Message, d.Attempt, twin{})}
				}
			}
		}
		if len(ds) > 0 {
			return ds, nil
		}
	}
}

// twin is the receipt of the delivery that the queue knows nothing of.
type twin struct{}

func (m *mutantConsumer) Ack(ctx context.Context, ds ...*queue.Delivery) error {
	switch m.name {
	case "ack-deleted", "ack-early":
		return nil
	case "deliver-one-twice":
		ds = slices.DeleteFunc(slices.Clone(ds), func(d *queue.Delivery) bool { return d.Receipt() == twin{} })
		if len(ds) == 0 {
			return nil
		}
	}
	return m.Consumer.Ack(ctx, ds...)
}
