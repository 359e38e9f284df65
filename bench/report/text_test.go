package report

import (
	"bytes"
	"encoding/csv"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/ledger"
	"queuelab/bench/trial"
	"queuelab/queue"
)

func TestMarkdown(t *testing.T) {
	for name, result := range map[string]trial.Result{"report.md": sample(), "full.md": sampleFull(), "hostile.md": hostile(), "empty.md": {}} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := Markdown(&b, result); err != nil {
				t.Fatal(err)
			}
			golden(t, name, b.Bytes())
			for i, l := range strings.Split(b.String(), "\n") {
				if strings.HasPrefix(l, "|") && strings.Count(strings.ReplaceAll(l, `\|`, ""), "|") < 3 {
					t.Errorf("line %d: got a broken table row %q", i+1, l)
				}
			}
			if strings.Contains(b.String(), "<script") {
				t.Error("a foreign tag came through")
			}
		})
	}
}

func TestMarkdownSaysTheVerdictAndTheConditionsAndThenWhatIsWrong(t *testing.T) {
	var b bytes.Buffer
	if err := Markdown(&b, sample()); err != nil {
		t.Fatal(err)
	}
	at := -1
	for _, want := range []string{"## The verdict", "For orders you cannot lose", "## Conditions", "Example CPU", "## Read this first", "contradiction", "invalid", "saturated", "oracle update", "skipped",
		"is emulated by miniredis", "## Ranking", "### disk-sync", "### at-most-once", "## Latency", "## Throughput", "## Killed", "## The sale", "## Every cell", "## The facts", "## Verdicts", "## What these trials can bound", "## What each number means"} {
		next := strings.Index(b.String()[at+1:], want)
		if next < 0 {
			t.Fatalf("no %q after byte %d", want, at)
		}
		at += 1 + next
	}
}

func TestTablesOfHostileStringsStayTables(t *testing.T) {
	var b bytes.Buffer
	if err := Table(&b, hostile(), false, 140); err != nil {
		t.Fatal(err)
	}
	golden(t, "hostile.txt", b.Bytes())
	if strings.ContainsRune(b.String(), '\x1b') {
		t.Error("a foreign escape code came through")
	}
	b.Reset()
	if err := Table(&b, trial.Result{}, false, 0); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "0 cells") {
		t.Errorf("an empty result: got %q", b.String())
	}
}

