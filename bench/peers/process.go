package peers

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is one side of a pair, or what a side needs beside it.
type process struct {
	argv []string
	env  []string // added to our own
	omit []string // names of variables that it shall not inherit
	rate func(output string) (float64, error)
}

// endWithin is how long a process may take to die that was told to.
const endWithin = 10 * time.Second

// run runs a process to its end and returns all that it wrote. It runs under a
// guard, the hidden command of that name, in a session of its own: the guard
// kills it when ctx ends, when the deadline passes, and when we are killed. An
// error quotes the end of what was written.
func (p process) run(ctx context.Context, deadline time.Duration) (string, error) {
	name := filepath.Base(p.argv[0])
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the harness' own program: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	guard := exec.Command(self, append([]string{"guard", "--"}, p.argv...)...)
	guard.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(p.omit, name)
	}), p.env...)
	guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	output := &bounded{}
	guard.Stderr = output // where a guard leads all that its program writes
	hold, err := guard.StdinPipe()
	if err != nil {
		return "", fmt.Errorf("run %s: %w", name, err)
	}
	defer hold.Close()
	told, err := guard.StdoutPipe()
	if err != nil {
		return "", fmt.Errorf("run %s: %w", name, err)
	}
	if err := guard.Start(); err != nil {
		return "", fmt.Errorf("run %s: %w", name, err)
	}
	type ending struct {
		state string
		err   error
	}
	ended := make(chan ending, 1)
	go func() {
		state := ""
		for s := bufio.NewScanner(told); s.Scan(); { // its pid, then how it ended
			state = s.Text()
		}
		ended <- ending{state, guard.Wait()}
	}()
	var e ending
	select {
	case e = <-ended:
	case <-ctx.Done():
		hold.Close()
		select {
		case <-ended:
		case <-time.After(endWithin):
			_ = guard.Process.Kill() // the kernel then kills what it guards
			<-ended
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return "", fmt.Errorf("%s did not end within %v and was killed; it wrote:\n%s", name, deadline, output.end())
		}
		return "", ctx.Err()
	}
	switch {
	case output.overflown():
		return "", fmt.Errorf("%s wrote more than %d bytes, which end with:\n%s", name, most, output.end())
	case e.err != nil:
		return "", fmt.Errorf("%s: %w; it wrote:\n%s", name, e.err, output.end())
	case e.state != "exited":
		return "", fmt.Errorf("%s: %s; it wrote:\n%s", name, e.state, output.end())
	}
	return output.String(), nil
}

// measure runs a side and reads its rate.
func (p process) measure(ctx context.Context, deadline time.Duration) (float64, error) {
	out, err := p.run(ctx, deadline)
	if err != nil {
		return 0, err
	}
	rate, err := p.rate(out)
	if err != nil {
		return 0, fmt.Errorf("%s: %w; it wrote:\n%s", filepath.Base(p.argv[0]), err, quote(out))
	}
	return rate, nil
}

const most = 1 << 20 // bytes of a side's output

// bounded keeps a side's output, and its end where there is too much.
type bounded struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	lost bool
}

var _ io.Writer = (*bounded)(nil)

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf.Write(p)
	if b.buf.Len() > most {
		b.lost = true
		b.buf.Next(b.buf.Len() - most/2)
	}
	return len(p), nil
}

func (b *bounded) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *bounded) overflown() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost
}

func (b *bounded) end() string { return quote(b.String()) }

// quote is the beginning and the end of an output, indented to stand below an
// error.
func quote(out string) string {
	lines := linesOf(out)
	if len(lines) == 0 {
		return "  (nothing)"
	}
	const head, tail = 5, 8
	if cut := len(lines) - head - tail; cut > 0 {
		lines = slices.Concat(lines[:head], []string{fmt.Sprintf("… %d lines …", cut)}, lines[head+cut:])
	}
	for i, l := range lines {
		if len(l) > 300 {
			l = strings.ToValidUTF8(l[:300], "") + "…"
		}
		lines[i] = "  " + l
	}
	return strings.Join(lines, "\n")
}
