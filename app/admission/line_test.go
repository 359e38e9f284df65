package admission

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"queuelab/app/sale"
)

func TestAClickWhoseBuyerHasLeftIsNotSentAfterAnOutage(t *testing.T) {
	var mu sync.Mutex
	var sent []sale.ID
	away, back := make(chan struct{}), make(chan struct{})
	l := &line{send: func(batch []*asking) {
		mu.Lock()
		for _, a := range batch {
			sent = append(sent, a.click.OrderID)
		}
		mu.Unlock()
		select {
		case away <- struct{}{}: // the first trip, which gets no answer yet
		case <-back:
		}
		<-back
	}}
	ask := func(ctx context.Context, order sale.ID) error {
		_, err := l.ask(ctx, sale.Click{Reservation: sale.Reservation{OrderID: order}}, bucket{})
		return err
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := ask(context.Background(), 1); err != nil {
			t.Error(err)
		}
	})
	<-away
	gone, leave := context.WithCancel(t.Context())
	leave()
	for i := range 3 * lineMost {
		if err := ask(gone, sale.ID(100+i)); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want that of the context", err)
		}
	}
	close(back)
	wg.Wait()
	if err := ask(t.Context(), 99); err != nil {
		t.Fatal(err)
	}
	if want := []sale.ID{1, 99}; !slices.Equal(sent, want) {
		t.Errorf("got clicks %v sent, want %v", sent, want)
	}
}
