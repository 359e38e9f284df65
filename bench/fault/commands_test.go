package fault

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

// commanded is a stage with a real broker, and a queue of its own on it.
type commanded struct {
	*stage
	url  string
	held int64
}

func (c *commanded) QueueURL(string, ...string) string { return c.url }
func (c *commanded) Freeze(context.Context) (int64, error) {
	c.tell("freeze")
	return c.held, nil
}

func onBroker(b *broker.Broker, scheme, name, query string) *commanded {
	c := &commanded{stage: newStage(), url: b.QueueURL(scheme, name, query)}
	c.broker, c.target.Broker, c.target.Scheme, c.target.Caps.Stored = b, b.Kind(), scheme, true
	return c
}

// redisQueue returns the stage of a queue on Redis, and a client to look.
func redisQueue(t *testing.T, name, query string) (*commanded, *redis.Client) {
	t.Helper()
	b := brokertest.Start(t, "redis", "")
	o, err := redis.ParseURL(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	o.MaxRetries = -1
	c := redis.NewClient(o)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return onBroker(b, "redis+streams", name, query), c
}

func play(t *testing.T, f Fault, s Scene) {
	t.Helper()
	if err := f.Run(t.Context(), s); err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
}

func TestKeyDeleteDeletesTheQueueAndNoOther(t *testing.T) {
	s, c := redisQueue(t, "doomed", "")
	for _, key := range []string{"list:{doomed}", "list:{doomed}:more", "list:{doomed2}"} {
		if err := c.LPush(t.Context(), key, "x").Err(); err != nil {
			t.Fatal(err)
		}
	}
	play(t, KeyDelete(), s)
	n, err := c.Exists(t.Context(), "list:{doomed}", "list:{doomed}:more").Result()
	if err != nil || n != 0 {
		t.Errorf("keys of the queue: got %d and %v, want none left", n, err)
	}
	if n, err := c.Exists(t.Context(), "list:{doomed2}").Result(); err != nil || n != 1 {
		t.Errorf("the key of another queue: got %d and %v, want it untouched", n, err)
	}
	if s.index("freeze") > s.index("asked") || len(s.invalid) > 0 {
		t.Errorf("got %v and invalid %v, want the backlog frozen first", s.story, s.invalid)
	}
	play(t, KeyDelete(), s)
	if len(s.invalid) != 1 {
		t.Errorf("with no key to delete: got invalid %v, want one reason", s.invalid)
	}
}

// groups makes a stream with two groups; a consumer of the first holds two entries.
func groups(t *testing.T, c *redis.Client, stream string) {
	t.Helper()
	for _, group := range []string{"workers", "audit"} {
		if err := c.XGroupCreateMkStream(t.Context(), stream, group, "0").Err(); err != nil {
			t.Fatal(err)
		}
		if err := c.XGroupCreateConsumer(t.Context(), stream, group, "idle").Err(); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if err := c.XAdd(t.Context(), &redis.XAddArgs{Stream: stream, Values: []string{"id", "1"}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.XReadGroup(t.Context(), &redis.XReadGroupArgs{
		Group: "workers", Consumer: "dead", Streams: []string{stream, ">"}, Count: 2,
	}).Err(); err != nil {
		t.Fatal(err)
	}
}

func TestDelConsumerTakesThePendingEntriesOfTheDeadAlong(t *testing.T) {
	s, c := redisQueue(t, "robbed", "")
	groups(t, c, "stream:{robbed}")
	play(t, DelConsumer(), s)
	left, err := c.XInfoConsumers(t.Context(), "stream:{robbed}", "workers").Result()
	if err != nil || len(left) != 1 || left[0].Name != "idle" || s.facts.Events != 2 {
		t.Errorf("got consumers %+v, %v and %d entries gone, want the idle one and 2", left, err, s.facts.Events)
	}
	play(t, DelConsumer(), s)
	if len(s.invalid) != 1 {
		t.Errorf("with nothing pending: got invalid %v, want one reason", s.invalid)
	}
}

func TestGroupDeleteDestroysEveryGroup(t *testing.T) {
	s, c := redisQueue(t, "ungrouped", "")
	groups(t, c, "stream:{ungrouped}")
	play(t, GroupDelete(), s)
	if left, err := c.XInfoGroups(t.Context(), "stream:{ungrouped}").Result(); err != nil || len(left) > 0 {
		t.Errorf("got groups %+v and %v, want none", left, err)
	}
	play(t, GroupDelete(), s)
	if len(s.invalid) != 1 {
		t.Errorf("with no group: got invalid %v, want one reason", s.invalid)
	}
}

func TestScriptFlushForgetsScriptsAgainAndAgain(t *testing.T) {
	s, c := redisQueue(t, "scripted", "")
	s.moment = 0.5
	load := func() {
		if err := c.ScriptLoad(t.Context(), "return 'lab'").Err(); err != nil {
			t.Error(err)
		}
	}
	s.asked = load
	known := 1
	s.confirmed = func() {
		exists, err := c.ScriptExists(t.Context(), redis.NewScript("return 'lab'").Hash()).Result()
		if err != nil {
			t.Error(err)
		} else if !exists[0] {
			known = 0
		}
	}
	play(t, ScriptFlush(), s)
	waits := slices.DeleteFunc(slices.Clone(s.story), func(what string) bool { return !strings.HasSuffix(what, "delivered") })
	if known != 0 || len(waits) != 11 || waits[1] != "200 delivered" || waits[10] != "380 delivered" {
		t.Errorf("got known %d and %v, want the script forgotten, ten times between half and the end", known, waits)
	}
}

func TestMemoryEndIsReachedAndUndone(t *testing.T) {
	s, c := redisQueue(t, "heavy", "")
	s.held = 150
	limit := func() string {
		m, err := c.ConfigGet(context.WithoutCancel(t.Context()), "maxmemory").Result()
		if err != nil {
			t.Error(err)
		}
		return m["maxmemory"]
	}
	s.asked = func() {
		for range 200 {
			if err := c.LPush(t.Context(), "list:{heavy}", strings.Repeat("x", 1000)).Err(); err != nil {
				if !strings.HasPrefix(err.Error(), "OOM") {
					t.Errorf("a write beyond the memory: got %v, want OOM", err)
				}
				return
			}
		}
		t.Error("200 kB were taken, want the memory to end")
	}
	play(t, MemoryEnd(), s)
	if got := limit(); got != "0" || s.facts.Over != 250 || len(s.invalid) > 0 {
		t.Errorf("got maxmemory %s, %d over and invalid %v, want 0, 250 of 400 and none", got, s.facts.Over, s.invalid)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.asked, s.confirmed = func() { cancel() }, func() {
		if got := limit(); got == "0" {
			t.Error("the limit is gone before the fault was confirmed")
		}
	}
	s.held = 400
	_ = MemoryEnd().Run(ctx, s)
	if got := limit(); got != "0" || len(s.invalid) != 1 {
		t.Errorf("after an interruption: got maxmemory %s and invalid %v, want it given back, and that all was taken is no proof", got, s.invalid)
	}
	if err := c.Del(t.Context(), "list:{heavy}").Err(); err != nil {
		t.Fatal(err)
	}
}

func TestUnroutableTakesTheQueueAndLeavesTheExchange(t *testing.T) {
	b := brokertest.Start(t, "rabbitmq", "")
	conn := must(amqp.Dial(b.URL()))(t)
	defer conn.Close()
	for query, unheard := range map[string]int64{"mandatory=false": 400, "confirm=false": 400, "": 0} {
		ch := must(conn.Channel())(t)
		if err := ch.ExchangeDeclare("homeless", amqp.ExchangeFanout, true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := ch.QueueDeclare("homeless.workers", true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
		s := onBroker(b, "amqp", "homeless", query)
		play(t, Unroutable(), s)
		if s.facts.Unheard != unheard || s.index("confirmed") > s.index("produce") {
			t.Errorf("%q: got %d unheard and %v, want %d, and the queue gone before the load", query, s.facts.Unheard, s.story, unheard)
		}
		if err := ch.ExchangeDeclarePassive("homeless", amqp.ExchangeFanout, true, false, false, false, nil); err != nil {
			t.Errorf("%q: the exchange: got %v, want it there", query, err)
		}
		var gone *amqp.Error
		if _, err := ch.QueueDeclarePassive("homeless.workers", true, false, false, false, nil); !errors.As(err, &gone) || gone.Code != amqp.NotFound {
			t.Errorf("%q: the queue: got %v, want it gone", query, err)
		}
		if err := Unroutable().Run(t.Context(), s); err == nil {
			t.Errorf("%q: with no queue to delete: got nil, want an error", query)
		}
	}
}

func TestQueueLimitPublishesMoreThanTheQueueHolds(t *testing.T) {
	s, _ := redisQueue(t, "narrow", "maxlen=300")
	s.held = 300
	var count uint64
	s.started = func(r Role) {
		if r.Producer != nil {
			count = r.Producer.Count
		}
	}
	play(t, QueueLimit(), s)
	if count != 700 || s.facts.Over != 400 || s.index("75 delivered") < 0 {
		t.Errorf("got %d published, %d over and %v, want 700 and 400, and room before the probe", count, s.facts.Over, s.story)
	}
	unbounded, _ := redisQueue(t, "wide", "")
	if err := QueueLimit().Run(t.Context(), unbounded); err == nil || !strings.Contains(err.Error(), "maxlen") {
		t.Errorf("without a limit in the URL: got %v, want an error that names it", err)
	}
}

func TestFaultsOfCommandsSayWhatTheyMeanNothingTo(t *testing.T) {
	list := Target{Broker: "redis", Scheme: "redis+list", Caps: queue.Capabilities{Stored: true}}
	heard := Target{Broker: "redis", Scheme: "redis+pubsub"}
	noAck := Target{Broker: "redis", Scheme: "redis+streams", Caps: queue.Capabilities{Stored: true}}
	stream := Target{Broker: "redis", Scheme: "redis+streams", Caps: queue.Capabilities{Stored: true, Guarantee: queue.AtLeastOnce}}
	bounded := Target{Broker: "rabbitmq", Scheme: "amqp", Caps: queue.Capabilities{Stored: true, DropsOldest: true}}
	bell := Target{Broker: "redis", Scheme: "redis+bell", Caps: queue.Capabilities{Stored: true}}
	process := Target{Caps: queue.Capabilities{Stored: true, Bounded: true}}
	all := map[string]Target{"list": list, "pubsub": heard, "no-ack": noAck, "stream": stream, "bounded": bounded, "bell": bell, "memory": process}
	for _, c := range []struct {
		fault Fault
		means []string
	}{
		{KeyDelete(), []string{"list", "no-ack", "stream", "bounded", "bell"}},
		{ScriptFlush(), []string{"list", "no-ack", "stream", "bell"}},
		{MemoryEnd(), []string{"list", "no-ack", "stream", "bell"}},
		{OutOfMemory(), []string{"list", "no-ack", "stream", "bell"}},
		{MemoryWatermark(), []string{"bounded"}},
		{GroupDelete(), []string{"no-ack", "stream"}},
		{DelConsumer(), []string{"stream"}},
		{QueueLimit(), []string{"bounded"}},
		{Unroutable(), []string{"bounded"}},
		{Bell(), []string{"bell"}},
		{ConsumerKillSlowHandler(), []string{"list", "pubsub", "no-ack", "stream", "bounded", "bell"}},
	} {
		for name, target := range all {
			why := c.fault.Means(target)
			if want := slices.Contains(c.means, name); (why == "") != want {
				t.Errorf("%s on %s: got %q, want that it means something: %v", c.fault.Name, name, why, want)
			}
		}
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
