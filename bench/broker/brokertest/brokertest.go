// Package brokertest shares real brokers among the tests of one test binary.
package brokertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"queuelab/bench/broker"
)

// pool is what Main stops. There is one for each test binary, since a binary
// has one TestMain.
var pool struct {
	sync.Mutex
	entries map[[2]string]*entry
	atEnd   []func()
}

type entry struct {
	once   sync.Once
	broker *broker.Broker
	err    error
}

// Main is the body of a TestMain: it lets the test binary be a supervisor, runs
// the tests, stops the brokers, does what AtEnd asked for, fails when goroutines are left, and exits.
func Main(m *testing.M, ignore ...goleak.Option) {
	broker.Init()
	code := m.Run()
	for _, e := range pool.entries { // no test runs any more
		if e.broker == nil {
			continue
		}
		if err := e.broker.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	for _, f := range pool.atEnd {
		f()
	}
	err := goleak.Find(ignore...)
	for range 3 { // go-redis looks once a second whether its pool is closed
		if err == nil {
			break
		}
		err = goleak.Find(ignore...) // which waits for half a second itself
	}
	if code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, "goroutines are left after the tests:", err)
		code = 1
	}
	os.Exit(code)
}

// AtEnd has Main call f once all tests of this binary have run: for what they
// share, such as a program that is built once.
func AtEnd(f func()) {
	pool.Lock()
	defer pool.Unlock()
	pool.atEnd = append(pool.atEnd, f)
}

// Start returns this test binary's broker of that kind and setting, and starts
// it on the first call. It is stopped by Main. One that a test has killed is
// started again.
//
// Where the broker cannot be had the test is skipped, with the reason; where
// CI=true it fails.
func Start(t testing.TB, kind, setting string) *broker.Broker {
	t.Helper()
	pool.Lock()
	if pool.entries == nil {
		pool.entries = map[[2]string]*entry{}
	}
	e := pool.entries[[2]string{kind, setting}]
	if e == nil {
		e = &entry{}
		pool.entries[[2]string{kind, setting}] = e
	}
	pool.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	e.once.Do(func() { e.broker, e.err = broker.Start(ctx, broker.Options{Kind: kind, Setting: setting}) })
	if errors.Is(e.err, broker.ErrUnavailable) && os.Getenv("CI") != "true" {
		t.Skip(e.err)
	}
	if e.err != nil {
		t.Fatal(e.err)
	}
	if e.broker.Ready(ctx) != nil {
		if err := errors.Join(e.broker.Kill(ctx), e.broker.Restart(ctx)); err != nil {
			t.Fatalf("the shared broker is down: %v", err)
		}
	}
	return e.broker
}
