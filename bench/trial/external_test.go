package trial

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"queuelab/bench/broker"
)

func TestARedisThatWasGivenIsMeasuredAsWhatItIsAndLeftAsItWas(t *testing.T) {
	lab := newTestLab(t, "redis", "postgres")
	given, err := broker.Start(t.Context(), broker.Options{Kind: "redis", Setting: "no-persistence"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { given.Stop() })
	lab.External = map[string]string{"redis": given.URL()}
	o, err := redis.ParseURL(given.URL())
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	for _, name := range []string{"lab1", "sale2", "orders"} {
		if err := c.RPush(t.Context(), name, "theirs").Err(); err != nil {
			t.Fatal(err)
		}
	}

	specs := specsFor(t, "redis-list/no-persistence", TestCrash, FaultNone, FaultBrokerKill)
	specs = append(specs, specsFor(t, "redis-list/no-persistence", TestSale, FaultNone)...)
	specs = append(specs, specsFor(t, "redis-streams/aof-always", TestCrash, FaultNone)...)
	got := map[string]string{}
	for _, cell := range measure(t, lab, specs) {
		got[cell.Setting+" "+cell.Test+" "+cell.Fault] = cell.Verdict + ": " + strings.Join(cell.InvalidReasons, "; ")
	}
	want := map[string]string{
		"no-persistence crash none":        "as expected: ",
		"no-persistence crash broker-kill": "skipped: the broker was given by URL: it is not ours to break",
		"no-persistence sale none":         "as expected: ",
		"aof-always crash none":            "skipped: the Redis that was given by URL has appendonly no, and this setting is about appendonly yes",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	left, err := c.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 3 {
		t.Errorf("got keys %v left in the given Redis, want the 3 that were there", left)
	}
}

func TestAPostgresThatWasGivenIsLeftAsItWas(t *testing.T) {
	lab := newTestLab(t, "postgres")
	given, err := broker.Start(t.Context(), broker.Options{Kind: "postgres"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { given.Stop() })
	lab.External = map[string]string{"postgres": given.URL()}
	onRedis := Spec{Setting: Setting{Backend: "redis-list", Broker: "redis"}}
	// A second run, at the same time or later, must not meet the effects of the first.
	other := &Lab{External: lab.External, name: "queuelab_other", brokers: map[string]*brokerSlot{}}
	var urls []string
	for _, l := range []*Lab{lab, other} {
		url, _, err := l.effectsDatabase(t.Context(), onRedis)
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := l.effectsDatabase(t.Context(), onRedis)
		if err != nil || again != url {
			t.Fatalf("got %q and %v, want one database for all trials of a run", again, err)
		}
		urls = append(urls, url)
	}
	if urls[0] == urls[1] || urls[0] == given.URL() {
		t.Errorf("got the databases %q, want one for each run", urls)
	}
	for _, l := range []*Lab{lab, other} {
		if err := l.dropDatabases(); err != nil {
			t.Error(err)
		}
	}
	db, err := sql.Open("pgx", given.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRow(`SELECT count(*) FROM pg_database WHERE datname LIKE 'queuelab%'`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	if n != 0 {
		t.Errorf("got %d databases left, want none", n)
	}
}

func TestTheServiceGetsItsSecretsWhereNobodySeesThem(t *testing.T) {
	t.Setenv("SECKILL_BATCH", "1")
	settings, err := SelectSettings("memory")
	if err != nil {
		t.Fatal(err)
	}
	svc, err := newTestLab(t).newService(t.Context(), settings[0], 1)
	if err != nil {
		t.Fatal(err)
	}
	defer svc.Close()
	argv, env := strings.Join(svc.argv, " "), strings.Join(svc.env, "\n")
	_, token, _ := strings.Cut(env, "SECKILL_OPERATOR_TOKEN=")
	token, _, _ = strings.Cut(token, "\n")
	if len(token) < 16 {
		t.Fatalf("got the operator's token %q", token)
	}
	for _, secret := range []string{token, svc.queueURL} {
		if strings.Contains(argv, secret) || !strings.Contains(env, secret) {
			t.Errorf("got %q among the arguments %s, want it in the environment alone", secret, argv)
		}
	}
	if strings.Contains(env, "SECKILL_BATCH") {
		t.Error("the service inherits settings of the harness' user, want none")
	}
}
