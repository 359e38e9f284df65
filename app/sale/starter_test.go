package sale

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"queuelab/queue"
)

// notes is a database that knows of starts, and nothing else.
type notes struct {
	mu     sync.Mutex
	due    map[ID]time.Time
	opened map[ID]time.Time
	fails  ID // OpenSale of this one
}

func (n *notes) OpenSale(_ context.Context, id ID, due bool) (Voucher, bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if id == n.fails {
		return Voucher{}, false, errors.New("the row is locked")
	}
	fired := n.opened[id].IsZero() && (!due || !time.Now().Before(n.due[id]))
	if fired {
		n.opened[id] = time.Now()
	}
	return Voucher{ID: id, Signal: true, Opened: n.opened[id], End: time.Now().Add(time.Hour)}, fired, nil
}

func (n *notes) Signals(context.Context) ([]Signal, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var signals []Signal
	for id, at := range n.due {
		signals = append(signals, Signal{Voucher: id, Opened: n.opened[id], In: time.Until(at)})
	}
	slices.SortFunc(signals, func(a, b Signal) int { return int(a.Voucher - b.Voucher) })
	return signals, nil
}

func (n *notes) forget(id ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.due, id)
}

// hall is a gate and a queue that note, in order, what is done to them.
type hall struct {
	mu     sync.Mutex
	did    []string
	shut   bool // the gate does not answer
	bodies chan []byte
	closed chan struct{}
	vain   atomic.Int32
}

func (h *hall) do(ctx context.Context, what string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() == nil {
		h.did = append(h.did, what)
	}
	return ctx.Err()
}

// done returns what was done since the last call.
func (h *hall) done() string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	did := h.did
	h.did = nil
	return strings.Join(did, ", ")
}

func (h *hall) Open(ctx context.Context, starts ...Signal) error {
	h.mu.Lock()
	shut := h.shut
	h.mu.Unlock()
	if shut {
		return errors.New("no answer")
	}
	for _, sig := range starts {
		if err := h.do(ctx, "open "+sig.Voucher.String()); err != nil {
			return err
		}
	}
	return nil
}

func (h *hall) setShut(shut bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shut = shut
}

func (h *hall) Publish(ctx context.Context, ms ...queue.Message) error {
	for _, m := range ms {
		if err := h.do(ctx, "publish "+m.ID+" of "+m.Key); err != nil {
			return err
		}
	}
	return nil
}

func (h *hall) Receive(ctx context.Context, _ int) ([]*queue.Delivery, error) {
	select {
	case b := <-h.bodies:
		return []*queue.Delivery{{Message: queue.Message{ID: "m", Body: b}}}, nil
	case <-h.closed:
		if h.vain.Add(1) > 1 {
			<-ctx.Done() // so that a loop over it does not spin
		}
		return nil, errors.Join(queue.ErrClosed, h.do(ctx, "receive in vain"))
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (h *hall) Ack(ctx context.Context, ds ...*queue.Delivery) error { return h.do(ctx, "ack") }

func (h *hall) Nack(context.Context, ...*queue.Delivery) error { return queue.ErrUnsupported }

func (h *hall) Close() error { return nil }

// staged is a starter over them, inside of synctest.
func staged() (*Starter, *notes, *hall, *bytes.Buffer) {
	n := &notes{due: map[ID]time.Time{}, opened: map[ID]time.Time{}}
	h := &hall{bodies: make(chan []byte), closed: make(chan struct{})}
	var log bytes.Buffer
	return &Starter{Store: n, Gate: h, Publisher: h, Consumer: h, Board: NewBoard(nil), Log: slog.New(slog.NewTextHandler(&log, nil))}, n, h, &log
}

// runs runs a starter until the test ends, and wants that nothing of it is left.
func runs(t *testing.T, s *Starter) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	synctest.Wait()
}

func wantDone(t *testing.T, h *hall, want string) {
	t.Helper()
	if got := h.done(); got != want {
		t.Errorf("got %q done, want %q", got, want)
	}
}

func TestASignalThatIsHeardOpensTheSaleBeforeAnybodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, h, log := staged()
		runs(t, s)
		at := time.Now()
		h.bodies <- []byte("nonsense")
		h.bodies <- Signal{Voucher: 7, Opened: at}.encode()
		wantDone(t, h, "ack, open 7, ack")
		if got := s.Board.Opens(Voucher{ID: 7, Signal: true}); !got.Equal(at.Truncate(time.Millisecond)) {
			t.Errorf("got a board that says %v, want %v", got, at)
		}
		if !strings.Contains(log.String(), "heard in vain") {
			t.Errorf("got log %s, want a word about the nonsense", log)
		}
	})
}

