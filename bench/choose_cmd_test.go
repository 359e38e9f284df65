package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"queuelab/bench/choose"
)

// chooses runs the command in an empty folder, with answers on standard input.
func chooses(t *testing.T, answers string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errOut bytes.Buffer
	err := run(t.Context(), append([]string{"choose"}, args...), strings.NewReader(answers), &out, &errOut)
	var exit exitError
	switch {
	case errors.As(err, &exit):
		status = int(exit)
	case err != nil:
		status = 1
		errOut.WriteString(err.Error())
	}
	return out.String(), errOut.String(), status
}

// storedResults are the arguments that name the results of the package's tests.
func storedResults(t *testing.T) []string {
	t.Helper()
	var args []string
	for _, name := range []string{"quick.json", "faults.json"} {
		path, err := filepath.Abs(filepath.Join("choose", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "--result", path)
	}
	return args
}

func TestChooseEndsAsItFound(t *testing.T) {
	results := storedResults(t)
	empty := t.TempDir()
	t.Chdir(empty)
	for _, c := range []struct {
		name    string
		args    []string
		answers string
		status  int
		out     string // what either output says
	}{
		{"something fits", []string{"--loses", "nothing-on-power-loss"}, "", 0, "8 settings of 57 fit"},
		{"nothing fits", []string{"--need", "delay", "--only", "kafka"}, "", nothingFits, `"delay" and "only kafka" together`},
		{"one is the other's opposite", []string{"--need", "competing,broadcast"}, "", 2, "competing and broadcast contradict each other"},
		{"a loss that is meant to be", []string{"--need", "at-most-once", "--loses", "nothing-on-crash"}, "", 2, "contradict each other"},
		{"no needs, and nobody to ask", nil, "", 2, "nothing is needed: say what is"},
		{"a need that there is not", []string{"--need", "durabel"}, "", 2, `did you mean "durable"?`},
		{"a broker that there is not", []string{"--only", "rebbitmq"}, "", 2, `did you mean "rabbitmq"?`},
		{"a loss that there is not", []string{"--loses", "sleep"}, "", 2, "nothing-on-crash"},
		{"a negative rate", []string{"--rate=-1"}, "", 2, "messages a second"},
		{"no number", []string{"--rate", "NaN"}, "", 2, "messages a second"},
		{"a p99 of a day", []string{"--p99", "24h"}, "", 2, "p99"},
		{"a negative backlog", []string{"--backlog=-1"}, "", 2, "backlog"},
		{"too many groups", []string{"--groups", "100000"}, "", 2, "groups"},
		{"a table of needs", []string{"--table", "--need", "durable"}, "", 2, "--table"},
		{"markdown of an answer", []string{"--markdown", "--need", "durable"}, "", 2, "--markdown"},
		{"needs and questions", []string{"--ask", "--need", "durable"}, "1\n", 2, "--ask"},
		{"a result that is not there", []string{"--need", "durable", "--result", filepath.Join(empty, "none")}, "", 1, "read the result"},
		{"answers that fit", []string{"--ask"}, "3\n1\n\n5000\nredis\n", 0, "redis-streams/aof-always"},
		{"answers that nothing fits", []string{"--ask"}, "3\n1\n1,2\n\nredis\n", nothingFits, "Nothing fits"},
		{"answers that end too early", []string{"--ask"}, "3\n1\n", 2, "the answers end before question 3 of 5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := c.args
			if !strings.Contains(strings.Join(args, " "), "--result") {
				args = append(args, results...)
			}
			stdout, stderr, status := chooses(t, c.answers, args...)
			if status != c.status || !strings.Contains(stdout+stderr, c.out) {
				t.Errorf("got status %d and\n%s%s\nwant %d and %q", status, stdout, stderr, c.status, c.out)
			}
		})
	}
}

func TestChooseTakesTheResultsThatAreThere(t *testing.T) {
	results := storedResults(t)
	t.Chdir(t.TempDir())
	stdout, stderr, status := chooses(t, "", "--need", "durable")
	if status != 0 || !strings.Contains(stdout, "Nothing was measured here") || stderr != "" {
		t.Errorf("got status %d and\n%s%s\nwant an answer, and that nothing was measured", status, stdout, stderr)
	}
	for name, from := range map[string]string{"monday": results[1], "faults-tuesday": results[3]} {
		dir := filepath.Join("bench", "results", name)
		data, err := os.ReadFile(from)
		if err == nil {
			err = errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "result.json"), data, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	stdout, _, status = chooses(t, "", "--need", "durable", "--loses", "nothing-on-power-loss", "--json")
	var answer choose.Answer
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil || status != 0 {
		t.Fatalf("got status %d, %v and\n%s", status, err, stdout)
	}
	if !answer.Measured || len(answer.Results) != 2 || !strings.Contains(answer.Results[0], "monday") {
		t.Errorf("got %v, want both results, that of a suite before the newer campaign", answer.Results)
	}
	if fit := answer.Fitting(); len(fit) == 0 || fit[0].Setting != "redis-streams/aof-always" || fit[0].Speed == nil || fit[0].Speed.P99 == nil {
		t.Errorf("got %d that fit, want redis-streams/aof-always first, with its speed", len(fit))
	}
}

func TestChooseTellsEveryBackendByItsCriteria(t *testing.T) {
	results := storedResults(t)
	t.Chdir(t.TempDir())
	markdown, _, status := chooses(t, "", append([]string{"--table", "--markdown"}, results...)...)
	if status != 0 || !strings.HasPrefix(markdown, "| backend | routing | reliability | replay | backlog | cluster | ack and order | speed | protocol | operations |\n") {
		t.Errorf("got status %d and\n%s\nwant a table of Markdown", status, markdown)
	}
	text, _, status := chooses(t, "", append([]string{"--table"}, results...)...)
	if status != 0 || !strings.Contains(text, "\nredis-streams\n  routing ") {
		t.Errorf("got status %d and\n%s\nwant a block for each backend", status, text)
	}
	machine, _, status := chooses(t, "", append([]string{"--table", "--json"}, results...)...)
	var rows []choose.Row
	if err := json.Unmarshal([]byte(machine), &rows); err != nil || status != 0 || len(rows) == 0 || len(rows[0].Criteria) != 9 {
		t.Errorf("got status %d, %v and %d rows, want nine criteria each", status, err, len(rows))
	}
}
