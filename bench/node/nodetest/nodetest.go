// Package nodetest lets a test binary be what the harness starts: nodes, guards,
// and the supervisors of brokers.
package nodetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"queuelab/bench/broker/brokertest"
	"queuelab/bench/node"
)

// Main is the body of a TestMain: brokertest.Main, for tests that also start
// nodes and services.
func Main(m *testing.M, ignore ...goleak.Option) {
	if len(os.Args) > 1 && (os.Args[1] == "node" || os.Args[1] == "guard") {
		var err error
		if os.Args[1] == "node" {
			err = node.Main(context.Background(), os.Stdin, os.Stdout)
		} else {
			err = node.Guard(os.Args[3:], os.Stdin, os.Stdout)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// A race detector sleeps for a second at the end of each process, and there are
	// many.
	if os.Getenv("GORACE") == "" {
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // costs seconds at worst
	}
	brokertest.Main(m, ignore...)
}

// Seckill returns a function that builds the service on its first call and says
// where it is. Main removes it.
func Seckill() func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp("", "queuelab-build-")
		if err != nil {
			return "", err
		}
		brokertest.AtEnd(func() { os.RemoveAll(dir) })
		path := filepath.Join(dir, "seckill")
		if msg, err := exec.Command("go", "build", "-o", path, "queuelab/app").CombinedOutput(); err != nil {
			return "", fmt.Errorf("build the service: %w: %s", err, msg)
		}
		return path, nil
	})
}
