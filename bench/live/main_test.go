package live

import (
	"context"
	"fmt"
	"os"
	"testing"

	"queuelab/bench/broker/brokertest"
	"queuelab/bench/node"
)

// TestMain lets the test binary be what the lab starts: its processes, and the
// supervisors of brokers.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "node" {
		if err := node.Main(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	brokertest.Main(m)
}
