package peers

import (
	"fmt"
	"strconv"
	"time"
)

// comparison is a row before it is measured.
type comparison struct {
	backend, client, tool string
	guarantee, direction  string
	broker, conf          string // kind and settings file
	scheme                string
	query                 string // of our queue's URL, beside the group
	theirs, ours          string // how each side is driven, in words
	timed                 string

	// Messages and durations, before they are scaled. A backlog is there before
	// either side begins: for each side one, unless both have a group of one.
	count, warm  int64
	length, rest time.Duration
	backlog      bool
	fillQuery    string // where messages are published with other parameters
	shared       bool   // the sides are two groups of one queue
	once         bool   // and the broker keeps it, so that all pairs read the same
	feed         bool   // something publishes for as long as there is a consumer

	toolSide func(t tools, w where, c comparison) process
	oursSide orders // without the URL, count and durations
	bare     string // the tool is a bare loop over this client library
}

func (c comparison) String() string {
	if c.direction == latencyDirection {
		return fmt.Sprintf("%s latency over %s", c.backend, c.client)
	}
	return fmt.Sprintf("%s %s, %s beside %s", c.backend, c.direction, c.client, c.tool)
}

// comparisons are all rows, in the order in which they are measured.
func comparisons() []comparison {
	rows := redisRows()
	rows = append(rows, rabbitRows()...)
	return append(rows, kafkaRows()...)
}

const (
	whole      = "the whole run"
	envelope   = "the body's 100 bytes, and an envelope around them: version, id, lengths"
	everysec   = "confirmed from Redis' memory, AOF everysec"
	preset     = "preset=throughput"
	hundredBCs = "100 connections"
)

func redisRows() []comparison {
	base := comparison{client: "go-redis", broker: "redis", conf: "aof-everysec", query: preset, timed: whole}
	var rows []comparison
	for _, b := range []struct {
		backend, scheme, command, guarantee, wire string
		args                                      func(w where) []string
	}{
		{"redis-list", "redis+list", "LPUSH", everysec, envelope,
			func(w where) []string { return []string{"LPUSH", listKey(w.queue), string(body())} }},
		{"redis-streams", "redis+streams", "XADD", everysec, "the body's 100 bytes in a field, and the id in another",
			func(w where) []string { return []string{"XADD", streamKey(w.queue), "*", "body", string(body())} }},
		{"redis-pubsub", "redis+pubsub", "PUBLISH", "nothing is stored, nobody listens", envelope,
			func(w where) []string { return []string{"PUBLISH", channel(w.queue), string(body())} }},
	} {
		row := base
		row.backend, row.scheme, row.guarantee, row.tool = b.backend, b.scheme, b.guarantee, redisBenchmark
		row.direction = Publish
		for _, pipeline := range []int{1, 16} {
			r := row
			r.count = 200_000
			r.oursSide = orders{Do: doPublish, Callers: 100, Batch: pipeline}
			r.theirs = fmt.Sprintf("%s of 100 bytes, -c 100 -P %d: %s, each with %s under way", b.command, pipeline, hundredBCs, plural(pipeline, "command"))
			r.ours = fmt.Sprintf("%s; 100 concurrent callers of %s, which share a publisher's one connection; on the wire %s", preset, plural(pipeline, "message"), b.wire)
			if pipeline > 1 {
				r.count = 1_000_000
			}
			r.toolSide = func(t tools, w where, c comparison) process {
				return t.redis(w, 100, pipeline, c.count, 1, b.args(w)...)
			}
			rows = append(rows, r)
		}
		row.direction = Consume
		switch b.backend {
		case "redis-list":
			const pop = 100
			row.guarantee = "at most once: what is popped is nowhere else"
			row.count, row.backlog = 1_000_000, true
			row.theirs = "RPOP of 100 at once, -c 1 -P 1: one connection; what our backend published, envelopes and all"
			row.ours = preset + "; one consumer, Receive and Ack of at most 100 in turn"
			row.oursSide = orders{Do: doConsume, Batch: pop}
			row.toolSide = func(t tools, w where, c comparison) process {
				return t.redis(w, 1, 1, c.count/pop, pop, "RPOP", listKey(w.queue), strconv.Itoa(pop))
			}
		case "redis-streams":
			row.guarantee = "at least once: pending until acked, the ack confirmed"
			row.tool, row.bare = BareLoop, "go-redis"
			row.count, row.warm, row.backlog, row.shared = 400_000, 20_000, true, true
			row.theirs = "XREADGROUP COUNT 100, then XACK of all of them, in turn; no leases, no claims"
			row.ours = preset + "; one consumer, Receive and Ack of at most 100 in turn"
			row.timed = "after the first twentieth"
			row.oursSide = orders{Do: doConsume, Batch: 100}
		case "redis-pubsub":
			row.guarantee = "at most once, to who listens"
			row.tool, row.bare = BareLoop, "go-redis"
			row.length, row.rest, row.feed = 4*time.Second, time.Second, true
			row.theirs = "SUBSCRIBE, then ReceiveMessage in a loop; it is fed by our backend, at most 20,000 messages ahead of it"
			row.ours = preset + "; one consumer, Receive and Ack of at most 100 in turn; fed in the same way"
			row.timed = "after the first second"
			row.oursSide = orders{Do: doConsume, Batch: 100, Progress: true}
		}
		rows = append(rows, row)
		if b.backend == "redis-list" {
			// redis-benchmark looks at nothing that it pops.
			row.tool, row.bare, row.toolSide = BareLoop, "go-redis", nil
			row.theirs = "BLMPOP of 100 at once in a loop, one connection; what our backend published, envelopes and all"
			rows = append(rows, row)
		}
	}
	return rows
}

