package redisxread_test

import (
	"testing"
	"time"

	"queuelab/backends/internal/redistest"
	"queuelab/backends/redisxread"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue/queuetest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

var backend = redistest.Backend{Scheme: "redis+xread", Open: redisxread.Open}

func TestConformance(t *testing.T) {
	for name, at := range map[string]struct{ setting, query string }{
		"skipping": {"no-persistence", "from=$"},
		"tracked":  {"aof-everysec", "from=tracked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each has a server of its own
			queuetest.Run(t, backend.Harness(brokertest.Start(t, "redis", at.setting), at.query, 200*time.Millisecond))
		})
	}
}
