//go:build unix

package broker_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/broker"
)

// fakeDocker is a docker command whose containers are a redis-server that runs
// on this machine. It notes what it was asked, without the project's options.
const fakeDocker = `#!/bin/sh
PATH=/usr/bin:/bin
state=STATE
case "$*" in "compose version"|info) exit 0;; esac
project=$3; file=$5; shift 5
echo "$*" >> $state/calls
echo "$project $file" > $state/project
alive() { [ -s $state/pid ] && grep -q '^State:.[^Z]' /proc/$(cat $state/pid)/status 2>/dev/null; }
case $1 in
create) echo "$QUEUELAB_REDIS_SETTING" > $state/setting ;;
start) rm -f $state/pid; redis-server $(dirname $file)/redis/$QUEUELAB_REDIS_SETTING.conf --port $QUEUELAB_REDIS_PORT \
  --bind 127.0.0.1 --dir $state --daemonize yes --pidfile $state/pid --logfile $state/log >/dev/null
  until [ -s $state/pid ]; do :; done ;;
ps) if alive; then echo c0ffee; fi ;;
kill|down) if alive; then kill -9 $(cat $state/pid); fi ;;
pause) kill -STOP $(cat $state/pid) ;;
unpause) kill -CONT $(cat $state/pid) ;;
logs) cat $state/log ;;
*) echo "unexpected: $*" >&2; exit 1 ;;
esac
`

// withFakeDocker makes a docker command the only program on the PATH.
func withFakeDocker(t *testing.T) (state string) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("the containers of the stand-in are redis-server: ", err)
	}
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("the stand-in reads /proc")
	}
	state, bin := t.TempDir(), t.TempDir()
	script := strings.ReplaceAll(fakeDocker, "STATE", state)
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	t.Cleanup(func() {
		if pid := readInt(filepath.Join(state, "pid")); pid != 0 {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return state
}

func TestContainerIsUsedWhereTheBrokerIsNotInstalled(t *testing.T) {
	state := withFakeDocker(t)
	ctx := within(t, time.Minute)
	var log bytes.Buffer
	b, err := broker.Start(ctx, broker.Options{Kind: "redis", Setting: "aof-always", Log: &log})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	s, err := b.Settings(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s["appendfsync"], "always"; got != want {
		t.Errorf("got appendfsync %q, want %q", got, want)
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
		up   bool
	}{
		{"kill", b.Kill, false},
		{"restart", b.Restart, true},
		{"pause", b.Pause, false},
		{"resume", b.Resume, true},
	} {
		if err := step.do(ctx); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		if err := b.Ready(short); (err == nil) != step.up {
			t.Errorf("after %s got readiness %v, want up %v", step.name, err, step.up)
		}
		cancel()
	}
	project, _ := os.ReadFile(filepath.Join(state, "project"))
	if !strings.HasPrefix(string(project), "queuelab-redis-") {
		t.Errorf("got project %q, want one of its own", project)
	}
	dir := filepath.Dir(strings.Fields(string(project))[1])
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v for the directory after Stop, want it gone", err)
	}
	calls, _ := os.ReadFile(filepath.Join(state, "calls"))
	var got []string
	for _, c := range strings.Split(strings.TrimSpace(string(calls)), "\n") {
		if !strings.HasPrefix(c, "ps ") { // as often as it likes
			got = append(got, c)
		}
	}
	want := []string{"create", "start", "kill --signal KILL", "start", "pause", "unpause", "down --volumes --timeout 0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls of docker compose (-want +got):\n%s", diff)
	}
}

func TestContainerThatEndsIsReportedWithItsLog(t *testing.T) {
	state := withFakeDocker(t)
	// A log file that is no file: redis-server ends at once.
	if err := os.Mkdir(filepath.Join(state, "appendonlydir"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "appendonlydir", "appendonly.aof.manifest"), []byte("nonsense\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := broker.Start(within(t, time.Minute), broker.Options{Kind: "redis"})
	if err == nil || !strings.Contains(err.Error(), "container ended") || !strings.Contains(err.Error(), "manifest") {
		t.Errorf("got %v, want an error that tells of the end and quotes the log", err)
	}
}

func TestMissingBrokerAndEngineAreOneSentenceWithARemedy(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := broker.Start(within(t, time.Minute), broker.Options{Kind: "redis"})
	if !errors.Is(err, broker.ErrUnavailable) {
		t.Fatalf("got %v, want ErrUnavailable", err)
	}
	for _, want := range []string{"redis-server is not installed", "make setup", "docker is not installed"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want it to say %q", err, want)
		}
	}
}

func TestContainerDoesNotOutliveTheCommand(t *testing.T) {
	state := withFakeDocker(t)
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), lifeVar+"=redis", "TMPDIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(out)
	for said.Scan() && said.Text() != "served" {
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	ctx := within(t, 20*time.Second)
	for {
		calls, _ := os.ReadFile(filepath.Join(state, "calls"))
		left, _ := os.ReadDir(dir)
		if strings.Contains(string(calls), "down --volumes") && len(left) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("got calls %q and %v left, want the project taken down", calls, left)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
