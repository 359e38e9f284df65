package sale

import (
	"strings"
	"testing"
	"time"
)

func TestHowOffersStart(t *testing.T) {
	begin := time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)
	end := begin.Add(time.Hour)
	at := begin.Add
	for _, tc := range []struct {
		name     string
		start    StartBy
		from, to time.Time
		want     string // a word of the message; "" for none
	}{
		{"nothing said is by the clock", "", time.Time{}, time.Time{}, ""},
		{"by the clock", ByClock, time.Time{}, time.Time{}, ""},
		{"by an operator's signal", BySignal, time.Time{}, time.Time{}, ""},
		{"by a signal at a moment", BySignal, at(time.Minute), time.Time{}, ""},
		{"by a signal at a random moment", BySignal, begin, at(time.Minute), ""},
		{"by something else", "gong", time.Time{}, time.Time{}, "start"},
		{"a moment without a signal", ByClock, at(time.Minute), time.Time{}, "openFrom"},
		{"an end of the moments without a signal", "", time.Time{}, at(time.Minute), "openFrom"},
		{"moments without a first one", BySignal, time.Time{}, at(time.Minute), "openFrom"},
		{"a moment before the sale", BySignal, at(-time.Second), time.Time{}, "openFrom"},
		{"a moment at its end", BySignal, end, time.Time{}, "openFrom"},
		{"moments that end before they begin", BySignal, at(time.Minute), at(time.Second), "openTo"},
		{"moments that end with the sale", BySignal, at(time.Minute), end, "openTo"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := Offer{Title: "tea", Stock: 1, Begin: begin, End: end, Start: tc.start, OpenFrom: tc.from, OpenTo: tc.to}.Validate()
			if tc.want == "" && err != nil {
				t.Errorf("got %v, want none", err)
			}
			if tc.want != "" && (CodeOf(err) != CodeInvalid || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q in an error of code invalid", err, tc.want)
			}
		})
	}
}

func TestTheMomentOfASignalIsWithinItsBoundsAndNotTheSame(t *testing.T) {
	from := time.Date(2026, 11, 11, 0, 0, 0, 123_456_789, time.UTC)
	to := from.Add(time.Hour)
	seen := map[time.Time]bool{}
	for range 50 {
		at, err := Offer{OpenFrom: from, OpenTo: to}.openAt()
		if err != nil || at.Before(from.Truncate(time.Millisecond)) || at.After(to) {
			t.Fatalf("got %v, %v, want one from %v to %v", at, err, from, to)
		}
		seen[at] = true
	}
	// That fifty of 3.6 million agree happens less than once in 10^300 runs.
	if len(seen) < 2 {
		t.Error("got the same moment fifty times")
	}
	if at, err := (Offer{OpenFrom: from}).openAt(); err != nil || !at.Equal(from.Truncate(time.Millisecond)) {
		t.Errorf("got %v, %v, want openFrom itself", at, err)
	}
	if at, err := (Offer{}).openAt(); err != nil || !at.IsZero() {
		t.Errorf("got %v, %v, want none", at, err)
	}
}

func TestWhenTheGateTakesClicks(t *testing.T) {
	begin, end := time.Unix(100, 0), time.Unix(200, 0)
	opened := time.Unix(150, 0)
	for _, tc := range []struct {
		name string
		v    Voucher
		want time.Time
	}{
		{"by the clock from its begin", Voucher{Begin: begin, End: end}, begin},
		{"by signal not before it", Voucher{Begin: begin, End: end, Signal: true}, end},
		{"by signal from then on", Voucher{Begin: begin, End: end, Signal: true, Opened: opened}, opened},
	} {
		if got := tc.v.Opens(); !got.Equal(tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}

func FuzzDecodeSignal(f *testing.F) {
	f.Add(Signal{Voucher: 7, Opened: time.UnixMilli(1_700_000_000_123)}.encode())
	f.Add([]byte(`{"voucherId":"1","openedMs":-1}`))
	f.Add([]byte(`{"voucherId":"99999999999999999999"}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeSignal(b)
		if err != nil {
			return
		}
		if s.Voucher <= 0 || s.Opened.IsZero() {
			t.Fatalf("got %+v of %q without an error", s, b)
		}
		again, err := decodeSignal(s.encode())
		if err != nil || again.Voucher != s.Voucher || !again.Opened.Equal(s.Opened) {
			t.Errorf("got %+v, %v, want %+v again", again, err, s)
		}
	})
}
