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
	t.Run("together", func(t *testing.T) {
		for name, query := range map[string]string{"prefetch": "prefetch=100", "maxlen": "maxlen=500"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				h := backend.Harness(brokertest.Start(t, "redis", "no-persistence"), "claim=1s&"+query, 2*time.Second)
				h.Crash, h.Freeze = nil, nil // the other settings do that
				queuetest.Run(t, h)
			})
		}
		t.Run("no-ack", func(t *testing.T) {
			t.Parallel() // nobody else is on this server yet
			queuetest.Run(t, backend.Harness(brokertest.Start(t, "redis", "aof-no"), "claim=1s&noack=true", time.Second))
		})
	})
	for _, setting := range []string{"no-persistence", "rdb", "aof-no", "aof-everysec", "aof-always"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel() // each has a server of its own
			queuetest.Run(t, backend.Harness(brokertest.Start(t, "redis", setting), "claim=1s", 2*time.Second))
		})
	}
}
