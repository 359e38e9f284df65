package brokertest

import (
	"os"
	"os/exec"
	"testing"

	"queuelab/bench/broker"
)

// Need skips the test where a broker of that kind cannot be had, with the
// reason, and fails it where CI=true. It is for tests that start their own.
func Need(t testing.TB, kind string) {
	t.Helper()
	if _, err := broker.Available(t.Context(), kind); err != nil {
		Lacks(t, err)
	}
}

// NeedProgram does the same for a program on the PATH.
func NeedProgram(t testing.TB, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		Lacks(t, err)
	}
}

// Lacks ends a test that cannot be run here: on a laptop it is skipped, with the
// reason, and where CI=true it fails.
func Lacks(t testing.TB, reason any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}
