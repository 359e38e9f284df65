package main

import (
	"strings"
	"testing"

	"queuelab/bench/broker/brokertest"
)

// counted is how many messages were handed to the queue, by whom.
func counted(t *testing.T, base, by string) bool {
	t.Helper()
	status, b, err := call(base, "GET", "/metrics", "", "")
	if err != nil || status != 200 {
		t.Fatalf("metrics: got %d, %v", status, err)
	}
	return strings.Contains(string(b), `seckill_publishes_total{by="`+by+`",outcome="accepted"}`)
}

func TestOrdersAreQueuedByTheScriptWhereTheQueueIsInTheSameRedis(t *testing.T) {
	r := brokertest.Start(t, "redis", "aof-everysec")
	for how, by := range map[string]string{"auto": "admission", "script": "admission", "publish": "click"} {
		t.Run(how, func(t *testing.T) {
			ids := "snowflake"
			if how == "script" {
				ids = "redis"
			}
			p := start(t, t.TempDir(), "--redis", r.URL(), "--queue", r.QueueURL("redis+streams", "enqueue-"+how, "claim=1s"), "--enqueue", how, "--ids", ids)
			d := newDoor(t, p.base, 5)
			d.rush(20)
			wantConfirmed(t, d.results(), 5)
			if !counted(t, p.base, by) {
				t.Errorf("no order was queued by %q", by)
			}
			p.stop(t)
		})
	}
}
