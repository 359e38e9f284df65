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
