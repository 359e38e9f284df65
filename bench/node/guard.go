package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// Guard runs a program that does not watch whether the harness lives, such as
// the service: it prints the program's process id, and kills it when in ends.
// It is the hidden command "guard".
func Guard(argv []string, in io.Reader, out io.Writer) error {
	if len(argv) == 0 {
		return errors.New("guard: no program given")
	}
	// Pdeathsig follows the thread that starts the child: this one stays.
	runtime.LockOSThread()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = guardAttr()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	fmt.Fprintln(out, cmd.Process.Pid)
	go func() {
		_, _ = io.Copy(io.Discard, in) // its end is all that matters
		cmd.Process.Kill()
	}()
	err := cmd.Wait()
	var ee *exec.ExitError
	if errors.As(err, &ee) {
		fmt.Fprintln(out, ee.ProcessState.String())
		return nil
	}
	fmt.Fprintln(out, "exited")
	return err
}

// Guarded is a guarded program seen from the harness.
type Guarded struct {
	guard  *exec.Cmd
	stdin  io.WriteCloser
	pid    int
	exited chan struct{}
	state  string // how the program ended, once exited is closed
	stderr *tail
}

// StartGuarded starts a program under a guard, with env as its environment.
func StartGuarded(env []string, argv ...string) (*Guarded, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the harness' own program: %w", err)
	}
	g := &Guarded{guard: exec.Command(self, append([]string{"guard", "--"}, argv...)...), exited: make(chan struct{}), stderr: &tail{}}
	g.guard.Env, g.guard.Stderr = env, g.stderr
	g.guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if g.stdin, err = g.guard.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	out, err := g.guard.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	if err := g.guard.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	if err == nil {
		g.pid, err = strconv.Atoi(strings.TrimSpace(first))
	}
	go func() {
		rest, _ := io.ReadAll(lines) // how it ended, or nothing
		g.state = strings.TrimSpace(string(rest))
		_ = g.guard.Wait() // what it said is the answer
		close(g.exited)
	}()
	if err != nil {
		g.Stop()
		return nil, fmt.Errorf("start %s: no process id from its guard: %w: %s", argv[0], err, g.stderr)
	}
	return g, nil
}

// Kill sends SIGKILL to the program itself and confirms that it died of it.
func (g *Guarded) Kill() error {
	if err := syscall.Kill(g.pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill the service: %w", err)
	}
	<-g.exited
	if g.state != "signal: killed" {
		return fmt.Errorf("the service did not die of SIGKILL: %s", g.state)
	}
	return nil
}

// Terminate asks the program to end, with SIGTERM, waits until it has, and tells
// how it ended: "exited" is in order.
func (g *Guarded) Terminate(ctx context.Context) (string, error) {
	if err := syscall.Kill(g.pid, syscall.SIGTERM); err != nil {
		return "", fmt.Errorf("ask the service to end: %w", err)
	}
	select {
	case <-g.exited:
		return g.state, nil
	case <-ctx.Done():
		return "", fmt.Errorf("the service did not end: %w", ctx.Err())
	}
}

// Said is how the program ended, once it has, and the end of what it wrote to
// standard error.
func (g *Guarded) Said() string { return fmt.Sprintf("(%s): %s", g.state, g.stderr) }

// Stop ends the program, however it is.
func (g *Guarded) Stop() {
	g.stdin.Close()
	<-g.exited
}

// Ended reports whether the program has.
func (g *Guarded) Ended() bool {
	select {
	case <-g.exited:
		return true
	default:
		return false
	}
}
