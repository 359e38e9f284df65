package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"queuelab/app/admission"
	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/app/worker"
	"queuelab/queue"
)

const (
	poisonedDir = "QUEUELAB_TEST_POISONED" // where the process that is killed finds its files
	poison      = "poison"                 // the buyer whose order kills whoever decides it
	poisonBatch = 64
	poisonTries = 2
)

// deadly is a store that kills the process, like a message that takes all the
// memory.
type deadly struct{ *store.Store }

func (d deadly) Fulfil(ctx context.Context, rs []sale.Reservation) ([]sale.Decision, error) {
	for _, r := range rs {
		if r.UserID == poison {
			if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
				return nil, err
			}
			select {} // the signal is on its way
		}
	}
	return d.Store.Fulfil(ctx, rs)
}

// ackFile is a queue that neither forgets nor counts: it delivers every message
// of a file of messages that is not in the file of acks.
type ackFile struct {
	sync.Mutex
	todo []*queue.Delivery
	acks *os.File
	left int
	done chan struct{}
}

func openAckFile(dir string) (*ackFile, error) {
	bodies, err := os.ReadFile(filepath.Join(dir, "messages"))
	if err != nil {
		return nil, err
	}
	acked, err := os.ReadFile(filepath.Join(dir, "acks"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	f := &ackFile{done: make(chan struct{})}
	for _, line := range strings.Fields(string(bodies)) {
		r, err := sale.DecodeReservation([]byte(line))
		if err != nil {
			return nil, err
		}
		if id := r.OrderID.String(); !strings.Contains(string(acked), id+"\n") {
			// One key, so that they are one batch.
			f.todo = append(f.todo, queue.NewDelivery(queue.Message{ID: id, Key: "k", Body: []byte(line)}, 0, nil))
		}
	}
	f.left = len(f.todo)
	f.acks, err = os.OpenFile(filepath.Join(dir, "acks"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return f, err
}

func (f *ackFile) Receive(ctx context.Context, _ int) ([]*queue.Delivery, error) {
	f.Lock()
	ds := f.todo
	f.todo = nil
	f.Unlock()
	if len(ds) > 0 {
		return ds, nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (f *ackFile) Ack(_ context.Context, ds ...*queue.Delivery) error {
	f.Lock()
	defer f.Unlock()
	for _, d := range ds {
		if _, err := fmt.Fprintln(f.acks, d.ID); err != nil {
			return err
		}
		if f.left--; f.left == 0 {
			close(f.done)
		}
	}
	return nil
}

func (f *ackFile) Nack(context.Context, ...*queue.Delivery) error { return queue.ErrUnsupported }

func (f *ackFile) Close() error { return f.acks.Close() }

// workUntilDead is the process that the poison kills; it ends by itself when
// every message is acked.
func workUntilDead(dir string) error {
	s, err := store.Open(context.Background(), "sqlite:"+filepath.Join(dir, "x.db"))
	if err != nil {
		return err
	}
	f, err := openAckFile(dir)
	if err != nil {
		return err
	}
	w := &worker.Worker{Store: deadly{s}, Gate: admission.NewMemory(nil), Results: sale.NewResults(s, func(error) {}), Observer: sale.Unobserved{},
		Log: slog.New(slog.DiscardHandler), Lanes: 1, Batch: poisonBatch, MaxAttempts: poisonTries, Drain: time.Second}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-f.done; cancel() }()
	return w.Run(ctx, f, queue.Capabilities{Guarantee: queue.AtLeastOnce, Attempts: queue.NotCounted})
}

func TestAMessageThatKillsTheProcessIsGivenUpAndItsNeighboursAreNot(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(dir, "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := &lab{t: t, store: &faulty{Store: s}, gate: admission.NewMemory(nil)}
	v := l.voucher(poisonBatch, poisonBatch)
	var rs []sale.Reservation
	var bodies strings.Builder
	for i := range poisonBatch {
		r := sale.Reservation{OrderID: id(), VoucherID: v.ID, UserID: fmt.Sprint("u", i), AtMillis: 1}
		if i == poisonBatch/2 {
			r.UserID = poison
		}
		rs = append(rs, r)
		fmt.Fprintf(&bodies, "%s\n", r.Encode())
	}
	if err := os.WriteFile(filepath.Join(dir, "messages"), []byte(bodies.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	// So often in its batch, and once more by itself.
	const kills = poisonTries + 1
	for run := 1; ; run++ {
		c := exec.CommandContext(t.Context(), os.Args[0])
		c.Env = append(os.Environ(), poisonedDir+"="+dir)
		out, err := c.CombinedOutput()
		if err == nil {
			if run != kills+1 {
				t.Errorf("got %d processes killed, want %d", run-1, kills)
			}
			break
		}
		state, ok := c.ProcessState.Sys().(syscall.WaitStatus)
		if !ok || state.Signal() != syscall.SIGKILL {
			t.Fatalf("the process ended with %v, not by the poison:\n%s", err, out)
		}
		if run > kills {
			t.Fatalf("a message killed %d processes and is still tried", run)
		}
	}
	for i, r := range rs {
		if i == poisonBatch/2 {
			l.wantOrder(r, sale.Failed, sale.ReasonUndeliverable)
		} else {
			l.wantOrder(r, sale.Confirmed, "")
		}
	}
	if ls, err := s.ListLetters(t.Context(), sale.Open, "", 10); err != nil || len(ls) != 1 || ls[0].Message != rs[poisonBatch/2].OrderID.String() {
		t.Errorf("got dead letters %+v, %v, want the poison", ls, err)
	}
	if got, err := s.Voucher(t.Context(), v.ID); err != nil || got.Left != 1 {
		t.Errorf("got %d left, %v, want 1", got.Left, err)
	}
	for _, name := range []string{rs[0].OrderID.String(), rs[poisonBatch/2].OrderID.String(), store.LastTry(rs[poisonBatch/2].OrderID.String())} {
		if n, err := attempt(t, s, name); err != nil || n != 1 {
			t.Errorf("got attempt %d of %s, %v, want the earlier ones forgotten", n, name, err)
		}
	}
}

func TestAPanicOfOneOrderIsNotItsNeighbours(t *testing.T) {
	l := newLab(t)
	v := l.voucher(9, 9)
	rs := l.queued(v, 8)
	l.store.set(func(batch []sale.Reservation) error {
		for _, r := range batch {
			if r.OrderID == rs[3].OrderID {
				panic("this one always panics")
			}
		}
		return nil
	})
	l.work()
	l.drained()
	for i, r := range rs {
		if i == 3 {
			l.wantOrder(r, sale.Failed, sale.ReasonUndeliverable)
		} else {
			l.wantOrder(r, sale.Confirmed, "")
		}
	}
	l.wantGate(v, 2)
}

// A column was renamed for a moment: the next try of everything works.
func TestASchemaThatDoesNotFitFailsNoOrderAndIsSaid(t *testing.T) {
	l := newLab(t)
	v := l.voucher(5, 5)
	rs := l.queued(v, 5)
	var tries atomic.Int64
	l.store.set(func([]sale.Reservation) error {
		if tries.Add(1) <= 4 { // more than the attempts that a message has
			return fmt.Errorf("fulfil: %w", &pgconn.PgError{Code: "42703"})
		}
		return nil
	})
	var said lines
	l.workAnd(slog.New(slog.NewTextHandler(&said, nil)))
	l.drained()
	for _, r := range rs {
		l.wantOrder(r, sale.Confirmed, "")
	}
	if text := said.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "42703") {
		t.Errorf("got %s, want an error that names what does not fit", text)
	}
}

// lines is a log that may be read while it is written.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// The order cannot even be failed: it is an operator's, and nobody else's way is
// blocked.
func TestAnOrderThatCannotBeFailedIsKeptForAnOperator(t *testing.T) {
	l := newLab(t)
	v := l.voucher(5, 5)
	bad, good := l.admit(v, "a"), l.admit(v, "b")
	l.store.set(func(batch []sale.Reservation) error {
		for _, r := range batch {
			if r.OrderID == bad.OrderID {
				return errors.New("never works")
			}
		}
		return nil
	})
	l.store.noGiveUp = true
	l.send(bad)
	l.send(good)
	l.work()
	l.drained()
	l.wantOrder(good, sale.Confirmed, "")
	got, err := l.store.Letter(t.Context(), bad.OrderID.String())
	if err != nil || got.State != sale.Open || !strings.Contains(got.Reason, "never works") || !strings.Contains(got.Reason, "cannot be failed") {
		t.Errorf("got %+v, %v, want it kept with both reasons", got, err)
	}
	l.wantGate(v, 3, bad)
	l.store.set(nil)
	service := &sale.Service{Gate: l.gate, Store: l.store, Letters: l.store, Results: sale.NewResults(l.store, func(error) {}),
		Outbox: &sale.Outbox{Publisher: l.pub, Timeout: time.Second, Observer: sale.Unobserved{}}, Log: slog.New(slog.DiscardHandler)}
	if l, err := service.Replay(t.Context(), bad.OrderID.String(), "op"); err != nil || l.State != sale.Replayed {
		t.Errorf("got %+v, %v, want it replayed", l, err)
	}
	l.drained()
	l.wantOrder(bad, sale.Confirmed, "")
	l.wantGate(v, 3)
}
