package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"queuelab/bench/broker/brokertest"
	"queuelab/bench/trial"
)

var buildBoth = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "queuelab-build-")
	if err != nil {
		return "", err
	}
	brokertest.AtEnd(func() { os.RemoveAll(dir) })
	for name, pkg := range map[string]string{"queuelab": "queuelab/bench", "seckill": "queuelab/app"} {
		if msg, err := exec.Command("go", "build", "-o", filepath.Join(dir, name), pkg).CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s: %w: %s", name, err, msg)
		}
	}
	return dir, nil
})

func TestNothingOutlivesARun(t *testing.T) {
	t.Parallel()
	brokertest.Need(t, "redis")
	brokertest.Need(t, "postgres")
	bin, err := buildBoth()
	if err != nil {
		t.Fatal(err)
	}
	rounds, backends, longest := 4, "redis-streams/aof-everysec", 8*time.Second
	if os.Getenv("QUEUELAB_SOAK") != "" {
		brokertest.Need(t, "rabbitmq")
		brokertest.Need(t, "kafka")
		rounds, backends, longest = 100, "redis-streams/aof-everysec,rabbitmq/quorum,kafka/acks-all", 40*time.Second
	}
	signals := []syscall.Signal{syscall.SIGKILL, syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for i := range rounds {
		sig, delay := signals[i%len(signals)], time.Duration(rng.Int64N(int64(longest)))
		t.Run(fmt.Sprintf("%v after %v", sig, delay.Round(time.Millisecond)), func(t *testing.T) {
			mark := "QUEUELAB_KILL_TEST=" + strconv.FormatUint(rng.Uint64(), 36)
			out := t.TempDir()
			run := exec.Command(filepath.Join(bin, "queuelab"), "run", "--backends", backends, "--tests", "crash,sale", "--out", out)
			run.Env = append(os.Environ(), mark)
			var stderr bytes.Buffer
			run.Stderr = &stderr
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(delay) // the random moment is the point
			if err := run.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			err := run.Wait()
			if sig != syscall.SIGKILL {
				if code := run.ProcessState.ExitCode(); code != 130 {
					t.Errorf("got exit status %d (%v), want 130: %s", code, err, stderr.String())
				}
				checkKept(t, out)
			}
			brokertest.UntilMarked(t, mark, "nothing outlives the run", func(ps []string) bool { return len(ps) == 0 })
			mounts, err := os.ReadFile("/proc/self/mountinfo")
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(mounts), "queuelab") {
				t.Errorf("a mount was left:\n%s", mounts)
			}
		})
	}
}

func TestWhoStopsReadingEndsTheRun(t *testing.T) {
	t.Parallel()
	brokertest.Need(t, "redis")
	bin, err := buildBoth()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mark := "QUEUELAB_KILL_TEST=" + strconv.FormatUint(rand.Uint64(), 36)
	for _, args := range []string{"learn --all --no-ask", "list"} {
		run := exec.Command(filepath.Join(bin, "queuelab"), strings.Fields(args)...)
		run.Env = append(os.Environ(), mark, "TMPDIR="+dir)
		var stderr bytes.Buffer
		run.Stderr = &stderr
		out, err := run.StdoutPipe()
		if err == nil {
			err = run.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if args != "list" { // which is written before anybody could read it
			if _, err := out.Read(make([]byte, 1)); err != nil {
				t.Errorf("%s: the first byte: %v", args, err)
			}
		}
		out.Close()
		err = run.Wait()
		if code := run.ProcessState.ExitCode(); code != 128+int(syscall.SIGPIPE) {
			t.Errorf("%s: got exit status %d (%v), want 141: %s", args, code, err, stderr.String())
		}
		brokertest.UntilMarked(t, mark, "nothing outlives "+args, func(ps []string) bool { return len(ps) == 0 })
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", args, left, err)
		}
	}
}

// checkKept asserts that an interrupted run kept what was finished, and said
// that it is not all.
func checkKept(t *testing.T, out string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(out, "result.json"))
	if err != nil {
		t.Errorf("an interrupted run left no result: %v", err)
		return
	}
	var r trial.Result
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Errorf("an interrupted run left a broken result: %v", err)
	}
	if r.Run.Complete {
		t.Error("an interrupted run calls itself complete")
	}
}
