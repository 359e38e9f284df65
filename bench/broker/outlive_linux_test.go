package broker_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
)

// living lists the processes that belong to a directory: by their command line,
// their environment or where they are. Dead ones that nobody has collected do
// not count.
func living(dir string) (found []string) {
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range procs {
		cmdline, _ := os.ReadFile(p + "/cmdline")
		environ, _ := os.ReadFile(p + "/environ")
		cwd, _ := os.Readlink(p + "/cwd")
		if !bytes.Contains(cmdline, []byte(dir)) && !bytes.Contains(environ, []byte(dir)) && !strings.HasPrefix(cwd, dir) {
			continue
		}
		stat, _ := os.ReadFile(p + "/stat")
		if i := bytes.LastIndexByte(stat, ')'); i < 0 || len(stat) < i+3 || stat[i+2] == 'Z' || stat[i+2] == 'X' {
			continue
		}
		found = append(found, fmt.Sprintf("%s %.120s", filepath.Base(p), bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '})))
	}
	return found
}

// expectNothingLeft waits until no process and no file belongs to a directory.
func expectNothingLeft(t *testing.T, dir, circumstance string) {
	t.Helper()
	var procs []string
	var files []os.DirEntry
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		procs = living(dir)
		files, _ = os.ReadDir(dir)
		if len(procs) == 0 && len(files) == 0 {
			return
		}
	}
	for _, p := range procs {
		var pid int
		fmt.Sscan(p, &pid)
		syscall.Kill(pid, syscall.SIGKILL)
	}
	t.Fatalf("%s: got %d processes and %v left, want nothing:\n%s", circumstance, len(procs), files, strings.Join(procs, "\n"))
}

var portLine = regexp.MustCompile(`starting on port (\d+)`)

func TestNothingOutlivesTheCommand(t *testing.T) {
	many := func(n, soak int) int {
		if os.Getenv("QUEUELAB_SOAK") != "" {
			return soak
		}
		return n
	}
	for _, c := range []struct {
		kind   string
		times  int
		within time.Duration // the moment is anywhere in the command's first so many
	}{
		{"redis", many(25, 200), 250 * time.Millisecond},
		{"nats", many(6, 100), 500 * time.Millisecond},
		{"postgres", many(3, 50), 6 * time.Second},
		{"kafka", many(2, 30), 20 * time.Second},
		{"rabbitmq", many(2, 30), 20 * time.Second},
		{"redis-sentinel", many(2, 30), 5 * time.Second},
		{"kafka-3", many(0, 10), 20 * time.Second},
		{"rabbitmq-3", many(0, 10), 30 * time.Second},
	} {
		t.Run(c.kind, func(t *testing.T) {
			if c.times == 0 {
				t.Skip("set QUEUELAB_SOAK=1: it takes minutes")
			}
			t.Parallel()
			brokertest.Need(t, c.kind)
			dir := commonTemp(t)
			for i := range c.times {
				// Most often the signal that leaves no chance to clear up.
				sig := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL, syscall.SIGINT}[i%4]
				// One moment in each of as many equal parts, so that few times cover
				// the start, the run, the kill and the restart.
				part := c.within / time.Duration(c.times)
				moment := part*time.Duration(i) + rand.N(part)
				killCommandAt(t, dir, c.kind, sig, moment)
			}
		})
	}
}

func killCommandAt(t *testing.T, dir, kind string, sig syscall.Signal, moment time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), lifeVar+"="+kind, "TMPDIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	var reading sync.WaitGroup
	reading.Go(func() { io.Copy(&said, bufio.NewReader(out)) })
	// Here time is the subject: the signal comes at a random moment.
	time.Sleep(moment)
	if err := cmd.Process.Signal(sig); err != nil {
		t.Errorf("the command ended before it was killed: %v\n%s", err, said.String())
	}
	reading.Wait()
	cmd.Wait()
	circumstance := fmt.Sprintf("%v at %v, after it had said\n%s", sig, moment, said.String())
	expectNothingLeft(t, dir, circumstance)
	if strings.Contains(said.String(), "failed:") {
		t.Error(circumstance)
	}
	for _, m := range portLine.FindAllStringSubmatch(said.String(), -1) {
		l, err := net.Listen("tcp", "127.0.0.1:"+m[1])
		if err != nil {
			t.Errorf("%s: got %v, want its port free", circumstance, err)
			continue
		}
		l.Close()
	}
}

func TestBrokerDoesNotOutliveAKilledSupervisor(t *testing.T) {
	for _, kind := range broker.Kinds() {
		t.Run(kind, func(t *testing.T) {
			dir := commonTemp(t)
			t.Setenv("TMPDIR", dir)
			ctx := within(t, 3*time.Minute)
			b, err := broker.Start(ctx, broker.Options{Kind: kind})
			if errors.Is(err, broker.ErrUnavailable) && os.Getenv("CI") != "true" {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			killed := 0
			for _, p := range living(dir) {
				if pid, cmdline, _ := strings.Cut(p, " "); strings.Contains(cmdline, "supervise-one-broker") {
					n, _ := strconv.Atoi(pid)
					if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
						t.Fatal(err)
					}
					killed++
				}
			}
			if killed != 1 {
				t.Fatalf("got %d supervisors, want 1", killed)
			}
			for deadline := time.Now().Add(20 * time.Second); len(living(dir)) > 0; time.Sleep(2 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("got %q alive, want nothing", living(dir))
				}
			}
			if err := b.Restart(ctx); err == nil {
				t.Error("got nil from Restart without a supervisor, want an error")
			}
			if err := b.Stop(); err != nil {
				t.Error(err)
			}
			expectNothingLeft(t, dir, "after Stop")
		})
	}
}