func rabbitRows() []comparison {
	var rows []comparison
	for _, b := range []struct {
		published, consumed string
		query, fill         string
		confirmed           bool
		autoAck             bool
		mostRate            int64 // the backlog is what lasts a few seconds
	}{
		{"persistent, confirmed; classic queue", "at least once, acked by hand; classic queue",
			"type=classic&settle=0s", "", true, false, 120_000},
		{"persistent, confirmed; quorum queue on one node", "at least once, acked by hand; quorum queue on one node",
			"type=quorum&settle=0s", "", true, false, 120_000},
		{"transient, not confirmed; classic queue", "at most once, acked by the broker as it sends; classic queue",
			"type=classic&persistent=false&confirm=false&auto-ack=true", "type=classic&persistent=false&confirm=true&auto-ack=true", false, true, 240_000},
	} {
		const own = preset + "&window=1000&channels=2&prefetch=1000"
		base := comparison{backend: "rabbitmq", client: "amqp091-go", tool: perfTest, broker: "rabbitmq", conf: "default", scheme: "amqp",
			query: own + "&" + b.query}

		r := base
		r.direction, r.guarantee = Publish, b.published
		r.length, r.rest, r.timed = 4*time.Second, time.Second, "after the first second"
		flags := []string{"--producers", "1", "--producer-channel-count", "2", "--consumers", "0"}
		what := "sent"
		r.theirs = "one producer, two channels on one connection, into the exchange and queue that our backend declared"
		if b.confirmed {
			flags = append(flags, "--flag", "persistent", "--flag", "mandatory", "--confirm", "1000")
			what = "confirmed"
			r.theirs += "; mandatory, 1,000 unconfirmed on a channel at most; what was confirmed is counted"
		}
		r.toolSide = func(t tools, w where, c comparison) process {
			return t.rabbit(w, what, append(flags, "--exchange", w.queue, "--type", "fanout", "--routing-key", w.queue,
				"--time", strconv.Itoa(max(1, int((c.rest+c.length).Round(time.Second)/time.Second))))...)
		}
		r.oursSide = orders{Do: doPublish, Callers: 20, Batch: 100}
		r.ours = own + "; 20 concurrent callers of 100 messages, which share a publisher's connection and its two channels; the message id is a property, and all are mandatory"
		rows = append(rows, r)

		r = base
		r.direction, r.guarantee = Consume, b.consumed
		r.count, r.warm, r.timed = b.mostRate, b.mostRate/4, "after the first second of PerfTest, and after the first quarter of ours"
		r.backlog, r.shared = true, true
		if b.fill != "" {
			r.fillQuery = own + "&" + b.fill
		}
		ack := []string{"--qos", "1000", "--multi-ack-every", "100"}
		r.theirs = "one consumer, prefetch 1,000, one ack for 100; what our backend published"
		r.ours = own + "; one consumer, Receive and Ack of at most 100 in turn"
		if b.autoAck {
			ack = []string{"--autoack"}
			r.theirs = "one consumer, auto-ack; what our backend published"
		}
		r.toolSide = func(t tools, w where, c comparison) process {
			return t.rabbit(w, "received", append(ack, "--producers", "0", "--consumers", "1", "--cmessages", strconv.FormatInt(c.count, 10))...)
		}
		r.oursSide = orders{Do: doConsume, Batch: 100}
		rows = append(rows, r)
	}
	return rows
}

