package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"queuelab/bench/report"
	"queuelab/bench/trial"
)

// A campaign, the story of what it lost, the same trial again, and going on
// where it stopped: with nothing but Go.
func TestACampaignIsToldReplayedAndResumed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "campaign")
	args := []string{"faults", "run", "--settings", "memory", "--faults", "consumer-kill-mid-handle", "--crashes", "2", "--out", dir}
	out, _, err := command(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "2 of 2") {
		t.Errorf("want a loss in each of 2 crashes in\n%s", out)
	}
	result, err := report.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := result.Cells[0]
	if len(result.Cells) != 1 || c.Test != trial.TestFault || c.Verdict != trial.VerdictAsExpected || c.Lost == 0 || c.CrashesWithLoss == nil || *c.CrashesWithLoss != 2 || c.LossWindowMillis == nil {
		t.Fatalf("got %d cells, the first %+v, want one with a loss in 2 crashes and its window", len(result.Cells), c)
	}
	const name = "memory/bounded:consumer-kill-mid-handle:1"
	out, _, err = command(t, "explain", name, "--in", dir)
	if err != nil || !strings.Contains(out, "the victim") || !strings.Contains(out, "lost at the consumer") {
		t.Errorf("explain: got %v and\n%s\nwant the victim and where its message was lost", err, out)
	}
	again := filepath.Join(t.TempDir(), "again")
	if _, _, err := command(t, "faults", "replay", dir, name, "--out", again); err != nil {
		t.Fatal(err)
	}
	replayed, err := report.Read(again)
	if err != nil {
		t.Fatal(err)
	}
	if got := replayed.Cells[0].Runs; len(got) != 1 || got[0].N != 1 || got[0].Seed != c.Runs[0].Seed {
		t.Errorf("got the trials %+v, want the first alone, with its seed %d", got, c.Runs[0].Seed)
	}
	// One more trial is asked for: those that there are stay.
	if _, _, err := command(t, "faults", "run", "--settings", "memory", "--faults", "consumer-kill-mid-handle", "--crashes", "3", "--out", dir, "--resume"); err != nil {
		t.Fatal(err)
	}
	resumed, err := report.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := resumed.Cells[0].Runs; len(got) != 3 || !got[0].StartedAt.Equal(c.Runs[0].StartedAt) {
		t.Errorf("got %d trials, want 3 of which the first is the one that was there", len(got))
	}
	ledgers, err := os.ReadDir(filepath.Join(dir, trial.EvidenceDir))
	if err != nil || len(ledgers) != 3 {
		t.Errorf("got %d ledgers and %v, want one for each trial", len(ledgers), err)
	}
}

func TestWhatACampaignWillDoIsToldBefore(t *testing.T) {
	out, _, err := command(t, "faults", "run", "--dry-run")
	if err != nil || !strings.Contains(out, "power-loss") || !strings.Contains(out, " trials, about ") {
		t.Errorf("got %v and\n%s\nwant the cells and an estimate", err, out)
	}
	out, _, err = command(t, "faults", "list")
	if err != nil || !strings.Contains(out, "in the campaign: ") {
		t.Errorf("got %v and\n%s\nwant each fault with what is asked of it", err, out)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"faults", "run", "--faults", "flood"}, "broker-kill"},
		{[]string{"faults", "run", "--settings", "zeromq"}, "redis-list"},
		{[]string{"faults", "run", "--crashes", "0"}, "--crashes=0"},
		{[]string{"faults", "replay", t.TempDir(), "nonsense"}, "backend/setting:fault:number"},
		{[]string{"explain", "memory/bounded:none:1", "--in", t.TempDir()}, "no ledger of the trial"},
	} {
		_, stderr, err := command(t, c.args...)
		if err == nil || !strings.Contains(stderr+err.Error(), c.want) {
			t.Errorf("%v: got %v and %q, want it to name %q", c.args, err, stderr, c.want)
		}
	}
}
