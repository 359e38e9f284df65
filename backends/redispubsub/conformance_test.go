package redispubsub_test

import (
	"testing"
	"time"

	"queuelab/backends/internal/redistest"
	"queuelab/backends/redispubsub"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue/queuetest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

var backend = redistest.Backend{Scheme: "redis+pubsub", Open: redispubsub.Open}

func TestConformance(t *testing.T) {
	queuetest.Run(t, backend.Harness(brokertest.Start(t, "redis", "no-persistence"), "", 200*time.Millisecond))
}

func TestConformanceByPattern(t *testing.T) {
	h := backend.Harness(brokertest.Start(t, "redis", "no-persistence"), "route=key", 200*time.Millisecond)
	h.Crash, h.Freeze = nil, nil // the other one does that
	queuetest.Run(t, h)
}
