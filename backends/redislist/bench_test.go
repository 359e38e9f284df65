package redislist_test

import (
	"testing"

	"queuelab/bench/broker/brokertest"
)

func BenchmarkPublish(b *testing.B) {
	backend.BenchmarkPublish(b, brokertest.Start(b, "redis", "aof-everysec"), "")
}

func BenchmarkReceive(b *testing.B) {
	backend.BenchmarkReceive(b, brokertest.Start(b, "redis", "aof-everysec"), "preset=throughput")
}
