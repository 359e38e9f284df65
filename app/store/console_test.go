package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"queuelab/app/fleet"
	"queuelab/app/sale"
)

func TestTalliesAreTheSumOfWhatEachProcessLastSaved(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		a, b := id(), id()
		for _, save := range []struct {
			holder string
			ts     []sale.Tally
		}{
			{"one", []sale.Tally{{Voucher: a, Clicked: 5, SoldOut: 1}, {Voucher: b, Clicked: 1}}},
			{"two", []sale.Tally{{Voucher: a, Clicked: 1 << 40, Admitted: 3, Queued: 2, AlreadyBought: 4, Busy: 6}}},
			{"one", []sale.Tally{{Voucher: a, Clicked: 7, Admitted: 2, SoldOut: 1}}},
			{"one", []sale.Tally{{Voucher: a, Clicked: 7, Admitted: 2, SoldOut: 1}}}, // the answer to the first was lost
			{"three", nil},
		} {
			if err := s.SaveTallies(t.Context(), save.holder, save.ts); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Tallies(t.Context(), a, b, id())
		want := map[sale.ID]sale.Tally{
			a: {Voucher: a, Clicked: 1<<40 + 7, Admitted: 5, Queued: 2, SoldOut: 1, AlreadyBought: 4, Busy: 6},
			b: {Voucher: b, Clicked: 1},
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	})
}

func TestInstancesAreThoseWithANumberAndAWord(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		now := time.Now()
		for n, holder := range []string{"zero", "one", "two"} {
			if _, err := s.AcquireWorker(t.Context(), n, holder, now, now.Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
		}
		zero := fleet.Instance{Number: 0, Holder: "zero", Name: "host-1", Role: "web", Version: "v1", Queue: "kafka", Up: 3 * time.Second,
			Terms: map[string]string{"mode": "queue", "gate": "in this process"}}
		one := fleet.Instance{Number: 1, Holder: "one", Failing: []string{"admission", "queue"}}
		for _, i := range []fleet.Instance{zero, one,
			{Number: 0, Holder: "somebody who had the number before", Role: "worker"},
			{Number: 9, Holder: "nobody"},
		} {
			if err := s.Beat(t.Context(), i); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Instances(t.Context())
		if diff := cmp.Diff([]fleet.Instance{zero, one}, got, cmpopts.IgnoreFields(fleet.Instance{}, "Silent")); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
		for _, i := range got {
			if i.Silent > 10*time.Second {
				t.Errorf("got instance %d silent for %v, want it to have just spoken", i.Number, i.Silent)
			}
		}
		if terms, err := s.Terms(t.Context()); err != nil || len(terms) != 1 || terms[0]["gate"] != "in this process" {
			t.Errorf("got %v, %v, want what one of them told", terms, err)
		}
		zero.Stopped = true
		if err := s.Beat(t.Context(), zero); err != nil {
			t.Fatal(err)
		}
		if got, err = s.Instances(t.Context()); err != nil || got[0].Health() != fleet.Stopped {
			t.Errorf("got %+v, %v, want the first one stopped", got, err)
		}
	})
}

func TestDeadLettersAreCountedByState(t *testing.T) {
	both(t, func(t *testing.T, rawURL string) {
		s := open(t, rawURL)
		for _, m := range []string{"a", "b", "c"} {
			if err := s.DeadLetter(t.Context(), m, []byte("{}"), "broken"); err != nil {
				t.Fatal(err)
			}
		}
		if ok, err := s.Discard(t.Context(), "b", "me", nil); err != nil || !ok {
			t.Fatalf("got %v, %v", ok, err)
		}
		got, err := s.CountLetters(t.Context())
		want := map[sale.LetterState]int64{sale.Open: 2, sale.Replaying: 0, sale.Replayed: 0, sale.Discarded: 1}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	})
}
