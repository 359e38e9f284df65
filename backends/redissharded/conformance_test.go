package redissharded_test

import (
	"testing"
	"time"

	"queuelab/backends/internal/redistest"
	"queuelab/backends/redissharded"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue/queuetest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

var backend = redistest.Backend{Scheme: "redis+sharded", Open: redissharded.Open}

func TestConformance(t *testing.T) {
	queuetest.Run(t, backend.Harness(brokertest.Start(t, "redis", "aof-everysec"), "claim=1s", 2*time.Second))
}
