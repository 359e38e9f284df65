package load

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func mustParse(t testing.TB, text string, seed uint64) Shape {
	s, err := ParseShape(text, seed)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestShapesAreDueWhenTheirRateSays(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		shape string
		n     uint64
		want  time.Duration
	}{
		{"constant:1000", 5, 5 * ms},
		{"ramp:100-300/10s", 0, 0},
		{"ramp:100-300/10s", 750, 5 * time.Second}, // 100·5 + 20·5²/2
		{"ramp:100-300/10s", 2000, 10 * time.Second},
		{"ramp:100-300/10s", 2300, 11 * time.Second},
		{"ramp:300-100/10s", 1250, 5 * time.Second}, // 300·5 - 20·5²/2
		{"ramp:300-100/10s", 2100, 11 * time.Second},
		{"ramp:100-100/10s", 150, 1500 * ms},
		{"step:500/10s,1000/10s,2000", 0, 0},
		{"step:500/10s,1000/10s,2000", 4999, 9998 * ms},
		{"step:500/10s,1000/10s,2000", 5000, 10 * time.Second},
		{"step:500/10s,1000/10s,2000", 5001, 10*time.Second + ms},
		{"step:500/10s,1000/10s,2000", 17_000, 21 * time.Second},
		{"step:1/500ms,1", 1, time.Second}, // half a message is not forgotten
		{"step:7", 14, 2 * time.Second},
		{"spike:silence=2s,wall=5000/200ms,tail=100", 0, 2 * time.Second},
		{"spike:silence=2s,wall=5000/200ms,tail=100", 2500, 2100 * ms},
		{"spike:silence=2s,wall=5000/200ms,tail=100", 5000, 2200 * ms},
		{"spike:silence=2s,wall=5000/200ms,tail=100", 5001, 2210 * ms},
		{"spike:silence=0s,wall=1/1ms,tail=0.5", 2, 2001 * ms},
		{"ramp:0.001-0.001/1s", math.MaxUint64, math.MaxInt64},
	} {
		if got := mustParse(t, c.shape, 0).Due(c.n); got != c.want {
			t.Errorf("%s: message %d: got %v, want %v", c.shape, c.n, got, c.want)
		}
	}
}

// anyShape draws the text of a shape.
func anyShape(t *rapid.T) string {
	rate := func(name string) string { return formatRate(rapid.Float64Range(MinRate, MaxRate).Draw(t, name)) }
	span := func(name string) time.Duration {
		return time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, name))
	}
	switch rapid.IntRange(0, 4).Draw(t, "shape") {
	case 0:
		return "constant:" + rate("rate")
	case 1:
		return "poisson:" + rate("rate")
	case 2:
		return fmt.Sprintf("ramp:%s-%s/%v", rate("from"), rate("to"), span("over"))
	case 3:
		steps := make([]string, rapid.IntRange(0, 5).Draw(t, "steps"))
		for i := range steps {
			steps[i] = fmt.Sprintf("%s/%v", rate("step"), span("for"))
		}
		return "step:" + strings.Join(append(steps, rate("last")), ",")
	default:
		wall := rapid.Uint64Range(1, 1000).Draw(t, "wall")
		return fmt.Sprintf("spike:silence=%v,wall=%d/%v,tail=%s", span("silence")-1, wall,
			time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(time.Second)).Draw(t, "within")), rate("tail"))
	}
}

func TestNoShapeEverDecreases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyShape(t)
		s, err := ParseShape(text, rapid.Uint64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		// Small numbers as well as great ones, and those about a block's edge.
		n := rapid.Uint64().Draw(t, "n") >> rapid.IntRange(0, 63).Draw(t, "shift")
		n = max(n&^(gapBlock-1), 4) - 4
		last := s.Due(n)
		for i := range uint64(8) {
			due := s.Due(n + i)
			if due < last || due < 0 {
				t.Fatalf("%s: message %d is due at %v, %d at %v", text, n+i-1, last, n+i, due)
			}
			last = due
		}
	})
}

