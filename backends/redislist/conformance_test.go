package redislist_test

import (
	"testing"
	"time"

	"queuelab/backends/internal/redistest"
	"queuelab/backends/redislist"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue/queuetest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

var backend = redistest.Backend{Scheme: "redis+list", Open: redislist.Open}

func TestConformance(t *testing.T) {
	t.Run("batch", func(t *testing.T) {
		h := backend.Harness(brokertest.Start(t, "redis", "no-persistence"), "batch=100", 200*time.Millisecond)
		h.Crash, h.Freeze = nil, nil // the other settings do that
		queuetest.Run(t, h)
	})
	t.Run("client-retries", func(t *testing.T) {
		h := backend.Harness(brokertest.Start(t, "redis", "no-persistence"), "retries=3", 200*time.Millisecond)
		h.Crash, h.Freeze = nil, nil
		queuetest.Run(t, h)
	})
	for _, setting := range []string{"no-persistence", "rdb", "aof-no", "aof-everysec", "aof-always"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel() // each has a server of its own
			queuetest.Run(t, backend.Harness(brokertest.Start(t, "redis", setting), "", 200*time.Millisecond))
		})
	}
}
