package ledger

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

func TestIDsComeBackAsTheyWere(t *testing.T) {
	for _, c := range []struct {
		id ID
		s  string
	}{
		{ID{7, 1, 0, 123}, "7-1-0-123"},
		{ID{}, "0-0-0-0"},
		{ID{math.MaxUint32 - 1, math.MaxUint16, math.MaxUint16, math.MaxUint64}, "4294967294-65535-65535-18446744073709551615"},
	} {
		if got := FormatID(c.id); got != c.s {
			t.Errorf("FormatID: got %s, want %s", got, c.s)
		}
		if got, err := ParseID(c.s); err != nil || got != c.id {
			t.Errorf("ParseID(%s): got %v, %v", c.s, got, err)
		}
	}
}

func TestOneMessageHasOneSpelling(t *testing.T) {
	for _, s := range []string{"", "7", "7-1-0", "7-1-0-", "-1-0-1", "7-1-0-1-2", "07-1-0-1", "+7-1-0-1", "7-1-0--1", "7-1-0-1 ",
		"7-65536-0-1", "4294967296-0-0-0", "4294967295-0-0-0", "7-1-0-18446744073709551616", "a-b-c-d", "7_1_0_1"} {
		if id, err := ParseID(s); err == nil {
			t.Errorf("ParseID(%q): got %v, want an error", s, id)
		}
		if id := idOf(s); id.Trial != foreignTrial {
			t.Errorf("idOf(%q): got %v, want a foreign id", s, id)
		}
	}
	if idOf("one") == idOf("two") {
		t.Error("two foreign ids got the same identity")
	}
}

func FuzzParseID(f *testing.F) {
	for _, s := range []string{"7-1-0-123", "0-0-0-0", "4294967295-0-0-0", "01-0-0-0", "1--0-0", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		if err == nil && FormatID(id) != s {
			t.Errorf("ParseID(%q): got %v, which is spelled %q", s, id, FormatID(id))
		}
	})
}

func TestNowIsTheMonotonicClock(t *testing.T) {
	var ts unix.Timespec
	for range 1000 {
		before := Now()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			t.Fatal(err)
		}
		after := Now()
		const tie = int64(time.Millisecond) // of the origin, had each of its 16 reads been interrupted
		if before > ts.Nano()+tie || after < ts.Nano()-tie || after < before {
			t.Fatalf("got %d, %d around clock_gettime's %d", before, after, ts.Nano())
		}
	}
}

func TestNowFollowsTheFakeClockOfATest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := Now()
		time.Sleep(time.Hour)
		if got := time.Duration(Now() - start); got != time.Hour {
			t.Errorf("got %v, want 1h", got)
		}
	})
}
