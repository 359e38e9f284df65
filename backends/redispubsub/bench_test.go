package redispubsub_test

import (
	"testing"

	"queuelab/bench/broker/brokertest"
)

func BenchmarkPublish(b *testing.B) {
	backend.BenchmarkPublish(b, brokertest.Start(b, "redis", "aof-everysec"), "")
}