func TestAQueueOfSignalsThatIsClosedIsNotAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n, h, _ := staged()
		runs(t, s)
		close(h.closed)
		time.Sleep(time.Millisecond)
		wantDone(t, h, "receive in vain")
		if got := h.vain.Load(); got != 1 {
			t.Errorf("got a closed queue that is asked %d times, want once", got)
		}
		n.mu.Lock()
		n.due[7] = time.Now()
		n.mu.Unlock()
		time.Sleep(lookForStarts)
		wantDone(t, h, "open 7, publish start-7 of 7")
	})
}

func TestASignalIsGivenOnceAndOpensTheGateFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, h, _ := staged()
		gone, cancel := context.WithCancel(t.Context())
		cancel() // whoever asked for it does not wait for the rest
		for _, want := range []bool{true, false} {
			if _, fired, err := s.Fire(gone, 7); err != nil || fired != want {
				t.Errorf("got %v, %v, want fired %v", fired, err, want)
			}
		}
		wantDone(t, h, "open 7, publish start-7 of 7, open 7")
	})
}

func TestASignalIsGivenWhenItIsDueAndNotAtTheNextLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n, h, _ := staged()
		due := time.Now().Add(lookForStarts / 5)
		n.due[7] = due
		runs(t, s)
		wantDone(t, h, "")
		time.Sleep(time.Until(due))
		wantDone(t, h, "open 7, publish start-7 of 7")
	})
}

func TestOneSignalThatCannotBeGivenHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n, h, log := staged()
		n.due[7], n.due[8], n.due[9], n.fails = time.Now(), time.Now(), time.Now(), 7
		n.opened[9] = time.Now()
		runs(t, s)
		wantDone(t, h, "open 8, publish start-8 of 8, open 9")
		if !strings.Contains(log.String(), "the row is locked") {
			t.Errorf("got log %s, want the reason", log)
		}
	})
}

func TestNobodyIsToldOfAStartThatTheGateDoesNotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n, h, _ := staged()
		n.due[7] = time.Now()
		h.setShut(true)
		runs(t, s)
		v := Voucher{ID: 7, Signal: true, End: time.Unix(1, 0)}
		if got := s.Board.Opens(v); !got.Equal(v.End) {
			t.Errorf("got a board that says %v while the gate is shut, want nothing", got)
		}
		h.setShut(false)
		time.Sleep(10 * lookForStarts)
		if got := s.Board.Opens(v); got.Equal(v.End) {
			t.Error("got a board that does not know of the start, want the next look to tell it")
		}
	})
}

func TestWhereTheDatabaseLetsInTheBoardIsToldAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _, _ := staged()
		s.Gate, s.Publisher, s.Consumer = nil, nil, nil
		v, _, err := s.Fire(t.Context(), 7)
		if got := s.Board.Opens(Voucher{ID: 7, Signal: true}); err != nil || !got.Equal(v.Opened) {
			t.Errorf("got %v, %v, want the start at %v", got, err, v.Opened)
		}
	})
}

func TestAStartOfWhichTheDatabaseTellsNoMoreIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n, _, _ := staged()
		n.due[7] = time.Now()
		runs(t, s)
		n.forget(7)
		time.Sleep(keepStarts + 2*lookForStarts)
		v := Voucher{ID: 7, Signal: true, End: time.Unix(1, 0)}
		if got := s.Board.Opens(v); !got.Equal(v.End) {
			t.Errorf("got %v of a sale that has ended, want it forgotten", got)
		}
	})
}
