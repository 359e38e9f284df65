package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

// client is the command's end of a supervisor.
type client struct {
	cmd      *exec.Cmd
	requests *os.File
	dir      string
	ended    func(how string) // called when the broker ends unasked

	mu      sync.Mutex
	lastID  int
	waiting map[int]chan answer
	gone    bool          // the supervisor's replies have ended
	done    chan struct{} // closed once the supervisor process was waited for
	waitErr error
}

// answer is a reply, or why there is none.
type answer struct {
	reply
	err error
}

// errSupervisorGone is the answer to everything after a supervisor's end.
var errSupervisorGone = errors.New("the broker's supervisor is gone, and the broker with it")

// startSupervisor returns once the supervisor has made its directory.
func startSupervisor(ctx context.Context, kind string, ended func(string)) (*client, error) {
	self, err := selfPath()
	if err != nil {
		return nil, err
	}
	theirRequests, requests, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	replies, theirReplies, err := os.Pipe()
	if err != nil {
		theirRequests.Close()
		requests.Close()
		return nil, err
	}
	c := &client{requests: requests, ended: ended, waiting: map[int]chan answer{}, done: make(chan struct{})}
	c.cmd = exec.Command(self, supervisorWord, kind)
	c.cmd.Env = append(os.Environ(), startingVar+"=1")
	c.cmd.ExtraFiles = []*os.File{theirRequests, theirReplies}
	c.cmd.Stderr = os.Stderr // where a panic would be seen
	c.cmd.SysProcAttr = detached()
	err = c.cmd.Start()
	theirRequests.Close()
	theirReplies.Close()
	if err != nil {
		requests.Close()
		replies.Close()
		return nil, fmt.Errorf("start the supervisor: %w", err)
	}

	hello := make(chan reply, 1)
	go c.read(replies, hello)
	// A program without Init would go about its own business here.
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	select {
	case r := <-hello:
		if r.Dir == "" {
			_ = c.close() // it has no directory
			if r.Err == "" {
				r.Err = "it ended at once"
			}
			return nil, fmt.Errorf("start the supervisor: %s", r.Err)
		}
		c.dir = r.Dir
		return c, nil
	case <-ctx.Done():
		err := fmt.Errorf("start the supervisor: it did not report: %w", ctx.Err())
		return nil, errors.Join(err, c.cmd.Process.Kill(), c.close())
	}
}

// read hands replies to those who wait for them until the supervisor ends.
func (c *client) read(replies *os.File, hello chan<- reply) {
	defer close(c.done)
	d := json.NewDecoder(replies)
	var r reply
	if d.Decode(&r) != nil {
		r = reply{}
	}
	hello <- r
	for {
		r = reply{}
		if d.Decode(&r) != nil {
			break
		}
		if r.ID == 0 {
			c.ended(r.Ended)
			continue
		}
		a := answer{reply: r}
		if r.Err != "" {
			a.err = errors.New(r.Err)
		}
		c.mu.Lock()
		if w, ok := c.waiting[r.ID]; ok {
			w <- a
			delete(c.waiting, r.ID)
		}
		c.mu.Unlock()
	}
	c.mu.Lock()
	c.gone = true
	for _, w := range c.waiting {
		w <- answer{err: errSupervisorGone}
	}
	c.waiting = nil
	c.mu.Unlock()
	c.ended("its supervisor is gone")
	replies.Close()
	c.waitErr = c.cmd.Wait()
}

// ask has the supervisor do something with commands; see exchange.
func (c *client) ask(ctx context.Context, op string, cs ...command) error {
	_, err := c.exchange(ctx, request{Op: op, Commands: cs})
	return err
}

// exchange sends one request and waits for its answer, or for ctx: then what was
// asked for may still happen.
func (c *client) exchange(ctx context.Context, q request) (reply, error) {
	got := make(chan answer, 1)
	c.mu.Lock()
	if c.gone {
		c.mu.Unlock()
		return reply{}, errSupervisorGone
	}
	c.lastID++
	q.ID = c.lastID
	c.waiting[q.ID] = got
	err := json.NewEncoder(c.requests).Encode(q)
	c.mu.Unlock()
	if err != nil {
		return reply{}, fmt.Errorf("%w: %w", errSupervisorGone, err)
	}
	select {
	case a := <-got:
		return a.reply, a.err
	case <-ctx.Done():
		return reply{}, ctx.Err()
	}
}

// close ends the supervisor and everything below it. It returns once all are
// dead and the directory is gone.
func (c *client) close() error {
	c.requests.Close()
	<-c.done
	// A supervisor that was killed could not clear up.
	if c.dir != "" {
		if err := os.RemoveAll(c.dir); err != nil {
			return fmt.Errorf("remove the broker's directory: %w", err)
		}
	}
	return nil
}

// isGone reports whether the supervisor has ended. While it has not, its pid is
// its own: nobody has waited for it.
func (c *client) isGone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}
