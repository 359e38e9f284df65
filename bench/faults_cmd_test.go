package main

import (
	"errors"
	"io/fs"
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
	if err != nil || !strings.Contains(out, "the victim") || !strings.Contains(out, "lost in the consumer") {
		t.Errorf("explain: got %v and\n%s\nwant the victim and where its message was lost", err, out)
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
	if got := ledgersOf(dir); got != "3 trials" {
		t.Errorf("got the ledgers of %q, want of all", got)
	}
	if err := os.Remove(filepath.Join(dir, trial.EvidenceDir, ledgers[0].Name())); err != nil {
		t.Fatal(err)
	}
	if got := ledgersOf(dir); got != "2 of 3 trials" {
		t.Errorf("got the ledgers of %q, want it to count those that are there", got)
	}
	again := filepath.Join(t.TempDir(), "again")
	if _, _, err := command(t, "faults", "replay", dir, name, "--out", again); err != nil {
		t.Fatal(err)
	}
	replayed, err := report.Read(again)
	if err != nil {
		t.Fatal(err)
	}
	// Its moment is one of the two that there were when it was measured.
	if got := replayed.Cells[0].Runs; len(got) != 1 || got[0].N != 1 || got[0].Of != 2 || got[0].Seed != c.Runs[0].Seed {
		t.Errorf("got the trials %+v, want the first of 2 alone, with its seed %d", got, c.Runs[0].Seed)
	}
}

func TestOneDirectoryHoldsOneCampaign(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shared")
	if _, err := claim(dir, false, true); err == nil || !strings.Contains(err.Error(), "nothing to resume") {
		t.Errorf("resume of nothing: got %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want nothing made for it", err)
	}
	release, err := claim(dir, false, false)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"faults", "run", "--settings", "memory", "--faults", "none", "--out", dir}
	for _, more := range []string{"--force", "--seed=1"} {
		if _, _, err := command(t, append(args, more)...); err == nil || !strings.Contains(err.Error(), "another queuelab") {
			t.Errorf("%s: got %v, want to be kept out by the other", more, err)
		}
	}
	release()
	release, err = claim(dir, false, false)
	if err != nil {
		t.Fatalf("once the other has ended: %v", err)
	}
	release()
}

// The directories beside a result have names that anybody may have chosen.
func TestWhatIsNotOfAResultStaysWhenItIsReplaced(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"accounts-2026.txt", "a_b_c_1.jsonl.gz"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeOurs(dir, filepath.Join(dir, "absent")); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "accounts-2026.txt" {
		t.Errorf("got %v and %v, want what is somebody else's", left, err)
	}
}

// The default campaign has latency cells, which no fault strikes; and a latency
// trial is none to replay.
func TestALatencyCellIsNoFault(t *testing.T) {
	out, _, err := command(t, "faults", "list")
	if err != nil {
		t.Fatal(err)
	}
	control := strings.Split(out, "\n")[1]
	if !strings.Contains(control, "in the campaign") || strings.Contains(control, "aof-no,") || strings.Count(control, "rabbitmq/quorum") != 1 {
		t.Errorf("got the control %q, want each setting of it once, and no other", control)
	}
	if strings.Contains(out, trial.FaultServiceKill) {
		t.Error("got the sale's fault, which a campaign does not take")
	}
	out, _, err = command(t, "faults", "run", "--dry-run")
	if err != nil || !strings.Contains(out, "(latency)") {
		t.Errorf("got %v and\n%s\nwant latency cells called so", err, out)
	}
	dir := t.TempDir()
	log, err := trial.OpenLog(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	err = log.Append(trial.Outcome{Backend: "memory", Setting: "bounded", Test: trial.TestLatency, Fault: trial.FaultNone, Run: trial.TrialRun{N: 1}})
	if err := errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := command(t, "faults", "replay", dir, "memory/bounded:none:1", "--out", filepath.Join(dir, "again")); err == nil || !strings.Contains(err.Error(), "no trial") {
		t.Errorf("replay of a latency trial: got %v, want no such trial", err)
	}
}

func TestWhatIsNamedTwiceIsMeasuredOnce(t *testing.T) {
	out, _, err := command(t, "faults", "run", "--dry-run", "--settings", "memory,memory/bounded", "--faults", "poison,poison", "--crashes", "2")
	if err != nil || !strings.Contains(out, "1 cell, 2 trials, ") {
		t.Errorf("got %v and\n%s\nwant one cell", err, out)
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
