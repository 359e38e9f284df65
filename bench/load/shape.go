package load

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The bounds of what ParseShape takes.
const (
	MinRate = 0.001      // messages a second
	MaxRate = 10_000_000 // messages a second
	maxTime = 1000 * time.Hour
	maxList = 1000 // steps
	maxWall = 1_000_000_000
)

// ShapeSyntax is what ParseShape reads, for people. Rates are messages a
// second, times are as Go writes them: 200ms, 1m30s.
const ShapeSyntax = `constant:RATE                             evenly spaced: constant:1000
poisson:RATE                              exponential gaps: poisson:1000
ramp:RATE-RATE/TIME                       from one rate to another, then that: ramp:100-2000/30s
step:RATE/TIME,...,RATE                   each rate for its time, the last for ever: step:500/10s,1000/10s,2000
spike:silence=TIME,wall=N/TIME,tail=RATE  a flash sale, N buyers within a time: spike:silence=2s,wall=5000/200ms,tail=100`

// Shape is a plan that has a name: String returns the text that ParseShape
// reads as the same plan. The seed is not in it.
type Shape interface {
	Pacer
	String() string
}

// ParseShape reads a plan by ShapeSyntax. The seed is that of the plan's
// chance, which only poisson has. The error names the value that is wrong and
// what is allowed.
func ParseShape(text string, seed uint64) (Shape, error) {
	name, rest, _ := strings.Cut(text, ":")
	var s Shape
	var err error
	switch strings.TrimSpace(name) {
	case "constant", "poisson":
		var r float64
		if r, err = parseRate(rest); err != nil {
			break
		}
		if s = constant(r); strings.TrimSpace(name) == "poisson" {
			s = &poisson{rate: r, seed: seed}
		}
	case "ramp":
		s, err = parseRamp(rest)
	case "step":
		s, err = parseStep(rest)
	case "spike":
		s, err = parseSpike(rest)
	default:
		return nil, fmt.Errorf("load shape %q: unknown; the shapes are\n%s", text, ShapeSyntax)
	}
	if err != nil {
		return nil, fmt.Errorf("load shape %q: %w", text, err)
	}
	return s, nil
}

func parseRamp(text string) (Shape, error) {
	rates, over, _ := strings.Cut(text, "/")
	from, to := cutRates(rates)
	a, err := parseRate(from)
	if err != nil {
		return nil, err
	}
	b, err := parseRate(to)
	if err != nil {
		return nil, err
	}
	d, err := parseTime(over)
	if err != nil {
		return nil, err
	}
	return newStages(fmt.Sprintf("ramp:%s-%s/%v", formatRate(a), formatRate(b), d),
		stage{a, b, d.Seconds()}, stage{b, b, 0}), nil
}

// cutRates cuts at the dash between two rates, which is not that of a sign or
// of an exponent.
func cutRates(text string) (from, to string) {
	for i := 1; i < len(text); i++ {
		if text[i] == '-' && text[i-1] != 'e' && text[i-1] != 'E' {
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}

func parseStep(text string) (Shape, error) {
	parts := strings.Split(text, ",")
	if len(parts) > maxList {
		return nil, fmt.Errorf("%d steps: at most %d are allowed", len(parts), maxList)
	}
	var list []stage
	for i, part := range parts {
		rate, length, hasLength := strings.Cut(part, "/")
		r, err := parseRate(rate)
		if err != nil {
			return nil, err
		}
		var d time.Duration
		switch last := i == len(parts)-1; {
		case last && hasLength:
			return nil, fmt.Errorf("the last step %q has a time: it goes on for ever, as in step:500/10s,1000", part)
		case !last:
			if d, err = parseTime(length); err != nil {
				return nil, err
			}
			parts[i] = formatRate(r) + "/" + d.String()
		default:
			parts[i] = formatRate(r)
		}
		list = append(list, stage{r, r, d.Seconds()})
	}
	return newStages("step:"+strings.Join(parts, ","), list...), nil
}

func parseSpike(text string) (Shape, error) {
	values := map[string]string{}
	for _, part := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		if _, twice := values[name]; twice || name != "silence" && name != "wall" && name != "tail" {
			return nil, fmt.Errorf("%q: a spike has silence, wall and tail, once each, as in spike:silence=2s,wall=5000/200ms,tail=100", part)
		}
		values[name] = value
	}
	if len(values) < 3 {
		return nil, fmt.Errorf("a spike has silence, wall and tail, as in spike:silence=2s,wall=5000/200ms,tail=100")
	}
	silence := time.Duration(0)
	if d, err := time.ParseDuration(strings.TrimSpace(values["silence"])); err != nil || d != 0 {
		if silence, err = parseTime(values["silence"]); err != nil {
			return nil, fmt.Errorf("silence: %w", err)
		}
	}
	buyers, within, _ := strings.Cut(values["wall"], "/")
	n, err := strconv.ParseUint(strings.TrimSpace(buyers), 10, 64)
	if err != nil || n == 0 || n > maxWall {
		return nil, fmt.Errorf("wall: %q messages: a whole number from 1 to %d is allowed", buyers, maxWall)
	}
	w, err := parseTime(within)
	if err != nil {
		return nil, fmt.Errorf("wall: %w", err)
	}
	rate := float64(n) / w.Seconds()
	if rate > MaxRate || rate < MinRate {
		return nil, fmt.Errorf("wall: %d messages within %v are %s a second: from %v to %d are allowed", n, w, formatRate(rate), MinRate, MaxRate)
	}
	tail, err := parseRate(values["tail"])
	if err != nil {
		return nil, fmt.Errorf("tail: %w", err)
	}
	return newStages(fmt.Sprintf("spike:silence=%v,wall=%d/%v,tail=%s", silence, n, w, formatRate(tail)),
		stage{0, 0, silence.Seconds()}, stage{rate, rate, w.Seconds()}, stage{tail, tail, 0}), nil
}

func parseRate(text string) (float64, error) {
	text = strings.TrimSpace(text)
	r, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(r) || r < MinRate || r > MaxRate {
		return 0, fmt.Errorf("rate %q: a number from %v to %d messages a second is allowed", text, MinRate, MaxRate)
	}
	return r, nil
}

func parseTime(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > maxTime {
		return 0, fmt.Errorf("time %q: more than 0 and at most %v is allowed, as in 200ms or 1m30s", text, maxTime)
	}
	return d, nil
}
