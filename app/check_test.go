package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/app/fleet"
	"queuelab/app/store"
	"queuelab/bench/broker/brokertest"
)

// refusal starts a service that is to be refused, and returns why it was.
func refusal(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := run(ctx, append([]string{"--listen", "127.0.0.1:0"}, args...), io.Discard, io.Discard)
	if err == nil {
		t.Fatal("got a service, want a refusal")
	}
	return oneLine(err)
}

func TestAnUnsafeURLIsRefusedByName(t *testing.T) {
	for _, tc := range []struct{ url, name string }{
		{"kafka://127.0.0.1:1/orders?acks=1", kafkaAcks},
		{"kafka://127.0.0.1:1/orders?acks=0", kafkaAcks},
		{"amqp://u:secret@127.0.0.1:1/?queue=q&persistent=false", rabbitTransient},
		{"amqp://u:secret@127.0.0.1:1/?queue=q&auto-ack=true", rabbitPrefetch},
	} {
		got := refusal(t, "--queue", tc.url)
		if !strings.Contains(got, "--allow-unsafe="+tc.name) || strings.Contains(got, "secret") {
			t.Errorf("%s: got %q, want it to name %s", tc.url, got, tc.name)
		}
		s := &service{f: &flags{operations: operations{AllowUnsafe: []string{tc.name}}}, log: slog.New(slog.DiscardHandler)}
		if err := s.refuse(queueURLDangers(tc.url)...); err != nil {
			t.Errorf("%s: got %v, want it accepted", tc.url, err)
		}
	}
	if got := refusal(t, "--queue", "amqp://127.0.0.1:1/?queue=q&prefetch=0"); !strings.Contains(got, "prefetch") {
		t.Errorf("got %q, want no unlimited prefetch", got)
	}
	if got := refusal(t, "--allow-unsafe", "everything"); !strings.Contains(got, redisEviction) {
		t.Errorf("got %q, want the names that there are", got)
	}
}

