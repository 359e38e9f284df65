//go:build !linux

package broker

import (
	"context"
	"fmt"
	"os"
)

type native struct{ host }

// newNative is for Linux only, where a process can adopt the orphans of its
// descendants: brokers run in containers elsewhere.
func newNative(context.Context, kind, string) (*native, error) {
	return nil, unavailable("brokers run natively on Linux only", "start Docker, and they run in containers")
}

func supervise(string) int {
	fmt.Fprintln(os.Stderr, "queuelab: supervisors are for Linux")
	return 2
}

func makeKafkaArchive(context.Context, kind) {}
