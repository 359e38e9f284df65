package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"queuelab/bench/broker/brokertest"
)

// TestMain lets the test binary be the nodes and guards that a command starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "node" || os.Args[1] == "guard") {
		main()
		return
	}
	brokertest.Main(m)
}

// command runs the program in this process.
func command(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	err = run(t.Context(), args, strings.NewReader(""), &out, &errOut)
	return out.String(), errOut.String(), err
}

func TestBadInputIsOneClearSentence(t *testing.T) {
	t.Parallel()
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "result.json"), []byte(`{"schema":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(t.TempDir(), "dangling")
	if err := os.Symlink(filepath.Join(t.TempDir(), "gone", "book"), dangling); err != nil {
		t.Fatal(err)
	}
	newer := t.TempDir()
	if err := os.WriteFile(filepath.Join(newer, "result.json"), []byte(`{"schema":99}`), 0o600); err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never says a word
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	old := t.TempDir()
	if err := os.WriteFile(filepath.Join(old, "result.json"), []byte(`{"schema":1,"run":{"suite":"full"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no broker to be had":     {[]string{"run", "--suite", "smoke", "--tests", "crash", "--backends", "kafka", "--out", t.TempDir()}, "nothing was measured: "},
		"unknown experiment":      {[]string{"truth", "magic"}, "kafka-one-second"},
		"unknown mutant":          {[]string{"run", "--mutant", "evil"}, "ack-deleted"},
		"resume of another suite": {[]string{"run", "--suite", "smoke", "--out", old, "--resume"}, `its suite was "full"`},
		"given broker is down":    {[]string{"run", "--out", t.TempDir(), "--tests", "crash", "--redis", "redis://127.0.0.1:1/0"}, "--redis: "},
		"given broker is silent":  {[]string{"run", "--out", t.TempDir(), "--tests", "crash", "--rabbitmq", "amqp://" + silent.Addr().String()}, "--rabbitmq: "},
		"unknown command":         {[]string{"measure"}, "unexpected argument measure"},
		"unknown flag":            {[]string{"run", "--suit", "smoke"}, "unknown flag --suit"},
		"unknown suite":           {[]string{"run", "--suite", "huge"}, `"smoke","quick","full"`},
		"unknown backend":         {[]string{"run", "--backends", "zeromq"}, "memory, redis-list, redis-pubsub, redis-streams, "},
		"unknown test":            {[]string{"run", "--tests", "speed"}, "latency, throughput, crash, "},
		"negative trials":         {[]string{"run", "--trials", "-1"}, "--trials"},
		"no width":                {[]string{"run", "--width", "0"}, "--width=0"},
		"resume without a result": {[]string{"run", "--resume"}, "--resume needs --out"},
		"result exists":           {[]string{"run", "--suite", "smoke", "--out", full}, "--force"},
		"out is a file":           {[]string{"run", "--suite", "smoke", "--out", file}, file},
		"seckill is missing":      {[]string{"run", "--suite", "smoke", "--out", t.TempDir(), "--seckill", "/nonexistent/seckill"}, "--seckill"},
		"report without a result": {[]string{"report", t.TempDir()}, "result.json"},
		"report of a newer lab":   {[]string{"report", newer}, "99"},
		"a lesson without a name": {[]string{"learn", ""}, "a word of the question"},
		"an exhibit to be listed": {[]string{"museum", "--list", "99"}, "--list lists all of them"},
		"a book that cannot be":   {[]string{"learn", "--book", dangling, "--redis", "redis://127.0.0.1:1/0"}, "--book: "},
		"up of nothing known":     {[]string{"up", "zeromq"}, "zeromq"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, err := command(t, c.args...)
			if err == nil {
				t.Fatal("got no error")
			}
			said := stderr + err.Error()
			if !strings.Contains(said, c.want) {
				t.Errorf("got %q, want it to name %q", said, c.want)
			}
			if strings.Contains(said, "goroutine") {
				t.Errorf("got a stack trace: %s", said)
			}
		})
	}
}

// Whatever fails since the user wanted the end is no failure of what was measured.
func TestAnInterruptionIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errOut bytes.Buffer
	err := run(ctx, []string{"truth", "redis"}, strings.NewReader(""), &out, &errOut)
	var exit exitError
	if !errors.As(err, &exit) || exit != 130 || !strings.Contains(errOut.String(), "queuelab: interrupted") {
		t.Errorf("got %v and %q, want exit status 130 and that it was interrupted", err, errOut.String())
	}
	if !strings.Contains(out.String(), "Skipped: interrupted") {
		t.Errorf("got\n%s\nwant what was not tried", out.String())
	}
	failure := errors.New("disk on fire")
	if err := interrupted(t.Context(), &errOut, failure); !errors.Is(err, failure) {
		t.Errorf("got %v of a run that goes on, want its own error", err)
	}
}

func TestAListThatCouldNotBeWrittenIsAFailure(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("there is no device that is always full: %v", err)
	}
	defer full.Close()
	out := &output{f: full}
	if err := run(t.Context(), []string{"list"}, strings.NewReader(""), out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if out.failed() == nil {
		t.Error("got no error of a list that nobody got")
	}
}

func TestHelpHasExamples(t *testing.T) {
	for _, name := range []string{"run", "report", "list", "doctor", "up"} {
		out, _, err := command(t, name, "--help")
		if err != nil {
			t.Errorf("%s --help: %v", name, err)
		}
		if !strings.Contains(out, "queuelab "+name) {
			t.Errorf("%s --help has no example: %s", name, out)
		}
	}
}

func TestListNamesWhatThereIs(t *testing.T) {
	out, _, err := command(t, "list")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"redis-streams/aof-everysec", "rabbitmq/transient", "kafka/acks-all", "broker-kill", "throughput"} {
		if !strings.Contains(out, want) {
			t.Errorf("list does not name %q", want)
		}
	}
}

func TestPasswordsStayOutOfTheResult(t *testing.T) {
	got := redactArgs([]string{"run", "--postgres", "postgres://lab:secret@db/lab", "--redis=redis://:secret@db:6379", "--suite", "smoke"})
	if joined := strings.Join(got, " "); strings.Contains(joined, "secret") || !strings.Contains(joined, "--suite smoke") {
		t.Errorf("got %q, want no password and the rest as it was", joined)
	}
}
