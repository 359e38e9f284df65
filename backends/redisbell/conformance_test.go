package redisbell_test

import (
	"testing"
	"time"

	"queuelab/backends/internal/redistest"
	"queuelab/backends/redisbell"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue/queuetest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

var backend = redistest.Backend{Scheme: "redis+bell", Open: redisbell.Open}

func TestConformance(t *testing.T) {
	for name, at := range map[string]struct{ setting, query string }{
		"no poll": {"no-persistence", ""},
		"poll":    {"aof-everysec", "poll=200ms&batch=10"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each has a server of its own
			queuetest.Run(t, backend.Harness(brokertest.Start(t, "redis", at.setting), at.query, 200*time.Millisecond))
		})
	}
}
