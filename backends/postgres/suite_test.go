package postgres

import (
	"testing"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue/queuetest"
)

const short = "lease=2s&poll=200ms"

func TestSuite(t *testing.T) {
	t.Run("default", func(t *testing.T) {
		t.Parallel() // each has a server of its own
		b := brokertest.Start(t, "postgres", "")
		t.Run("polling, in the order of keys", func(t *testing.T) {
			h := harness(b, "lease=2s&poll=20ms&notify=false&order=key")
			h.Crash, h.Freeze = nil, nil // the other does that
			queuetest.Run(t, h)
		})
		t.Run("notified", func(t *testing.T) { queuetest.Run(t, harness(b, short)) })
	})
	t.Run("async-commit", func(t *testing.T) {
		t.Parallel()
		b := brokertest.Start(t, "postgres", "async-commit")
		forgetful(t, b)
		h := harness(b, short)
		h.Freeze = nil
		queuetest.Run(t, h)
	})
}

// forgetful makes the server keep its log in memory for as long as it can, so
// that a kill loses for certain what it otherwise loses most of the time.
func forgetful(t *testing.T, b *broker.Broker) {
	t.Helper()
	c := sql(t, b)
	for _, s := range []string{"ALTER SYSTEM SET wal_writer_delay = '10s'", "SELECT pg_reload_conf()"} {
		if _, err := c.Exec(soon(t), s); err != nil {
			t.Fatal(err)
		}
	}
}
