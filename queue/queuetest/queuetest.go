// Package queuetest is the conformance suite: a queue is done when Run passes
// on it, once per setting.
//
// The suite believes nothing. It tests every capability that the queue claims
// and, where that can be observed, the absence of every capability that it
// does not claim: a claim too few misleads the reader of a table as much as a
// claim too many. It never retries a publish and never hides a duplicate.
package queuetest

import (
	"context"
	"fmt"
	"hash/crc32"
	"runtime"
	"strconv"
	"testing"
	"time"

	"queuelab/queue"
)

// Harness is what a backend gives to the suite.
type Harness struct {
	// Open opens the queue of that name: a second Open of one name is a second
	// handle on the same queue, where Capabilities.Shared. Extra parameters
	// ("group=g2") are added to the URL. The suite closes what it opens, and
	// deletes the queue. A bounded queue must hold at least 128 messages, and one
	// that drops its oldest fewer than 2000 as well.
	Open func(t testing.TB, name string, params ...string) queue.Queue
	// Crash kills the broker with SIGKILL and restarts it on the same data and
	// port, and returns once it answers. Nil: there is no broker.
	Crash func(t testing.TB)
	// Redelivery bounds how long an abandoned message may take to come again.
	Redelivery time.Duration

	// OpenErr opens a queue with these parameters, closes it if that succeeds,
	// and returns the error. Nil skips the cases about wrong parameters.
	OpenErr func(params ...string) error
	// Freeze stops the broker without killing it (SIGSTOP); what it returns
	// lets the broker go on. Nil skips the cases that need it: they tell an
	// answer of the broker from a successful write to a socket.
	Freeze func(t testing.TB) (thaw func())
	// Script runs a script on the queue's server that enqueues as it says, with
	// these arguments. Nil: the queue is no queue.ScriptEnqueuer.
	Script func(t testing.TB, how queue.ScriptEnqueue, args ...any) error
	// Arrival bounds how long a message may take to reach a consumer that
	// waits for it, and how long opening and closing may take. Default 15 s.
	Arrival time.Duration
}

// need is a hook of the harness without which a case cannot run.
type need int

const (
	nothingElse need = iota
	openErr
	crash
	freeze
)

type testCase struct {
	name  string // a statement that holds when the case passes
	when  func(queue.Capabilities) bool
	needs need
	run   func(*env)
}

// Run runs every case that the queue's capabilities ask for. Cases that touch
// the broker as a whole run alone, the others in parallel.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.Arrival == 0 {
		h.Arrival = 15 * time.Second
	}
	caps := capabilitiesOf(t, h)
	var alone, together []testCase
	for _, c := range casesFor(caps) {
		if c.when != nil && !c.when(caps) {
			continue
		}
		if c.needs == crash || c.needs == freeze {
			alone = append(alone, c)
		} else {
			together = append(together, c)
		}
	}
	// The group makes Run wait for the parallel cases, which would otherwise
	// start only after it has returned.
	t.Run("together", func(t *testing.T) {
		for _, c := range together {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				runCase(t, h, caps, c)
			})
		}
	})
	for _, c := range alone {
		t.Run(c.name, func(t *testing.T) { runCase(t, h, caps, c) })
	}
}

func casesFor(caps queue.Capabilities) []testCase {
	if caps.Skips {
		return skipCases()
	}
	return everyCase()
}

func everyCase() []testCase {
	var cs []testCase
	cs = append(cs, flowCases()...)
	cs = append(cs, settleCases()...)
	cs = append(cs, closeCases()...)
	cs = append(cs, claimCases()...)
	cs = append(cs, shareCases()...)
	cs = append(cs, reachCases()...)
	cs = append(cs, scriptCases()...)
	return append(cs, faultCases()...)
}

func capabilitiesOf(t *testing.T, h Harness) queue.Capabilities {
	t.Helper()
	e := newEnv(t, h, queue.Capabilities{}, "capabilities")
	return e.open().Capabilities()
}

func runCase(t *testing.T, h Harness, caps queue.Capabilities, c testCase) {
	switch {
	case c.needs == openErr && h.OpenErr == nil:
		t.Skip("the harness has no OpenErr")
	case c.needs == crash && h.Crash == nil:
		t.Skip("the harness has no Crash: there is no broker to kill")
	case c.needs == freeze && h.Freeze == nil:
		t.Skip("the harness has no Freeze")
	}
	e := newEnv(t, h, caps, c.name)
	// The case runs in a goroutine of its own, so that a queue that hangs for
	// ever is a failure of this case and not the end of the test binary.
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.run(e)
	}()
	limit := max(8*h.Arrival+8*h.Redelivery, 10*time.Second)
	select {
	case <-done:
	case <-time.After(limit):
		buf := make([]byte, 1<<20)
		t.Errorf("the case hangs: not done after %v; all goroutines:\n%s", limit, buf[:runtime.Stack(buf, true)])
		e.cancel()
		e.closeAll()
		select {
		case <-done:
		case <-time.After(h.Arrival):
		}
	}
}

// newEnv makes the surroundings of one case, with a queue name of its own.
func newEnv(t *testing.T, h Harness, caps queue.Capabilities, caseName string) *env {
	ctx, cancel := context.WithCancel(context.Background())
	e := &env{
		TB: t, h: h, caps: caps, ctx: ctx, cancel: cancel,
		// Short, since brokers limit names, and unique over runs, since a run
		// that was killed leaves its queues behind.
		name:   fmt.Sprintf("qt-%08x-%s", crc32.ChecksumIEEE([]byte(t.Name())), strconv.FormatInt(time.Now().UnixNano(), 36)),
		quiet:  200 * time.Millisecond,
		prompt: min(3*time.Second, h.Arrival),
	}
	t.Cleanup(func() {
		e.deleteAll()
		e.closeAll()
		cancel()
	})
	return e
}
