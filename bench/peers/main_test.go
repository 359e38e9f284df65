package peers

import (
	"context"
	"fmt"
	"os"
	"testing"

	"queuelab/bench/broker/brokertest"
	"queuelab/bench/node"
)

// TestMain lets the test binary be what the harness starts: guards, sides, the
// supervisors of brokers, and the programs that the tests of processes need.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		var err error
		switch os.Args[1] {
		case "guard":
			err = node.Guard(os.Args[3:], os.Stdin, os.Stdout)
		case SideCommand:
			err = Side(context.Background(), os.Stdout)
		case "run-a-side-and-die":
			err = runASide(os.Args[2])
		default:
			// A race detector sleeps for a second at the end of each process, and
			// there are many. What is set here is for the children.
			if os.Getenv("GORACE") == "" {
				os.Setenv("GORACE", "atexit_sleep_ms=0")
			}
			brokertest.Main(m)
			return
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	brokertest.Main(m)
}
