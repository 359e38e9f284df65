package nats

import (
	"testing"

	"queuelab/bench/broker/brokertest"
	"queuelab/queue/queuetest"
)

func TestSuite(t *testing.T) {
	t.Run("default", func(t *testing.T) {
		t.Parallel() // each has a server of its own
		b := brokertest.Start(t, "nats", "")
		t.Run("groups", func(t *testing.T) {
			h := harness(b, "ack-wait=2s&retention=interest&dedupe=1m")
			h.Crash, h.Freeze = nil, nil // the others do that
			queuetest.Run(t, h)
		})
		t.Run("work queue", func(t *testing.T) { queuetest.Run(t, harness(b, "ack-wait=2s")) })
	})
	t.Run("sync-always", func(t *testing.T) {
		t.Parallel()
		h := harness(brokertest.Start(t, "nats", "sync-always"), "ack-wait=2s")
		h.Freeze = nil // the work queue does that
		queuetest.Run(t, h)
	})
}
