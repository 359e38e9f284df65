package main

import (
	"path/filepath"
	"strings"
	"testing"

	"queuelab/bench/broker"
)

func TestEachKindOfBrokerCanBeGivenByURL(t *testing.T) {
	dead := map[string]string{
		"redis": "redis://127.0.0.1:1/0", "rabbitmq": "amqp://127.0.0.1:1/", "kafka": "kafka://127.0.0.1:1",
		"postgres": "postgres://lab@127.0.0.1:1/lab", "nats": "nats://127.0.0.1:1",
		"kafka-3": "kafka://127.0.0.1:1,127.0.0.1:2", "rabbitmq-3": "amqp://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3/",
		"redis-sentinel": "redis://127.0.0.1:1/0?master=lab&sentinel=127.0.0.1:2,127.0.0.1:3",
	}
	backend := map[string]string{"redis": "redis-list"}
	for _, kind := range append(broker.Kinds(), broker.Clusters()...) {
		setting := kind
		if b := backend[kind]; b != "" {
			setting = b
		}
		_, _, err := command(t, "faults", "run", "--settings", setting, "--faults", "none", "--"+kind, dead[kind], "--out", filepath.Join(t.TempDir(), "out"))
		if err == nil || !strings.HasPrefix(err.Error(), "--"+kind+": "+kind+" does not answer") {
			t.Errorf("--%s at a dead address: got %v, want an error that begins with the flag, before anything is measured", kind, err)
		}
	}
}
