package peers

import (
	"encoding/csv"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The parsers take a tool's whole output. A line that a tool is not known to
// print is an error: it may be a warning that explains the number beside it.

// notUnderstood quotes the line that stands in the way.
func notUnderstood(line string) error {
	return fmt.Errorf("a line of its output is not understood: %q", line)
}

// linesOf leaves out empty lines.
func linesOf(out string) []string {
	var lines []string
	for l := range strings.Lines(out) {
		if l = strings.TrimRight(l, "\r\n"); strings.TrimSpace(l) != "" {
			lines = append(lines, l)
		}
	}
	return lines
}

// positive reads a rate: above zero, and finite.
func positive(s string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || !(v > 0) || v > 1e12 {
		return 0, fmt.Errorf("%q is not a rate", s)
	}
	return v, nil
}

// parseRedisBenchmark returns the requests a second of one command, from --csv.
func parseRedisBenchmark(out string) (float64, error) {
	lines := linesOf(out)
	const head = `"test","rps","avg_latency_ms",`
	switch {
	case len(lines) == 0:
		return 0, errors.New("it printed nothing")
	case !strings.HasPrefix(lines[0], head):
		return 0, notUnderstood(lines[0])
	case len(lines) == 1:
		return 0, errors.New("it printed a header and no result")
	case len(lines) > 2:
		return 0, notUnderstood(lines[2])
	}
	header := strings.Count(lines[0], ",") + 1
	fields, err := csv.NewReader(strings.NewReader(lines[1])).Read()
	if err != nil || len(fields) != header {
		return 0, notUnderstood(lines[1])
	}
	rate, err := positive(fields[1])
	if err != nil {
		return 0, fmt.Errorf("%w: %w", notUnderstood(lines[1]), err)
	}
	return rate, nil
}

var (
	producerSummary = regexp.MustCompile(`^(\d+)( steady state)? records sent, ([0-9.]+) records/sec \([0-9.]+ MB/sec\), [0-9.]+ ms avg latency, [0-9.]+ ms max latency(, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th)?\.$`)
	producerNotice  = regexp.MustCompile(`^(Warmup first \d+ records\. Steady state results will print after the complete test summary\.|In steady state\.)$`)
)

// parseProducerPerformance returns the records a second after warm-up. Both
// summaries must count what was asked for: records that fail are left out of
// them.
func parseProducerPerformance(out string, records, warmup int64) (float64, error) {
	whole, steady := "", ""
	rate := 0.0
	for _, l := range linesOf(out) {
		m := producerSummary.FindStringSubmatch(l)
		switch {
		case m == nil && producerNotice.MatchString(l):
		case m == nil:
			return 0, notUnderstood(l)
		case m[4] == "": // an interval
		case m[2] == "" && whole == "" && steady == "":
			whole = m[1]
			if warmup == 0 {
				rate, _ = positive(m[3])
			}
		case m[2] != "" && whole != "" && steady == "" && warmup > 0:
			steady = m[1]
			rate, _ = positive(m[3])
		default:
			return 0, notUnderstood(l)
		}
	}
	wantSteady := ""
	if warmup > 0 {
		wantSteady = strconv.FormatInt(records-warmup, 10)
	}
	if whole != strconv.FormatInt(records, 10) || steady != wantSteady || rate == 0 {
		return 0, fmt.Errorf("it tells of %q records, %q of them after warm-up, at %v a second; want %d and %q", whole, steady, rate, records, wantSteady)
	}
	return rate, nil
}

const consumerHeader = "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"

// parseConsumerPerformance returns the messages a second while fetching: from
// when the group had dealt out its partitions.
func parseConsumerPerformance(out string, messages int64) (float64, error) {
	lines := linesOf(out)
	switch {
	case len(lines) == 0:
		return 0, errors.New("it printed nothing")
	case lines[0] != consumerHeader:
		return 0, notUnderstood(lines[0])
	case len(lines) == 1:
		return 0, errors.New("it printed a header and no result")
	}
	fields := strings.Split(lines[1], ", ")
	switch {
	case len(fields) != len(strings.Split(consumerHeader, ", ")):
		return 0, notUnderstood(lines[1])
	case len(lines) > 2:
		return 0, notUnderstood(lines[2])
	}
	consumed, err := strconv.ParseInt(fields[4], 10, 64)
	if err != nil {
		return 0, notUnderstood(lines[1])
	}
	if consumed < messages {
		return 0, fmt.Errorf("it consumed %d messages of %d", consumed, messages)
	}
	rate, err := positive(fields[9])
	if err != nil {
		return 0, fmt.Errorf("%w: %w", notUnderstood(lines[1]), err)
	}
	return rate, nil
}

var (
	perfTestNotice   = regexp.MustCompile(`^(id: \S+, starting (producer|consumer) #\d+(, channel #\d+)?|id: \S+, (consumer|confirm) latency min/median/75th/95th/99th [0-9/]+ (µs|ms))$`)
	perfTestEnd      = regexp.MustCompile(`^test stopped \((Reached time limit|(Consumer|Producer) reached message limit)\)$`)
	perfTestInterval = regexp.MustCompile(`^id: \S+, time ([0-9.]+) s, (.*)$`)
	perfTestRate     = regexp.MustCompile(`^(sent|returned|confirmed|nacked|received): ([0-9]+) msg/s$`)
	perfTestLatency  = regexp.MustCompile(`^(min/median/75th/95th/99th )?(consumer|confirm) latency: [0-9/]+ (µs|ms)$`)
	perfTestSummary  = regexp.MustCompile(`^id: \S+, (sending|receiving) rate avg: ([0-9]+) msg/s$`)
)

// perfTestRates is what PerfTest counts that a rate can be of.
var perfTestRates = []string{"sent", "confirmed", "received"}

// parsePerfTest returns the rate of what was "sent", "confirmed" or "received",
// over the intervals after the first, which holds the connecting and what the
// virtual machine has not compiled yet. A run with fewer than two intervals has
// only the average of the whole, which counts what was sent where confirmed was
// asked for.
func parsePerfTest(out, what string) (float64, error) {
	if !slices.Contains(perfTestRates, what) {
		return 0, fmt.Errorf("PerfTest tells no rate of %q", what)
	}
	type interval struct{ at, rate float64 }
	var intervals []interval
	summary := map[string]string{}
	ended := false
	for _, l := range linesOf(out) {
		if perfTestEnd.MatchString(l) {
			ended = true
			continue
		}
		if m := perfTestSummary.FindStringSubmatch(l); m != nil {
			summary[m[1]] = m[2]
			continue
		}
		m := perfTestInterval.FindStringSubmatch(l)
		if m == nil {
			if !perfTestNotice.MatchString(l) {
				return 0, notUnderstood(l)
			}
			continue
		}
		at, err := positive(m[1])
		if err != nil {
			return 0, notUnderstood(l)
		}
		i := interval{at: at, rate: -1}
		for f := range strings.SplitSeq(m[2], ", ") {
			r := perfTestRate.FindStringSubmatch(f)
			switch {
			case r == nil && perfTestLatency.MatchString(f):
			case r == nil:
				return 0, notUnderstood(l)
			case (r[1] == "returned" || r[1] == "nacked") && r[2] != "0":
				return 0, fmt.Errorf("messages were refused: %q", l)
			case r[1] == what:
				if i.rate, err = strconv.ParseFloat(r[2], 64); err != nil {
					return 0, notUnderstood(l)
				}
			}
		}
		if i.rate < 0 || len(intervals) > 0 && at <= intervals[len(intervals)-1].at {
			return 0, notUnderstood(l)
		}
		intervals = append(intervals, i)
	}
	if !ended { // a kill, or a broker that went away, also makes a summary
		return 0, errors.New("it did not reach its limit")
	}
	if summary["sending"] == "" || summary["receiving"] == "" {
		return 0, errors.New("it printed no summary")
	}
	if len(intervals) < 2 {
		avg := summary["sending"]
		if what == "received" {
			avg = summary["receiving"]
		}
		return positive(avg)
	}
	n := 0.0
	for i, v := range intervals[1:] {
		n += v.rate * (v.at - intervals[i].at)
	}
	rate := n / (intervals[len(intervals)-1].at - intervals[0].at)
	if !(rate > 0) {
		return 0, fmt.Errorf("nothing was %s after its first second", what)
	}
	return rate, nil
}
