package node

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// PID is its process id.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Gone reports whether it has ended.
func (c *Child) Gone() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// Exited is closed once it has ended.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// Signal sends it a signal, and returns once the kernel shows that a stop or a
// continue was heeded, or once a SIGKILL has ended it.
func (c *Child) Signal(sig os.Signal) error {
	if sig == syscall.SIGKILL {
		c.Kill()
		return nil
	}
	pid := c.cmd.Process.Pid
	if err := c.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("signal process %d: %w", pid, err)
	}
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		stopped, known := stands(pid)
		if !known || sig != syscall.SIGSTOP && sig != syscall.SIGCONT || stopped == (sig == syscall.SIGSTOP) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d did not heed %v within 5s", pid, sig)
		}
	}
}

// stands reports whether the kernel shows a process as stopped; known is false
// where it does not tell.
func stands(pid int) (stopped, known bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false, false
	}
	_, rest, ok := strings.Cut(string(stat), ") ") // the name before it may hold anything
	return ok && (rest[0] == 'T' || rest[0] == 't'), ok && rest != ""
}
