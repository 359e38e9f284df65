package trial

import (
	"bufio"
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

// guarded is a guarded program seen from the harness.
type guarded struct {
	guard  *exec.Cmd
	stdin  io.WriteCloser
	pid    int
	exited chan struct{}
	state  string // how the program ended, once exited is closed
	stderr *tail
}

// startGuarded starts a program under a guard, with env as its environment.
func startGuarded(env []string, argv ...string) (*guarded, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the harness' own program: %w", err)
	}
	g := &guarded{guard: exec.Command(self, append([]string{"guard", "--"}, argv...)...), exited: make(chan struct{}), stderr: &tail{}}
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
		g.stop()
		return nil, fmt.Errorf("start %s: no process id from its guard: %w: %s", argv[0], err, g.stderr)
	}
	return g, nil
}

// kill sends SIGKILL to the program itself and confirms that it died of it.
func (g *guarded) kill() error {
	if err := syscall.Kill(g.pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill the service: %w", err)
	}
	<-g.exited
	if g.state != "signal: killed" {
		return fmt.Errorf("the service did not die of SIGKILL: %s", g.state)
	}
	return nil
}

// stop ends the program, however it is.
func (g *guarded) stop() {
	g.stdin.Close()
	<-g.exited
}

func (g *guarded) ended() bool {
	select {
	case <-g.exited:
		return true
	default:
		return false
	}
}
