package storage

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childVar makes this test binary a process that uses the file system: one that
// maps a file into memory must not be the one that serves it.
const childVar = "QUEUELAB_STORAGE_TEST_CHILD"

func TestMain(m *testing.M) {
	if what := os.Getenv(childVar); what != "" {
		if err := child(what, os.Args[1]); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
