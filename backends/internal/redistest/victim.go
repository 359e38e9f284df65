package redistest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// victimURL makes a test binary a consumer of that queue, and nothing else.
const victimURL = "QUEUELAB_VICTIM_URL"

// Main is the body of the TestMain of a package that has victims.
func (b Backend) Main(m *testing.M) {
	if raw := os.Getenv(victimURL); raw != "" {
		if err := b.consume(raw); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	Main(m)
}

// consume receives and settles nothing, and prints the id of each message, until
// whoever started the process is gone.
func (b Backend) consume(raw string) error {
	q, err := b.Try(raw)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	c, err := q.Consumer(ctx)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for ctx.Err() == nil {
		ds, err := c.Receive(ctx, 10)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		for _, d := range ds {
			fmt.Println(d.ID)
		}
	}
	return nil
}

// Victim is a consumer in a process of its own, which settles nothing.
type Victim struct {
	cmd   *exec.Cmd
	stdin io.Closer
	lines chan string
	dead  bool
}

// Victim starts one, and returns once it sees messages. It is killed at the test's
// end.
func (b Backend) Victim(t testing.TB, raw string) *Victim {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	v := &Victim{cmd: exec.Command(exe), lines: make(chan string, 100)}
	v.cmd.Env = append(os.Environ(), victimURL+"="+raw)
	v.cmd.Stderr = os.Stderr
	stdout, err := v.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if v.stdin, err = v.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Kill)
	go func() {
		defer close(v.lines)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			v.lines <- s.Text()
		}
	}()
	v.next(t)
	return v
}

// Pid is the process id, which is part of the consumer's name.
func (v *Victim) Pid() int { return v.cmd.Process.Pid }

// Receives waits until the victim has received so many more, and returns their ids.
func (v *Victim) Receives(t testing.TB, n int) []string {
	t.Helper()
	var ids []string
	for range n {
		ids = append(ids, v.next(t))
	}
	return ids
}

func (v *Victim) next(t testing.TB) string {
	t.Helper()
	select {
	case line, ok := <-v.lines:
		if !ok {
			t.Fatal("the victim has ended")
		}
		return line
	case <-time.After(10 * time.Second):
		t.Fatal("the victim says nothing for 10 seconds")
	}
	return ""
}

// Kill kills it with SIGKILL, and returns when it is dead.
func (v *Victim) Kill() {
	if v.dead {
		return
	}
	v.dead = true
	_ = v.cmd.Process.Kill() // or it is dead already, which Wait waits for
	for range v.lines {      // to its end: Wait would close the pipe under the reader
	}
	_ = v.cmd.Wait() // killed, as it should be
	v.stdin.Close()
}