func TestMessagesComeInStepWithTheRate(t *testing.T) {
	// The rate of each shape at a time, written down apart from the shapes.
	for shape, rate := range map[string]func(t float64) float64{
		"constant:1000":     func(float64) float64 { return 1000 },
		"ramp:0.001-900/9s": func(t float64) float64 { return min(t/9, 1)*(900-0.001) + 0.001 },
		"ramp:900-30/9s":    func(t float64) float64 { return 900 - min(t/9, 1)*870 },
		"step:500/3s,10/2s,2000/1s,70": func(t float64) float64 {
			switch {
			case t < 3:
				return 500
			case t < 5:
				return 10
			case t < 6:
				return 2000
			}
			return 70
		},
		"spike:silence=2s,wall=5000/200ms,tail=100": func(t float64) float64 {
			switch {
			case t < 2:
				return 0
			case t < 2.2:
				return 25_000
			}
			return 100
		},
	} {
		s := mustParse(t, shape, 0)
		const slice = 100 * time.Microsecond
		want := 0.0
		for at := time.Duration(0); at < 12*time.Second; at += slice {
			if at%(100*time.Millisecond) == 0 {
				if got := float64(CountBefore(s, at)); math.Abs(got-want) > 1.01 {
					t.Errorf("%s: %v messages are due before %v, want %.1f", shape, got, at, want)
				}
			}
			want += rate((at + slice/2).Seconds()) * slice.Seconds()
		}
		from, to := 6500*time.Millisecond, 11500*time.Millisecond
		mean := 0.0
		for at := from; at < to; at += time.Millisecond {
			mean += rate((at + time.Millisecond/2).Seconds()) / 5000
		}
		if got := MeanRate(s, from, to); math.Abs(got-mean) > 0.4 {
			t.Errorf("%s: got a mean rate of %v, want %v", shape, got, mean)
		}
	}
}

func TestAWallIsAsHighAsItSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		silence := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "silence"))
		within := time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(time.Minute)).Draw(t, "within"))
		wall := rapid.Uint64Range(1, uint64(within/time.Microsecond)).Draw(t, "wall")
		text := fmt.Sprintf("spike:silence=%v,wall=%d/%v,tail=0.5", silence, wall, within)
		s, err := ParseShape(text, 0)
		if float64(wall) < MinRate*within.Seconds() && err != nil {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if before, got := CountBefore(s, silence), CountBefore(s, silence+within); before != 0 || got != wall {
			t.Errorf("%s: got %d before the wall and %d by its end, want 0 and %d", text, before, got, wall)
		}
	})
}

func TestCountBeforeIsTheInverseOfDue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyShape(t)
		s, err := ParseShape(text, 1)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Duration(rapid.Int64Range(0, int64(2*time.Hour)).Draw(t, "at"))
		n := CountBefore(s, at)
		if n > 0 && s.Due(n-1) >= at || s.Due(n) < at {
			t.Errorf("%s: got %d before %v, and %d is due at %v", text, n, at, n, s.Due(n))
		}
	})
	never := Constant(0)
	if got := CountBefore(never, math.MaxInt64); got != 0 {
		t.Errorf("never due: got %d, want 0", got)
	}
	if got := MeanRate(never, 2, 1); got != 0 {
		t.Errorf("no time: got a rate of %v, want 0", got)
	}
	if got := CountBefore(Constant(math.Inf(1)), 1); got != math.MaxUint64 {
		t.Errorf("all due at once: got %d, want the most there is", got)
	}
}

