package sale

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shelfOf keeps what is saved, and may fail.
type tallyShelf struct {
	mu   sync.Mutex
	fail error
	kept map[ID]Tally
	n    int
}

func (s *tallyShelf) SaveTallies(_ context.Context, _ string, ts []Tally) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	s.n++
	for _, t := range ts {
		s.kept[t.Voucher] = t
	}
	return nil
}

func TestEachClickIsCountedByItsEnd(t *testing.T) {
	var ts Tallies
	refused := func(c Code) error { return &Error{Code: c} }
	ts.clicked(1, true, nil)
	ts.queued(1)
	ts.clicked(1, true, nil) // its publish had no answer
	ts.clicked(1, false, nil)
	for _, c := range []Code{CodeSoldOut, CodeSoldOut, CodeAlreadyBought, CodeBusy, CodeNotStarted} {
		ts.clicked(1, false, refused(c))
	}
	ts.clicked(1, false, errors.New("a failure of ours"))
	shelf := &tallyShelf{kept: map[ID]Tally{}}
	if err := ts.save(t.Context(), shelf, "h"); err != nil {
		t.Fatal(err)
	}
	want := map[ID]Tally{1: {Voucher: 1, Clicked: 9, Admitted: 2, Queued: 1, SoldOut: 2, AlreadyBought: 1, Busy: 1}}
	if diff := cmp.Diff(want, shelf.kept); diff != "" {
		t.Error(diff)
	}
}

func TestClicksOnWhatDoesNotExistTakeNoMemory(t *testing.T) {
	var ts Tallies
	for id := range ID(1000) {
		ts.clicked(id, false, NotFound("no such voucher"))
		ts.clicked(id, false, busy("the gate does not answer", errors.New("down")))
		ts.clicked(id, false, errors.New("the database does not answer"))
	}
	n := 0
	ts.of.Range(func(any, any) bool { n++; return true })
	if n != 0 {
		t.Errorf("got %d vouchers counted, want none", n)
	}
	(*Tallies)(nil).clicked(1, true, nil)
	(*Tallies)(nil).queued(1)
}

func TestWhatCouldNotBeSavedIsSavedLaterAndWhatDidNotChangeIsNot(t *testing.T) {
	var ts Tallies
	shelf := &tallyShelf{kept: map[ID]Tally{}, fail: errors.New("the database is away")}
	ts.clicked(1, true, nil)
	if err := ts.save(t.Context(), shelf, "h"); !errors.Is(err, shelf.fail) {
		t.Errorf("got %v, want the database's error", err)
	}
	shelf.fail = nil
	for range 2 {
		if err := ts.save(t.Context(), shelf, "h"); err != nil {
			t.Fatal(err)
		}
	}
	if shelf.n != 1 || shelf.kept[1].Admitted != 1 {
		t.Errorf("got %d writes and %+v, want one", shelf.n, shelf.kept)
	}
}

func TestNoClickIsLostBetweenCountingAndTheEnd(t *testing.T) {
	var ts Tallies
	shelf := &tallyShelf{kept: map[ID]Tally{}}
	ctx, stop := context.WithCancel(t.Context())
	var saver, clickers sync.WaitGroup
	saver.Go(func() { ts.Run(ctx, shelf, "h", slog.New(slog.DiscardHandler)) })
	for range 8 {
		clickers.Go(func() {
			for i := range 1000 {
				ts.clicked(ID(i%3+1), true, nil)
				if n := ts.at(ID(i%3+1), true).tally(ID(i%3 + 1)); n.Admitted > n.Clicked {
					t.Errorf("got more ends than clicks: %+v", n)
				}
			}
		})
	}
	clickers.Wait()
	stop()
	saver.Wait()
	var all Tally
	for _, n := range shelf.kept {
		all.Add(n)
		if n.Admitted > n.Clicked {
			t.Errorf("got more ends than clicks: %+v", n)
		}
	}
	if all.Clicked != 8000 || all.Admitted != 8000 {
		t.Errorf("got %+v, want 8000 clicks and ends", all)
	}
}