func kafkaRows() []comparison {
	var rows []comparison
	for _, client := range []struct{ name, query string }{{"kafka-go", ""}, {"franz-go", "&client=franz"}} {
		own := preset + client.query
		base := comparison{backend: "kafka", client: client.name, broker: "kafka", conf: "default", scheme: "kafka", query: own + "&partitions=4"}
		for _, acks := range []string{"all", "1"} {
			r := base
			r.direction, r.tool = Publish, kafkaProducer
			r.query += "&acks=" + acks
			r.guarantee = "acks=" + acks + ", one replica, not synced, 4 partitions"
			r.count, r.warm, r.timed = 1_500_000, 500_000, "after the first third, which a virtual machine needs to compile"
			r.theirs = "one thread that does not wait, 5 requests under way and 32 MB of records waiting at most, linger.ms=5; batch.size=262144, which lets a request hold as much as ours and is faster than its default; not idempotent, as our backend"
			r.ours = own + "; 32 concurrent callers of 500 messages, which share a publisher; a record has the id in a header"
			r.toolSide = func(t tools, w where, c comparison) process {
				return t.kafkaProduce(w, c.count, c.warm, "acks="+acks, "enable.idempotence=false", "batch.size=262144")
			}
			r.oursSide = orders{Do: doPublish, Callers: 32, Batch: 500}
			rows = append(rows, r)
		}
		r := base
		r.direction, r.tool = Consume, kafkaConsumer
		r.guarantee = "at least once: the group's offset is committed behind what was received, 4 partitions"
		r.count, r.timed = 2_000_000, "from when the group had dealt out its partitions"
		r.backlog, r.shared, r.once = true, true, true
		r.theirs = "one consumer of a group, commits by itself every 100 ms; what our backend published"
		r.ours = own + "; one consumer of a group, Receive of at most 1,000; acks go on meanwhile, all that wait at once, each commit confirmed"
		r.toolSide = func(t tools, w where, c comparison) process {
			return t.kafkaConsume(w, c.count, "auto.commit.interval.ms=100")
		}
		r.oursSide = orders{Do: doConsume, Batch: 1000, AckBehind: true}
		rows = append(rows, r)
	}
	return rows
}

// latencyDirection stands for a direction in what is skipped.
const latencyDirection = "latency"

// latencies are the rows of the latency section.
func latencies() []comparison {
	const own = "preset=latency"
	var rows []comparison
	for _, b := range []struct {
		backend, scheme, broker, client, query, guarantee, raw string
		batch                                                  int
	}{
		{"redis-list", "redis+list", "redis", "go-redis", own, "at most once, AOF everysec", "LPUSH, BRPOP", 1},
		{"redis-pubsub", "redis+pubsub", "redis", "go-redis", own, "at most once, to who listens", "PUBLISH, Receive in a loop", 100},
		{"redis-streams", "redis+streams", "redis", "go-redis", own, "at least once, AOF everysec", "XADD, XREADGROUP COUNT 1, XACK", 1},
		{"rabbitmq", "amqp", "rabbitmq", "amqp091-go", own + "&settle=0s&prefetch=16", "at least once: persistent, confirmed, acked by hand; classic queue",
			"publish and await the confirm; prefetch 16, ack each", 16},
		{"kafka", "kafka", "kafka", "kafka-go", own + "&partitions=4&acks=all", "at least once: acks=all, each commit confirmed; 4 partitions",
			"Writer with BatchSize 1; FetchMessage of a group's Reader, CommitMessages behind, all that wait at once", 100},
		{"kafka", "kafka", "kafka", "franz-go", own + "&client=franz&partitions=4&acks=all", "at least once: acks=all, each commit confirmed; 4 partitions",
			"ProduceSync without linger, not idempotent; PollFetches, CommitRecords behind, all that wait at once", 100},
	} {
		conf, acks := "default", " in turn"
		switch b.broker {
		case "redis":
			conf = "aof-everysec"
		case "kafka":
			acks = ", acks behind, all that wait at once"
		}
		rows = append(rows, comparison{
			backend: b.backend, scheme: b.scheme, broker: b.broker, conf: conf, client: b.client, tool: "bare loop over " + b.client,
			direction: latencyDirection, guarantee: b.guarantee, query: b.query, bare: b.client, theirs: b.raw,
			ours:  fmt.Sprintf("%s; Receive and Ack of at most %d%s", b.query, b.batch, acks),
			count: 4000, warm: 1000, oursSide: orders{Do: doLatency, Batch: b.batch, Rate: latencyRate, AckBehind: b.broker == "kafka"},
		})
	}
	return rows
}

// latencyRate is messages a second, which every broker here keeps up with.
const latencyRate = 1000

func plural(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