func TestEveryDangerSaysWhatWhyAndHow(t *testing.T) {
	all := redisDangers("admission", map[string]string{"maxmemory-policy": "allkeys-lru", "appendonly": "no"})
	all = append(all, redisDangers("admission", map[string]string{"appendonly": "yes", "appendfsync": "no"})...)
	all = append(all, databaseDangers(store.Settings{Of: "the database", Fsync: "off", SynchronousCommit: "off"})...)
	all = append(all, queueURLDangers("kafka://h/t?acks=1")...)
	all = append(all, queueURLDangers("amqp://h/?queue=q&persistent=false&auto-ack=true")...)
	mixed, differs := mixes(fleet.Instance{Terms: map[string]string{"mode": "queue"}}, fleet.Instance{Holder: "other", Terms: map[string]string{"mode": "sync"}})
	if !differs {
		t.Error("got no danger of two modes at once")
	}
	all = append(all, mixed)
	var names []string
	for _, d := range all {
		names = append(names, d.name)
		if d.setting == "" || d.loses == "" || d.mend == "" {
			t.Errorf("got %+v, want all of it said", d)
		}
	}
	for _, name := range unsafeNames() {
		if !slices.Contains(names, name) {
			t.Errorf("nothing leads to %s", name)
		}
	}
	safe := redisDangers("x", map[string]string{"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "everysec"})
	safe = append(safe, redisDangers("x", nil)...)
	safe = append(safe, databaseDangers(store.Settings{Of: "the database", Fsync: "on", SynchronousCommit: "on"})...)
	for _, url := range []string{"kafka", "memory", "kafka://h/t?acks=all", "kafka://h/t", "amqp://h/?queue=q&type=quorum", "nope://"} {
		safe = append(safe, queueURLDangers(url)...)
	}
	if len(safe) > 0 {
		t.Errorf("got dangers %v of safe settings", safe)
	}
}

func TestARedisThatForgetsIsRefused(t *testing.T) {
	r := brokertest.Start(t, "redis", "no-persistence")
	db := "--db=sqlite:" + filepath.Join(t.TempDir(), "x.db")
	for _, tc := range []struct {
		name string
		args []string
	}{
		{"as the gate's", []string{db, "--redis", r.URL()}},
		{"as the queue's", []string{db, "--allow-lossy", "--queue", r.QueueURL("redis+streams", "forgets", "")}},
	} {
		if got := refusal(t, tc.args...); !strings.Contains(got, "--allow-unsafe="+redisPersistence) || !strings.Contains(got, "appendonly=no") {
			t.Errorf("%s: got %q, want it to name %s", tc.name, got, redisPersistence)
		}
	}
	both := refusal(t, db, "--redis", r.URL(), "--queue", r.QueueURL("redis+streams", "forgets", ""))
	if !strings.Contains(both, "--allow-unsafe="+redisPersistence) || !strings.Contains(both, "--allow-lossy") {
		t.Errorf("got %q, want all that is wrong with the queue", both)
	}
	p := start(t, t.TempDir(), "--redis", r.URL(), "--allow-unsafe", redisPersistence)
	p.stop(t)
	if !strings.Contains(p.stderr.String(), redisPersistence) {
		t.Errorf("got log %s, want the accepted danger in it", p.stderr)
	}

	o, err := redis.ParseURL(r.URL())
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(o)
	defer c.Close()
	if err := c.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err(); err != nil {
		t.Fatal(err)
	}
	defer c.ConfigSet(context.Background(), "maxmemory-policy", "noeviction")
	if got := refusal(t, db, "--redis", r.URL(), "--allow-unsafe", redisPersistence); !strings.Contains(got, "--allow-unsafe="+redisEviction) || !strings.Contains(got, "allkeys-lru") {
		t.Errorf("got %q, want it to name %s", got, redisEviction)
	}
}

func TestARedisThatWritesWhenTheSystemLikesIsRefused(t *testing.T) {
	r := brokertest.Start(t, "redis", "aof-no")
	db := "--db=sqlite:" + filepath.Join(t.TempDir(), "x.db")
	for whose, args := range map[string][]string{
		"of admission": {db, "--redis", r.URL()},
		"of the queue": {db, "--allow-lossy", "--queue", r.QueueURL("redis+streams", "writes", "")},
	} {
		if got := refusal(t, args...); !strings.Contains(got, "--allow-unsafe="+redisFsync) || !strings.Contains(got, "appendfsync=no in the Redis "+whose) {
			t.Errorf("%s: got %q, want it to name %s", whose, got, redisFsync)
		}
	}
}

func TestADatabaseThatForgetsIsRefused(t *testing.T) {
	pg := brokertest.Start(t, "postgres", "async-commit")
	if got := refusal(t, "--db", pg.URL()); !strings.Contains(got, "--allow-unsafe="+pgCommit) {
		t.Errorf("got %q, want it to name %s", got, pgCommit)
	}
	db := "sqlite:" + filepath.Join(t.TempDir(), "x.db")
	if got := refusal(t, "--db", db, "--stock-db", pg.URL()); !strings.Contains(got, "--allow-unsafe="+pgCommit) || !strings.Contains(got, "in the database of the stock") {
		t.Errorf("got %q, want it to name %s and where it is set", got, pgCommit)
	}
}

func TestLogsAreAsAskedFor(t *testing.T) {
	for _, tc := range []struct {
		format, level string
		want          string
		not           string
	}{
		{"json", "info", `"msg":"seen","instance":"me","order":"7"`, "hidden"},
		{"auto", "debug", `"msg":"hidden"`, "msg=seen"},
		{"text", "warn", "msg=loud instance=me", "seen"},
	} {
		var out bytes.Buffer
		o := operations{LogFormat: tc.format, LogLevel: tc.level, Instance: "me"}
		log := o.logger(&out)
		log.Debug("hidden")
		log.Info("seen", "order", "7")
		log.Warn("loud")
		if got := out.String(); !strings.Contains(got, tc.want) || strings.Contains(got, tc.not) {
			t.Errorf("%s, %s: got %s, want %q and not %q", tc.format, tc.level, got, tc.want, tc.not)
		}
	}
	if a := (&operations{}).instance(); a == "" {
		t.Error("got no name of the instance")
	}
}
