package node

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"queuelab/bench/ledger"
	"queuelab/queue"
)

// shelf is a publisher that keeps what it accepts, and fails as it is told.
type shelf struct {
	queue.Publisher
	mu    sync.Mutex
	fails int
	ids   []string
}

func (s *shelf) Publish(_ context.Context, msgs ...queue.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range msgs {
		s.ids = append(s.ids, m.ID)
	}
	if s.fails > 0 { // it has them, and says nothing
		s.fails--
		return errNoAnswer
	}
	return nil
}

func shop(t *testing.T, p queue.Publisher, url string, outbox bool) *orders {
	t.Helper()
	o, err := openOrders(t.Context(), p, Config{Trial: 7, Produce: &Produce{Orders: url, Outbox: outbox}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.close)
	return o
}

func ordered(t *testing.T, url string) []string {
	t.Helper()
	ids, err := OrdersOf(t.Context(), url, 7)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ids)
	return ids
}

// Who writes to two places has an order without a message when the second one
// fails.
func TestADualWriteLeavesAnOrderWithoutItsMessage(t *testing.T) {
	url := sqlite(t)
	s := &shelf{fails: 1}
	o := shop(t, s, url, false)
	err := o.Publish(t.Context(), queue.Message{ID: "7-1-0-0"})
	if !errors.Is(err, errNoAnswer) {
		t.Errorf("got %v, want the queue's own error", err)
	}
	if err := o.Publish(t.Context(), queue.Message{ID: "7-1-0-1"}); err != nil {
		t.Error(err)
	}
	if got := ordered(t, url); !slices.Equal(got, []string{"7-1-0-0", "7-1-0-1"}) {
		t.Errorf("got the orders %v, want both", got)
	}
	if err := o.Publish(t.Context(), queue.Message{ID: "7-1-0-1"}); err == nil || len(s.ids) != 2 {
		t.Errorf("got %v and %v published, want that an order is committed before its message is sent", err, s.ids)
	}
}

// What a producer left in its outbox is published by the next one, and what had no
// answer once more.
func TestAnOutboxIsPublishedWhoeverDies(t *testing.T) {
	url := sqlite(t)
	first := shop(t, &shelf{}, url, true) // its relay never ran
	for _, id := range []string{"7-1-0-0", "7-1-0-1"} {
		if err := first.Publish(t.Context(), queue.Message{ID: id, Key: "k", Body: []byte("b")}); err != nil {
			t.Fatal(err)
		}
	}
	first.close()

	s := &shelf{fails: 1}
	second := shop(t, s, url, true)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { second.relay(ctx) })
	defer wg.Wait()
	defer stop()
	waiting, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	second.awaitRelayed(waiting)
	s.mu.Lock()
	defer s.mu.Unlock()
	if want := []string{"7-1-0-0", "7-1-0-1", "7-1-0-0", "7-1-0-1"}; !slices.Equal(s.ids, want) {
		t.Errorf("got published %v, want %v: the first time had no answer", s.ids, want)
	}
}

func TestAnEffectThatIsUniqueIsMadeAndRecordedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	w, err := ledger.Create(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	e, err := OpenUniqueEffects(t.Context(), sqlite(t))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, batch := range [][]*queue.Delivery{{delivery(1, 1), delivery(2, 1)}, {delivery(2, 2), delivery(3, 1)}} {
		if err := e.Commit(t.Context(), w, 1, batch); err != nil {
			t.Fatal(err)
		}
	}
	rs, err := ledger.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	var seqs []uint64
	for _, r := range rs {
		seqs = append(seqs, r.Seq)
	}
	slices.Sort(seqs)
	if !slices.Equal(seqs, []uint64{1, 2, 3}) {
		t.Errorf("got effects of %v recorded, want one each of 1, 2 and 3", seqs)
	}
	ids := []ledger.ID{{Trial: 1, Producer: 1, Seq: 2}, {Trial: 1, Producer: 1, Seq: 9}}
	if n, err := e.Of(t.Context(), ids); err != nil || len(n) != 1 || n["1-1-0-2"] != 1 {
		t.Errorf("got %v, %v of messages 2 and 9, want one effect of 2", n, err)
	}
}
