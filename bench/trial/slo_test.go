package trial

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestTheSearchEndsNearTheHighestRateThatKeepsThePromise(t *testing.T) {
	for _, c := range []struct {
		holds     float64 // the rate up to which the promise is kept
		least     float64
		most      float64
		limitSays string
	}{
		{holds: 12_345, least: 11_000, most: 12_345, limitSays: "too slow"},
		{holds: 60, least: 50, most: 60, limitSays: "too slow"},
		{holds: 0, least: 0, most: 0, limitSays: "at no rate"},
		{holds: 1e12, least: sloHighest, most: sloHighest, limitSays: "at every rate"},
	} {
		var s sloSearch
		asked := 0
		err := s.run(func(rate float64, _ time.Duration) (bool, error) {
			asked++
			p := RatePoint{Offered: rate, Kept: rate <= c.holds}
			if !p.Kept {
				p.Why = "too slow"
			}
			s.Curve = append(s.Curve, p)
			return p.Kept, nil
		}, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if s.HighestRate < c.least || s.HighestRate > c.most || !strings.Contains(s.Limit, c.limitSays) {
			t.Errorf("holds up to %v: got %v (%s), want %v to %v and %q", c.holds, s.HighestRate, s.Limit, c.least, c.most, c.limitSays)
		}
		if asked > 25 {
			t.Errorf("holds up to %v: asked %d times, want at most 25", c.holds, asked)
		}
	}
}

func TestASearchThatIsConfirmedAtNoRateSaysSo(t *testing.T) {
	var s sloSearch
	dwell := time.Second
	lowest := 0.0
	_ = s.run(func(rate float64, d time.Duration) (bool, error) {
		if d != dwell {
			lowest = rate
		}
		return d == dwell && rate <= 4000, nil
	}, dwell)
	if s.HighestRate != 0 || !strings.Contains(s.Limit, fmt.Sprintf("down to %.0f/s was kept for long enough", lowest)) {
		t.Errorf("got %v (%s), want none, since no rate down to %v was kept for twice the dwell", s.HighestRate, s.Limit, lowest)
	}
}

func TestAPromiseThatCannotBeReadNamesWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                    `"" is unknown`,
		"p99":                 `"p99" is unknown`,
		"p42<1ms":             `"p42<1ms" is unknown`,
		"p99<0s":              `"0s" is no duration of a microsecond`,
		"p99<fast":            `"fast" is no duration`,
		"lost=3":              "only lost=0",
		"p99<1ms,p99<2ms":     "bounds p99 twice",
		"p99<20ms,lost=0,foo": `"foo" is unknown`,
	} {
		if _, err := ParsePromise(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
		}
	}
	p, err := ParsePromise(" p99 < 20ms, publish.p50<=1ms , lost=0")
	if err != nil || len(p.limits) != 2 || !p.lost {
		t.Errorf("got %+v, %v, want two bounds and no loss", p, err)
	}
}

func FuzzParsePromise(f *testing.F) {
	f.Add(DefaultPromise)
	f.Add("publish.max<1h,lost=0")
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := ParsePromise(text); err == nil && len(p.limits) == 0 && !p.lost {
			t.Errorf("%q promises nothing and is no error", text)
		}
	})
}
