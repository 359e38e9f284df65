package brokertest

import (
	"os"
	"testing"

	"queuelab/bench/broker"
)

// Need skips the test where a broker of that kind cannot be had, with the
// reason, and fails it where CI=true. It is for tests that start their own.
func Need(t testing.TB, kind string) {
	t.Helper()
	if _, err := broker.Available(t.Context(), kind); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}
