package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"queuelab/bench/broker/brokertest"
	"queuelab/bench/compare"
	"queuelab/bench/report"
)

// ab runs the program, and returns what it found and where it kept it.
func ab(t *testing.T, args ...string) (compare.Comparison, string) {
	t.Helper()
	bin, err := buildBoth()
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "queuelab"), append([]string{"ab", "--json", "--out", out}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var c compare.Comparison
	if err := json.Unmarshal(stdout.Bytes(), &c); err != nil {
		t.Fatalf("%v in %s", err, stdout.String())
	}
	return c, out
}

func verdicts(c compare.Comparison) string {
	var lines []string
	for _, cell := range c.Cells {
		for _, r := range cell.Rows {
			line := fmt.Sprintf("%s %s: A %.4g, B %.4g", cell.Name, r.Metric, r.A.Median, r.B.Median)
			if r.P != nil {
				line += fmt.Sprintf(", p %.3g", *r.P)
			}
			lines = append(lines, line+", "+r.Verdict)
		}
	}
	return strings.Join(lines, "\n")
}

func TestABFindsWhatIsHalfAsFast(t *testing.T) {
	const pairs = 8
	c, out := ab(t, "memory/bounded", "memory/bounded+slow=100%", "--pairs", "8", "--tests", "throughput", "--duration", "1s", "--seed", "7")
	found := false
	for _, cell := range c.Cells {
		for _, r := range cell.Rows {
			found = found || r.Metric == "ratePerSecond" && r.Verdict == compare.Worse && r.A.N == pairs
		}
	}
	if !found || !c.Paired || !c.FDR {
		t.Errorf("got no worse rate in pairs:\n%s", verdicts(c))
	}
	result, err := report.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Cells) != 2 || result.Run.Suite != "ab" || !result.Run.Complete {
		t.Fatalf("got %d cells of suite %q, complete %v", len(result.Cells), result.Run.Suite, result.Run.Complete)
	}
	// Every round has both, and not always the same one first.
	orders, first := map[int][]int{}, map[string]bool{}
	for _, cell := range result.Cells {
		for _, r := range cell.Runs {
			orders[r.N] = append(orders[r.N], r.Order)
		}
	}
	for n := 1; n <= pairs; n++ {
		o := orders[n]
		if len(o) != 2 || (o[0]-o[1])*(o[0]-o[1]) != 1 || (min(o[0], o[1])-1)/2 != n-1 {
			t.Errorf("round %d took the places %v, want two that follow each other", n, o)
			continue
		}
		first[fmt.Sprint(o[0] < o[1])] = true
	}
	if len(first) != 2 {
		t.Error("one of the two always came first")
	}
	again, _, err := command(t, "compare", out, "--json")
	if err != nil {
		t.Fatal(err)
	}
	var reread compare.Comparison
	if err := json.Unmarshal([]byte(again), &reread); err != nil {
		t.Fatal(err)
	}
	if got, want := verdicts(reread), verdicts(c); got != want {
		t.Errorf("compare on what ab kept: got\n%s\nwant\n%s", got, want)
	}
}

func TestABOfEqualsAndOfASlowedOneOnRealBrokers(t *testing.T) {
	if os.Getenv("QUEUELAB_SOAK") == "" {
		t.Skip("takes half an hour: set QUEUELAB_SOAK=1")
	}
	brokertest.Need(t, "redis")
	brokertest.Need(t, "rabbitmq")
	tested, alarms := 0, 0
	for _, s := range []string{"memory/bounded", "redis-streams/aof-everysec", "rabbitmq/quorum"} {
		c, _ := ab(t, s, s, "--duration", "2s")
		t.Logf("%s twice:\n%s", s, verdicts(c))
		tested, alarms = tested+c.Tested, alarms+c.Found
		slowed, _ := ab(t, s, s+"+slow=20%", "--duration", "2s")
		t.Logf("%s slowed:\n%s", s, verdicts(slowed))
		worse := 0
		for _, cell := range slowed.Cells {
			for _, r := range cell.Rows {
				if r.Verdict == compare.Worse && !strings.HasPrefix(r.Metric, "cost.") { // to be slowed is itself work
					worse++
				}
			}
		}
		if worse == 0 {
			t.Errorf("%s: one slowed by 20 %% was not found", s)
		}
	}
	if tested < 20 || 20*alarms > tested {
		t.Errorf("got %d differences in %d tests of equals, want at most one in twenty", alarms, tested)
	}
}
