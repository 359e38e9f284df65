package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"queuelab/bench/broker"
	"queuelab/bench/proxy"
)

// An orchestrator that drops all instances at once ends a sale that gate and
// queue could go on with.
func TestInstancesThatTakeClicksAreReadyWithoutTheDatabase(t *testing.T) {
	db, args := streams(t)
	u, err := url.Parse(db)
	if err != nil {
		t.Fatal(err)
	}
	between, err := proxy.New("127.0.0.1:0", u.Host, proxy.Speaks(""))
	if err != nil {
		t.Fatal(err)
	}
	defer between.Close()
	u.Host = between.Addr()
	args[1] = u.String()
	port, err := broker.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	ops := fmt.Sprintf("127.0.0.1:%d", port)
	web := start(t, t.TempDir(), append(args, "--role", "web", "--ops-listen", ops)...)
	worker := start(t, t.TempDir(), append(args, "--role", "worker")...)
	d := newDoor(t, web.base, 5)
	if err := between.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the worker misses its database", func() bool {
		status, _, err := call(worker.base, "GET", "/readyz", "", "")
		return err == nil && status == 503
	})
	status, b, err := call(web.base, "GET", "/readyz", "", "")
	if err != nil || status != 200 || !strings.Contains(string(b), `"database":"degraded"`) {
		t.Errorf("got %d %s, %v, want the instance ready, and its database degraded", status, b, err)
	}
	if status, b, err := call(web.base, "POST", "/api/vouchers/"+d.voucher+"/orders", "", "ann"); err != nil || status != 202 {
		t.Errorf("got %d %s, %v of a click, want 202", status, b, err)
	}
	if status, b, err := call("http://"+ops, "GET", "/metrics", "", "ann"); err != nil || status != 200 || !strings.Contains(string(b), "seckill_admissions_total") {
		t.Errorf("got %d %.80s, %v from the listener of operations, want the metrics", status, b, err)
	}
	web.kill() // a stop would look for its database
	worker.kill()
}
