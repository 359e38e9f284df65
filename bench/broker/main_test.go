package broker_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
)

func TestMain(m *testing.M) {
	broker.Init()
	if kind := os.Getenv(lifeVar); kind != "" {
		live(kind)
	}
	brokertest.Main(m)
}

// readInt returns the number in a file, 0 if there is none.
func readInt(path string) int {
	b, _ := os.ReadFile(path)
	n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return n
}

// commonTemp makes a temporary directory that the user postgres can reach too.
func commonTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "outlive-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