func TestAShapesTextReadsAsTheSameShape(t *testing.T) {
	for text, want := range map[string]string{
		"constant:1000":                       "constant:1000",
		" constant : 1e3 ":                    "constant:1000",
		"poisson:0.5":                         "poisson:0.5",
		"ramp:1e2-2e3/30s":                    "ramp:100-2000/30s",
		"ramp:1e-2-2/1500ms":                  "ramp:0.01-2/1.5s",
		"step:500/10s, 1000/10s, 2000":        "step:500/10s,1000/10s,2000",
		"step:5":                              "step:5",
		"spike:tail=100,wall=50/1s,silence=0": "spike:silence=0s,wall=50/1s,tail=100",
		"constant:10000000":                   "constant:10000000",
	} {
		if got := mustParse(t, text, 0).String(); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	for _, line := range strings.Split(ShapeSyntax, "\n") {
		example := line[strings.LastIndex(line, " ")+1:]
		if got := mustParse(t, example, 0).String(); got != example {
			t.Errorf("the syntax's example %q: got %q", example, got)
		}
	}
}

func TestABadShapeIsNamedWithWhatIsAllowed(t *testing.T) {
	for text, want := range map[string][]string{
		"":                 {`""`, "constant:RATE", "spike:silence"},
		"sine:5":           {`"sine:5"`, "unknown", "ramp:RATE-RATE/TIME"},
		"constant":         {`rate ""`, "0.001 to 10000000"},
		"constant:0":       {`rate "0"`, "0.001 to 10000000"},
		"constant:-5":      {`rate "-5"`},
		"constant:NaN":     {`rate "NaN"`},
		"constant:+Inf":    {`rate "+Inf"`},
		"poisson:10000001": {`rate "10000001"`, "10000000"},
		"poisson:many":     {`rate "many"`},
		"ramp:100/30s":     {`rate ""`},
		"ramp:0-100/30s":   {`rate "0"`},
		"ramp:-1-100/30s":  {`rate "-1"`},
		"ramp:1--100/30s":  {`rate "-100"`},
		"ramp:1-100":       {`time ""`, "more than 0", "1000h0m0s"},
		"ramp:1-100/-3s":   {`time "-3s"`},
		"ramp:1-100/0s":    {`time "0s"`},
		"ramp:1-100/1001h": {`time "1001h"`},
		"step:1,2":         {`time ""`},
		"step:1/5s":        {`"1/5s"`, "goes on for ever"},
		"step:1/5s,":       {`rate ""`},
		"step:1/5,2":       {`time "5"`},
		"step:" + strings.Repeat("1/1s,", 1000) + "1": {"1001 steps", "1000"},
		"spike:":                 {"silence, wall and tail"},
		"spike:wall=1/1s,tail=1": {"silence, wall and tail"},
		"spike:silence=1s,silence=1s,wall=1/1s,tail=1": {`"silence=1s"`, "once each"},
		"spike:silence=1s,wall=1/1s,tail=1,x=1":        {`"x=1"`},
		"spike:silence=-1s,wall=1/1s,tail=1":           {"silence", `"-1s"`},
		"spike:silence=1s,wall=0/1s,tail=1":            {"wall", `"0"`, "1 to 1000000000"},
		"spike:silence=1s,wall=-3/1s,tail=1":           {"wall", `"-3"`},
		"spike:silence=1s,wall=5/0s,tail=1":            {"wall", `"0s"`},
		"spike:silence=1s,wall=5,tail=1":               {"wall", `time ""`},
		"spike:silence=1s,wall=1000000/1ms,tail=1":     {"wall", "1000000000 a second"},
		"spike:silence=1s,wall=5/1s,tail=0":            {"tail", `rate "0"`},
	} {
		s, err := ParseShape(text, 0)
		if err == nil || s != nil {
			t.Errorf("%q: got %v, %v, want an error", text, s, err)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q: got %q, want it to say %q", text, err, w)
			}
		}
	}
}

func FuzzParseShape(f *testing.F) {
	for _, line := range strings.Split(ShapeSyntax, "\n") {
		f.Add(line[strings.LastIndex(line, " ")+1:], uint64(1))
	}
	f.Add("ramp:1e-2-2e+1/1h", uint64(0))
	f.Add("spike:silence=0,wall=1/1ns,tail=1", uint64(2))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		s, err := ParseShape(text, seed)
		if err != nil {
			return
		}
		again, err := ParseShape(s.String(), seed)
		if err != nil {
			t.Fatalf("%q is %q, which is refused: %v", text, s, err)
		}
		if again.String() != s.String() {
			t.Fatalf("%q is %q, and that is %q", text, s, again)
		}
		last := time.Duration(0)
		for _, n := range []uint64{0, 1, 2, gapBlock, 1e6, seed, math.MaxUint64} {
			a, b := s.Due(n), again.Due(n)
			if a != b || a < 0 || n != seed && a < last {
				t.Fatalf("%q: message %d is due at %v, as %q at %v, one before at %v", text, n, a, s, b, last)
			}
			if n != seed {
				last = a
			}
		}
	})
}
