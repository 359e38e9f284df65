package main

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"queuelab/app/fleet"
	"queuelab/bench/broker/brokertest"
)

func TestInstancesThatSellInAnotherWayAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	db := "--db=sqlite:" + path
	old := start(t, t.TempDir(), db, "--mode", "sync", "--instance", "shop-1")
	for _, args := range [][]string{{db}, {db, "--mode", "queue-first"}} {
		got := refusal(t, args...)
		for _, want := range []string{`instance "shop-1"`, "mode sync", "--allow-unsafe=" + mixedInstances, "stop all of the old ones"} {
			if !strings.Contains(got, want) {
				t.Errorf("%v: got %q, want %q in it", args, got, want)
			}
		}
	}
	// Those that were refused have left, and keep nobody out.
	start(t, t.TempDir(), db, "--mode", "sync").stop(t)
	beside := start(t, t.TempDir(), db, "--allow-unsafe", mixedInstances)
	beside.stop(t)
	if !strings.Contains(beside.stderr.String(), mixedInstances) {
		t.Errorf("got log %s, want the accepted danger in it", beside.stderr)
	}

	// One that was killed cannot speak any more. It is not waited for longer than
	// one may be silent; here that is nearly over.
	old.kill()
	raw, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	back := fleet.SilentAfter.Milliseconds() - 1500
	if _, err := raw.ExecContext(t.Context(), "PRAGMA busy_timeout=5000; UPDATE workers SET seen_ms = seen_ms - ?", back); err != nil {
		t.Fatal(err)
	}
	start(t, t.TempDir(), db).stop(t)
}

func TestAdmissionInOneProcessIsNotBesideAnother(t *testing.T) {
	db, args := streams(t)
	alone := []string{"--db", db, "--queue", args[5]}
	first := start(t, t.TempDir(), alone...)
	if got := refusal(t, alone...); !strings.Contains(got, "--redis") || !strings.Contains(got, "admission of its own") {
		t.Errorf("got %q of a second one without --redis, want the reason", got)
	}
	if got := refusal(t, args...); !strings.Contains(got, "gate in this process") || !strings.Contains(got, "has redis://") || !strings.Contains(got, mixedInstances) {
		t.Errorf("got %q of one with --redis beside it, want that the gates differ", got)
	}
	first.kill() // which leaves nothing behind that keeps the same out
	start(t, t.TempDir(), alone...).stop(t)
}

func TestAPlaceIsTheSameHoweverItIsWritten(t *testing.T) {
	for _, tc := range []struct{ a, b string }{
		{"redis://127.0.0.1:6379/0", "redis://user:secret@localhost"},
		{"redis+streams://127.0.0.1:6379/0?queue=orders", "redis+streams://:secret@LOCALHOST/?claim=3s&queue=orders"},
		{"redis+cluster://a:1,b:2", "redis+cluster://b:2,a:1"},
		{"amqp://h/?queue=q", "amqp://u:secret@h:5672?queue=q&prefetch=9"},
		{"kafka://a:9092,b/t", "kafka://b:9092,a/t?acks=all"},
		{"postgres://u:secret@h/x?sslmode=disable", "postgres://h:5432/x"},
		{"sqlite:x.db", "sqlite:./x.db"},
	} {
		if a, b := place(tc.a), place(tc.b); a != b || strings.Contains(a+b, "secret") {
			t.Errorf("%s and %s: got %s and %s, want the same, without secrets", tc.a, tc.b, a, b)
		}
	}
	for _, tc := range []struct{ a, b string }{
		{"redis://h/0", "redis://h/1"}, {"redis://h:1/0", "redis://h:2/0"}, {"redis://a/0", "redis://b/0"},
		{"redis+streams://h/0?queue=a", "redis+streams://h/0?queue=b"}, {"redis+streams://h/0?queue=a", "redis+list://h/0?queue=a"},
		{"redis+streams://h/0?queue=a&group=x", "redis+streams://h/0?queue=a&group=y"}, {"kafka://h/a", "kafka://h/b"}, {"sqlite:a.db", "sqlite:b.db"},
	} {
		if a, b := place(tc.a), place(tc.b); a == b {
			t.Errorf("%s and %s: got %s for both", tc.a, tc.b, a)
		}
	}
}

func TestABareNameOfARedisQueueIsInTheRedisOfAdmission(t *testing.T) {
	for _, tc := range []struct{ name, redis, want string }{
		{"redis-streams", "redis://10.0.0.7:6380/3", "redis+streams://10.0.0.7:6380/3?queue=orders"},
		{"redis-list", "redis://:s@h", "redis+list://:s@h:6379/0?queue=orders"},
		{"redis-streams", "", "redis-streams"},
		{"kafka", "redis://h/0", "kafka"},
		{"redis+streams://a/1?queue=q", "redis://h/0", "redis+streams://a/1?queue=q"},
	} {
		if got, err := queueURL(tc.name, tc.redis); err != nil || got != tc.want {
			t.Errorf("%s with %s: got %q, %v, want %q", tc.name, tc.redis, got, err, tc.want)
		}
	}
	for _, redisURL := range []string{"redis+cluster://a:1,b:2", "rediss://h/0", "redis://h/x"} {
		if got, err := queueURL("redis-streams", redisURL); err == nil || !strings.Contains(err.Error(), "--redis") {
			t.Errorf("%s: got %q, %v, want it refused", redisURL, got, err)
		}
	}
	r := brokertest.Start(t, "redis", "aof-everysec")
	p := start(t, t.TempDir(), "--redis", r.URL(), "--queue", "redis-streams")
	defer p.stop(t)
	if _, addr, _ := strings.Cut(r.URL(), "://"); !strings.Contains(p.out+p.stderr.String(), "redis+streams://"+strings.TrimSuffix(addr, "/0")) &&
		!strings.Contains(p.stderr.String(), "orders are queued by the admission script") {
		t.Errorf("got %s%s, want the queue in %s", p.out, p.stderr, r.URL())
	}
}
