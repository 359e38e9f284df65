package report

import (
	"bytes"
	"strings"
	"testing"

	"queuelab/bench/ledger"
	"queuelab/bench/trial"
)

// campaign is a handmade result of the crash lab.
func campaign() trial.Result {
	r := sample()
	r.Run.Suite = trial.SuiteFaults
	ref := func(n int64) *int64 { return &n }
	cell := func(setting, fault string, lossy, n int, lost, crashLost, dirty int64, window *trial.LossWindow, verdict string) trial.Cell {
		backend, name, _ := strings.Cut(setting, "/")
		c := trial.Cell{
			Backend: backend, Setting: name, Test: trial.TestFault, Fault: fault, Trials: n, Valid: n, Broker: trial.Broker{Name: "redis", Version: "7.0.15"},
			Guarantee: "at most once", Profile: trial.ProfileAtMostOnce, Counts: ledger.Counts{Sent: 1000, Accepted: 1000, Lost: lost},
			Loss: &trial.Loss{Trials: n, Lossy: lossy, Low: 0.1, High: 0.9}, LossWindowMillis: window, DirtyBytes: ref(dirty), CrashLost: crashLost,
			Expected: &trial.Expected{Lost: "recent", Redelivered: "any", LostAtMost: ref(5000), Basis: "V", Why: "because"}, Verdict: verdict, Note: "a note of the trials",
		}
		return c
	}
	var kept []trial.Cell
	for _, c := range r.Cells {
		if c.Backend == "redis-list" && c.Test == trial.TestLatency {
			kept = append(kept, c)
		}
	}
	r.Cells = kept
	r.Cells = append(r.Cells,
		cell("redis-list/aof-everysec", trial.FaultBrokerKill, 0, 10, 0, 0, 0, nil, trial.VerdictAsExpected),
		cell("redis-list/aof-everysec", "power-loss", 9, 10, 4321, 0, 65_536, &trial.LossWindow{P50: 500, Max: 991}, trial.VerdictAsExpected),
		cell("redis-list/aof-always", trial.FaultBrokerKill, 0, 10, 0, 0, 0, nil, trial.VerdictAsExpected),
		cell("redis-list/aof-always", "power-loss", 1, 10, 7, 0, 0, &trial.LossWindow{P50: 12, Max: 12}, trial.VerdictContradiction),
	)
	return r
}

func TestTheCrashLabShowsExpectedAgainstMeasured(t *testing.T) {
	var b bytes.Buffer
	if err := Table(&b, campaign(), false, 220); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"The crash lab", "9 of 10", "991 ms", "✗ contradiction", "a note of the trials", "power lost"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("want %q in\n%s", want, b.String())
		}
	}
}

func TestTheFrontierSetsLatencyAgainstLoss(t *testing.T) {
	p := newView(campaign()).frontierPlot()
	if len(p.Series) != 2 {
		t.Fatalf("got %d settings, want the two with a latency and a power cut", len(p.Series))
	}
	for _, s := range p.Series {
		if len(s.Dots) != 2 {
			t.Errorf("%s: got %d marks, want one for a kill and one for a power cut", s.Label, len(s.Dots))
			continue
		}
		// SVG counts downwards.
		if kill, power := s.Dots[0], s.Dots[1]; power.Y >= kill.Y || power.X != kill.X {
			t.Errorf("%s: got the power cut at %v, %v and the kill at %v, %v, want it above", s.Label, power.X, power.Y, kill.X, kill.Y)
		}
	}
	if got := newView(sample()).frontierPlot(); len(got.Series) != 0 {
		t.Errorf("without a campaign: got %d settings, want no picture", len(got.Series))
	}
	var page bytes.Buffer
	if err := HTML(&page, campaign()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`id="faults"`, `id="chart-frontier"`, "崩溃实验室"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

func TestACampaignsVerdictComesFromItsOwnKillsAndPowerCuts(t *testing.T) {
	cell := func(setting, profile, fault string, lost int64) trial.Cell {
		return trial.Cell{Backend: "kafka", Setting: setting, Profile: profile, Test: trial.TestFault, Fault: fault, Trials: 10, Valid: 10, Counts: ledger.Counts{Lost: lost},
			Verdict: trial.VerdictAsExpected, Loss: &trial.Loss{Trials: 10}, LossWindowMillis: &trial.LossWindow{Max: 4490}}
	}
	v := newView(trial.Result{Cells: []trial.Cell{
		cell("kept", trial.ProfileDiskSync, powerLoss, 0), cell("kept", trial.ProfileDiskSync, "disk-full", 7), cell("gone", trial.ProfileDiskSync, trial.FaultBrokerKill, 0), cell("gone", trial.ProfileDiskSync, powerLoss, 5),
		cell("late", trial.ProfileDiskAsync, leaderKill, 0), cell("late", trial.ProfileDiskAsync, powerLoss, 5), cell("blank", trial.ProfileDiskSync, "unroutable", 0), cell("bare", trial.ProfileDiskSync, "reset", 0),
	}})
	answers := v.answers()
	if got := answers[0].Choice.String() + ", " + answers[1].Choice.String(); got != "kafka/kept, kafka/late" {
		t.Errorf("got %s, want kafka/kept and kafka/late", got)
	}
	all := v.powerCut().String()
	for _, o := range append(answers[0].Out, answers[1].Out...) {
		all += "\n" + o.String()
	}
	for _, want := range []string{"on 3 settings", "kafka/gone: lost messages, power lost", "kafka/blank, kafka/bare: broker killed was not tested", "kafka/kept lost messages all the same, disk full: 0 of 10 crashes lost something", "kafka/late: of 10 power cuts the worst took messages that were 4.49 s old"} {
		if !strings.Contains(all, want) {
			t.Errorf("got no %q in:\n%s", want, all)
		}
	}
	if got := newView(sample()).powerCut().String(); !strings.Contains(got, "not tested here") {
		t.Errorf("without a campaign: got %q", got)
	}
}
