package driver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/queue"
)

var errRefused = errors.New("refused")

// outcome is what becomes of a message whose result is err.
func outcome(err error) (queue.Outcome, error) {
	if errors.Is(err, errRefused) {
		return queue.Rejected, err
	}
	return queue.Unknown, err
}

func TestAPublishHasOneOutcomeForEachMessage(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		results []error
		want    []queue.Outcome
	}{
		"all are accepted":      {results: []error{nil, nil}},
		"one is refused":        {[]error{nil, errRefused, nil}, []queue.Outcome{queue.Accepted, queue.Rejected, queue.Accepted}},
		"one is, one is broken": {[]error{broken, errRefused}, []queue.Outcome{queue.Unknown, queue.Rejected}},
	} {
		shared := NewCoalescer(10, one, func(items []int, results []error) {
			for i, n := range items {
				results[i] = c.results[n]
			}
		})
		items := make([]int, len(c.results))
		for i := range items {
			items[i] = i
		}
		_, err := Publish(t.Context(), "test publish", shared, items, outcome)
		shared.Close(time.Minute)
		var pe *queue.PublishError
		if errors.As(err, &pe) != (c.want != nil) || pe != nil && !cmp.Equal(pe.Outcomes, c.want) {
			t.Errorf("%s: got %v, %v, want %v", name, pe, err, c.want)
		}
	}
}

func TestAPublishThatIsCutShortKnowsWhatWasNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		shared := NewCoalescer(2, one, func([]int, []error) { <-gate })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := Publish(ctx, "test publish", shared, []int{1, 2, 3}, outcome)
		var pe *queue.PublishError
		if !errors.As(err, &pe) {
			t.Fatalf("got %v, want a *queue.PublishError", err)
		}
		want := []queue.Outcome{queue.Unknown, queue.Unknown, queue.Rejected}
		if !cmp.Equal(pe.Outcomes, want) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, %v, want %v and the end of the context", pe.Outcomes, err, want)
		}
		close(gate)
		shared.Close(time.Minute)
		if _, err := Publish(t.Context(), "test publish", shared, []int{1}, outcome); err != queue.ErrClosed {
			t.Errorf("after Close: got %v, want ErrClosed as it is", err)
		}
	})
}

func deliveries(receipts ...any) []*queue.Delivery {
	ds := make([]*queue.Delivery, len(receipts))
	for i, r := range receipts {
		ds[i] = queue.NewDelivery(queue.Message{ID: "a message"}, 1, r)
	}
	return ds
}

func TestDeliveriesAreSettledByTheirReceipts(t *testing.T) {
	shared := NewCoalescer(10, one, func(items []int, errs []error) {
		for i, n := range items {
			if n == 7 {
				errs[i] = queue.ErrLeaseLost
			}
		}
	})
	defer shared.Close(time.Minute)
	mine := func(n int) bool { return n < 100 }
	if _, err := Settle(t.Context(), shared, deliveries(1, 2), mine); err != nil {
		t.Errorf("got %v, want nil", err)
	}
	_, err := Settle(t.Context(), shared, deliveries(1, 7), mine)
	var se *queue.SettleError
	if !errors.As(err, &se) || se.Errs[0] != nil || !errors.Is(se.Errs[1], queue.ErrLeaseLost) {
		t.Errorf("got %v, want ErrLeaseLost of the second", err)
	}
	for name, foreign := range map[string]any{"of another consumer": 100, "of another kind": "1", "none": nil} {
		if _, err := Settle(t.Context(), shared, deliveries(1, foreign), mine); err == nil || errors.As(err, &se) {
			t.Errorf("a receipt %s: got %v, want an error for all", name, err)
		}
	}
}

func TestASettleThatIsCutShortTellsWhatIsUnsure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		shared := NewCoalescer(1, one, func([]int, []error) { <-gate })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		unsure, err := Settle(ctx, shared, deliveries(1, 2), func(int) bool { return true })
		if !errors.Is(err, context.DeadlineExceeded) || !cmp.Equal(unsure, []int{1}) {
			t.Errorf("got %v unsure, %v, want the first, and the end of the context", unsure, err)
		}
		shared.Refuse()
		if _, err := Settle(t.Context(), shared, deliveries(3), func(int) bool { return true }); !errors.Is(err, queue.ErrClosed) {
			t.Errorf("refused: got %v, want ErrClosed", err)
		}
		close(gate)
		shared.Close(time.Minute)
	})
}

func TestDeliveriesCarryWhatWasRead(t *testing.T) {
	p := NewPuller(func(int) ([]string, error) { return []string{"a", "b"}, nil }, func() {})
	defer p.Close()
	ds, err := Receive(t.Context(), p, 2, func(s string) (queue.Message, int) { return queue.Message{ID: s}, len(s) })
	if err != nil || len(ds) != 2 || ds[1].ID != "b" || ds[1].Attempt != 1 || ds[1].Receipt() != "b" {
		t.Errorf("got %v, %v, want a and b, which are their receipts", ds, err)
	}
}