func TestCSVHasOneLineForEachCell(t *testing.T) {
	var b bytes.Buffer
	if err := CSV(&b, sample()); err != nil {
		t.Fatal(err)
	}
	golden(t, "cells.csv", b.Bytes())
	records, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != 1+98 {
		t.Errorf("got %d lines, want a head and 98", len(records))
	}
	b.Reset()
	if err := CSV(&b, trial.Result{Cells: []trial.Cell{{Backend: "=cmd()", Note: "a\nb,\"c\"", Counts: ledger.Counts{Lost: -5}}}}); err != nil {
		t.Fatal(err)
	}
	records, err = csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	valueOf := func(name string) string {
		for i, h := range records[0] {
			if h == name {
				return records[1][i]
			}
		}
		t.Fatalf("no column %q", name)
		return ""
	}
	for name, want := range map[string]string{"backend": "'=cmd()", "note": "a\nb,\"c\"", "lost": "-5", "endToEndMicrosP99": "", "sold": "", "lostAtMost": ""} {
		if got := valueOf(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestReadme(t *testing.T) {
	golden(t, "readme.md", []byte(ReadmeTable(sample())))
	golden(t, "readme.zh.md", []byte(ReadmeTableZh(sample())))
	rows := []CapabilityRow{
		{"memory/bounded", queue.Capabilities{Guarantee: queue.AtLeastOnce, Confirm: queue.ConfirmMemory, AckConfirmed: true, Nack: true, Stored: true, Bounded: true}},
		{"redis-pubsub/default", queue.Capabilities{Broadcast: true, Shared: true}},
		{"rabbitmq/quorum", queue.Capabilities{Guarantee: queue.AtLeastOnce, Confirm: queue.ConfirmDisk, Attempts: queue.CountedByBroker, Nack: true, Stored: true, Durable: true, Shared: true}},
	}
	rows = append(rows, CapabilityRow{"every/word", queue.Capabilities{AckConfirmed: true, Nack: true, Groups: true, OrderedPerKey: true, Replay: true, Routing: true, Bounded: true, LeaseFenced: true,
		DropsOldest: true, PopGap: true, MayStrand: true, Skips: true}})
	if zh := CapabilityTableZh(rows); regexp.MustCompile("[a-z]{5,}").MatchString(regexp.MustCompile("`[^`]*`").ReplaceAllString(zh, "")) {
		t.Errorf("got English words in the Chinese table:\n%s", zh)
	}
	golden(t, "capabilities.md", []byte(CapabilityTable(rows)+"\n"+CapabilityTableZh(rows)))
}

func TestNumbersAreShort(t *testing.T) {
	var got []string
	for _, us := range []int64{0, 3, 999, 1000, 1234, 12_345, 123_456, 999_499, 999_500, 1_234_567, -5} {
		got = append(got, micros(us))
	}
	want := []string{"0 µs", "3 µs", "999 µs", "1.00 ms", "1.23 ms", "12.3 ms", "123 ms", "999 ms", "1.00 s", "1.23 s", "-5 µs"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("micros (-want +got):\n%s", diff)
	}
	got = nil
	for _, r := range []float64{-1, 0, 12.4, 9999, 10_000, 99_960, 1_450_000} {
		got = append(got, rate(r))
	}
	if diff := cmp.Diff([]string{"-", "-", "12/s", "9,999/s", "10.0 k/s", "100 k/s", "1.45 M/s"}, got); diff != "" {
		t.Errorf("rate (-want +got):\n%s", diff)
	}
	got = nil
	for _, n := range []int64{0, 999, 1000, 1_234_567, -1234} {
		got = append(got, count(n))
	}
	if diff := cmp.Diff([]string{"0", "999", "1,000", "1,234,567", "-1,234"}, got); diff != "" {
		t.Errorf("count (-want +got):\n%s", diff)
	}
}

// The numbers are those of an exact one-sided bound at 95 %.
func TestWhatTrialsWithoutALossExclude(t *testing.T) {
	for n, want := range map[int]string{1: "95", 3: "63.2", 4: "52.7", 10: "25.9", 30: "9.5", 59: "4.95", 100: "2.95", 299: "0.997", 3000: "0.1"} {
		if got := brief(excluded(n)); got != want {
			t.Errorf("%d trials: got %s %%, want %s %%", n, got, want)
		}
	}
	boundOf := func(c trial.Cell) string { return bound(&viewCell{Cell: &c}).String() }
	one := boundOf(trial.Cell{Test: trial.TestCrash, Valid: 1, Verdict: trial.VerdictAsExpected})
	if !strings.Contains(one, "above 95 %") || !strings.Contains(one, "--trials") {
		t.Errorf("one trial: got %q", one)
	}
	lost := boundOf(trial.Cell{Test: trial.TestCrash, Valid: 3, Verdict: trial.VerdictContradiction, Counts: ledger.Counts{Lost: 12}})
	if !strings.Contains(lost, "12 messages lost over 3 crashes") {
		t.Errorf("a loss: got %q", lost)
	}
	if got := boundOf(trial.Cell{Test: trial.TestCrash, Verdict: trial.VerdictSkipped}); got != "" {
		t.Errorf("skipped: got %q, want nothing", got)
	}
}

func TestAPercentileNeedsTenMessagesBeyondIt(t *testing.T) {
	var got []string
	for _, p := range percentiles(trial.Percentiles{P50: 10, P90: 20, P99: 30, P999: 40, Max: 50, N: 999}) {
		got = append(got, p.Name+" "+p.String())
	}
	if diff := cmp.Diff([]string{"p50 10 µs", "p90 20 µs", "p99 n<1,000", "p99.9 n<10,000", "max 50 µs"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestALossThatIsExpectedIsNotGreen(t *testing.T) {
	for _, c := range []struct {
		cell  trial.Cell
		class string
	}{
		{trial.Cell{Verdict: trial.VerdictAsExpected}, "good"},
		{trial.Cell{Verdict: trial.VerdictAsExpected, Counts: ledger.Counts{Lost: 1}}, "known"},
		{trial.Cell{Verdict: trial.VerdictAsExpected, Sale: &trial.Sale{Stock: 5, Sold: 5}}, "good"},
		{trial.Cell{Verdict: trial.VerdictAsExpected, Sale: &trial.Sale{Waiting: 1}}, "known"},
		{trial.Cell{Verdict: trial.VerdictContradiction, Counts: ledger.Counts{Lost: 1}}, "bad"},
		{trial.Cell{Verdict: "from the future"}, "other"},
	} {
		if got := cellMark(&c.cell).Class; got != c.class {
			t.Errorf("%+v: got %s, want %s", c.cell.Verdict, got, c.class)
		}
	}
}

func TestThroughputScalesToTheFastestCompetitorOfItsProfile(t *testing.T) {
	for _, g := range newView(sample()).groups() {
		if g.Profile != trial.ProfileMemory {
			continue
		}
		c := g.throughputChart()
		if last := c.Ticks[len(c.Ticks)-1].Text; last != "60 k" {
			t.Errorf("got the scale to end at %s, want 60 k: the memory queue is no competitor", last)
		}
		for _, b := range c.Bands {
			for _, bar := range b.Bars {
				if bar.X+bar.Width > c.Right+0.1 {
					t.Errorf("%s: got a bar to %v, beyond %v", b.Label, bar.X+bar.Width, c.Right)
				}
				if broken := b.Label == "memory/bounded"; bar.Broken != broken {
					t.Errorf("%s: got broken %v, want %v", b.Label, bar.Broken, broken)
				}
			}
		}
		return
	}
	t.Fatal("got no profile memory")
}
