package redisstreams_test

import (
	"testing"
	"time"

	"queuelab/backends/internal/redistest"
	"queuelab/backends/redisstreams"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue/queuetest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

var backend = redistest.Backend{Scheme: "redis+streams", Open: redisstreams.Open}

func TestConformance(t *testing.T) {
	t.Run("prefetch", func(t *testing.T) {
		h := backend.Harness(brokertest.Start(t, "redis", "no-persistence"), "claim=1s&prefetch=100", 2*time.Second)
		h.Crash, h.Freeze = nil, nil // the other settings do that
		queuetest.Run(t, h)
	})
	for _, setting := range []string{"no-persistence", "aof-everysec", "aof-always"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel() // each has a server of its own
			queuetest.Run(t, backend.Harness(brokertest.Start(t, "redis", setting), "claim=1s", 2*time.Second))
		})
	}
}
