package node

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// Child is a node seen from the harness.
type Child struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	events chan Event // closed when the node's output ends
	exited chan struct{}
	err    error // of Wait, once exited is closed
	stderr *tail
}

// Start starts a node and waits until it is ready.
func Start(ctx context.Context, cfg Config) (*Child, Event, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, Event{}, fmt.Errorf("find the harness' own program: %w", err)
	}
	c := &Child{cmd: exec.Command(self, "node"), events: make(chan Event, 16), exited: make(chan struct{}), stderr: &tail{}}
	c.cmd.Stderr = c.stderr
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, Event{}, fmt.Errorf("start a node: %w", err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, Event{}, fmt.Errorf("start a node: %w", err)
	}
	// A session of its own: Ctrl-C reaches the harness, which stops its nodes
	// in order; when the harness dies the node's input ends.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.cmd.Start(); err != nil {
		return nil, Event{}, fmt.Errorf("start a node: %w", err)
	}
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var e Event
			if json.Unmarshal(lines.Bytes(), &e) == nil {
				c.events <- e
			}
		}
		close(c.events)
		c.err = c.cmd.Wait()
		close(c.exited)
	}()
	if err := json.NewEncoder(c.stdin).Encode(cfg); err != nil {
		c.Kill()
		return nil, Event{}, fmt.Errorf("configure a node: %w", err)
	}
	ready, err := c.Await(ctx, "ready")
	if err != nil {
		c.Kill()
		return nil, Event{}, err
	}
	return c, ready, nil
}

// Await waits for one kind of event.
func (c *Child) Await(ctx context.Context, event string) (Event, error) {
	for {
		select {
		case <-ctx.Done():
			return Event{}, fmt.Errorf("wait for a node to be %s: %w", event, ctx.Err())
		case e, open := <-c.events:
			switch {
			case !open:
				<-c.exited
				return Event{}, fmt.Errorf("a node ended while it should become %s: %w: %s", event, c.failure(), c.stderr)
			case e.Event == "error":
				return Event{}, fmt.Errorf("node: %s", e.Error)
			case e.Event == event:
				return e, nil
			}
		}
	}
}

// Next waits for whatever it says next. It is not to be mixed with Await and Stop,
// which pass over what they do not wait for. io.EOF means that it has ended: see
// Ended.
func (c *Child) Next(ctx context.Context) (Event, error) {
	select {
	case <-ctx.Done():
		return Event{}, ctx.Err()
	case e, open := <-c.events:
		if !open {
			return Event{}, io.EOF
		}
		return e, nil
	}
}

// Ended waits for its end, and says in words how that was.
func (c *Child) Ended() string {
	<-c.exited
	return strings.TrimSuffix(fmt.Sprintf("%v: %s", c.failure(), c.stderr), ": ")
}

// Tell gives it a command: "produce", "drain" and "backlog" are answered by the
// events "produced", "drained" and "backlog"; "quiet" ends what "produce" began, in
// order; "delay 50ms" sets Consume.HandleDelay and is not answered; "stop" is
// Stop's.
func (c *Child) Tell(command string) error {
	if _, err := io.WriteString(c.stdin, command+"\n"); err != nil {
		return fmt.Errorf("tell a node to %s: %w", command, err)
	}
	return nil
}

// Stop lets the node finish what it has in hand.
func (c *Child) Stop(ctx context.Context) error {
	if err := c.Tell("stop"); err != nil {
		return err
	}
	_, err := c.Await(ctx, "stopped")
	c.stdin.Close()
	if err != nil {
		c.Kill()
		return err
	}
	select {
	case <-c.exited:
	case <-ctx.Done():
		c.Kill()
	}
	return nil
}

// Kill ends the node with SIGKILL, if it still runs, and waits for its death.
func (c *Child) Kill() {
	c.stdin.Close()
	c.cmd.Process.Kill() // fails only when it has ended already
	go func() {
		for range c.events { // a full channel must not keep the reader from its end
		}
	}()
	<-c.exited
}

// KilledBySIGKILL waits for the node's end and confirms how it died.
func (c *Child) KilledBySIGKILL(ctx context.Context) error {
	for {
		select {
		case e, open := <-c.events:
			if open && e.Event == "error" {
				return fmt.Errorf("node: %s", e.Error)
			}
			if open {
				continue
			}
			<-c.exited
		case <-ctx.Done():
			return fmt.Errorf("the node did not reach its crash point: %w", ctx.Err())
		}
		var ee *exec.ExitError
		if errors.As(c.err, &ee) {
			if ws, ok := ee.Sys().(syscall.WaitStatus); ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL {
				return nil
			}
		}
		return fmt.Errorf("the node ended without SIGKILL: %w: %s", c.failure(), c.stderr)
	}
}

// failure is why the node ended; it is asked for once the node has.
func (c *Child) failure() error {
	if c.err == nil {
		return errors.New("exit status 0")
	}
	return c.err
}

// tail keeps the end of what a child says, for errors.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - 2000; over > 0 {
		t.buf = t.buf[over:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.buf))
}
