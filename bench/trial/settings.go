package trial

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"queuelab/bench/node"
)

// Setting is a backend with its client's knobs and its broker's durability.
type Setting struct {
	Backend string // as in backends.All
	Name    string // the part after the slash
	Broker  string // the broker program: "", or one of broker.Kinds
	Conf    string // the broker's settings file in compose/, by name
	Query   string // the parameters of the queue's URL that make this setting
	Profile string // what an accepted message survives; see Profiles
	Promise string // one line for people

	Label string     // tells two cells of one setting apart in `queuelab ab`; "": none
	Slow  float64    // spoils it on purpose: what it does takes that share longer; see slowQueue
	Fake  *node.Fake // a queue with known faults in its place, for calibration
}

// String is the setting's name: backend/setting, as in the oracle, and the label.
func (s Setting) String() string { return s.Backend + "/" + s.label() }

// label is the name in results. What spoils a setting is part of it, so that
// nobody takes the numbers for the setting's own.
func (s Setting) label() string {
	name := s.Name
	if s.Slow > 0 {
		name += fmt.Sprintf("+slow=%g%%", s.Slow*100)
	}
	if s.Label != "" {
		name += "#" + s.Label
	}
	return name
}

// Settings lists every setting, in the order in which tables show them.
func Settings() []Setting {
	const (
		none     = "a killed Redis forgets everything"
		everysec = "survives a killed Redis; a power cut loses about a second"
		always   = "synced before the reply"
		aofNo    = "survives a killed Redis; a power cut loses what the kernel had not written back, up to all of it"
		rdb      = "snapshots: a killed Redis forgets what came after the last"

		threeKafkas = "partitions=1&replication=3&min-insync=2" // one leader to kill
	)
	set := func(backend, name, broker, conf, profile, query, promise string) Setting {
		return Setting{Backend: backend, Name: name, Broker: broker, Conf: conf, Query: query, Profile: profile, Promise: promise}
	}
	return []Setting{
		set("memory", "bounded", "", "", ProfileMemory, "capacity=1024&full=block", "lives and dies with its process"),
		set("redis-list", "no-persistence", "redis", "no-persistence", ProfileAtMostOnce, "", "BRPOP removes what it delivers; "+none),
		set("redis-list", "rdb", "redis", "rdb", ProfileAtMostOnce, "", "BRPOP removes what it delivers; "+rdb),
		set("redis-list", "aof-no", "redis", "aof-no", ProfileAtMostOnce, "", "BRPOP removes what it delivers; "+aofNo),
		set("redis-list", "aof-everysec", "redis", "aof-everysec", ProfileAtMostOnce, "", "BRPOP removes what it delivers; "+everysec),
		set("redis-list", "aof-always", "redis", "aof-always", ProfileAtMostOnce, "", "BRPOP removes what it delivers; "+always),
		set("redis-list", "client-retries", "redis", "aof-everysec", ProfileAtMostOnce, "retries=3", "go-redis retries behind our back, as it does by default: a lost reply is a second copy, or a pop that nobody got, and no error"),
		set("redis-pubsub", "default", "redis", "no-persistence", ProfileAtMostOnce, "", "whoever listens at that moment hears it; nothing is stored"),
		set("redis-pubsub", "pattern", "redis", "no-persistence", ProfileAtMostOnce, "route=key", "a channel for each key, heard by a pattern over all of them; nothing is stored"),
		set("redis-streams", "no-persistence", "redis", "no-persistence", ProfileMemory, "", "pending until acked; "+none),
		set("redis-streams", "rdb", "redis", "rdb", ProfileMemory, "", "pending until acked; "+rdb),
		set("redis-streams", "aof-no", "redis", "aof-no", ProfileDiskAsync, "", "pending until acked; "+aofNo),
		set("redis-streams", "aof-everysec", "redis", "aof-everysec", ProfileDiskAsync, "", "pending until acked; "+everysec),
		set("redis-streams", "aof-always", "redis", "aof-always", ProfileDiskSync, "", "pending until acked; "+always),
		set("redis-streams", "no-ack", "redis", "aof-everysec", ProfileAtMostOnce, "noack=true", "NOACK: forgotten as it is handed over; "+everysec),
		set("redis-streams", "maxlen", "redis", "aof-everysec", ProfileDiskAsync, "maxlen=2000", "MAXLEN 2000: a backlog beyond it drops the oldest, read or not, though they were accepted"),
		set("redis-list-reliable", "aof-everysec", "redis", "aof-everysec", ProfileDiskAsync, "", "BLMOVE keeps it on the consumer's processing list until acked, and a reaper gives back what the dead held; "+everysec),
		set("redis-poll", "aof-everysec", "redis", "aof-everysec", ProfileAtMostOnce, "", "RPOP every 10 ms removes what it delivers; "+everysec),
		set("redis-priority", "aof-everysec", "redis", "aof-everysec", ProfileAtMostOnce, "", "BRPOP over a list for each priority removes what it delivers, the urgent first; "+everysec),
		set("redis-doing", "aof-everysec", "redis", "aof-everysec", ProfileAtMostOnce, "", "the tutorials' doing hash: BRPOP, then HSET, and who dies in between loses it; the overdue are rolled back; "+everysec),
		set("redis-doing", "atomic", "redis", "aof-everysec", ProfileDiskAsync, "pop=atomic", "the doing hash, taken and written down in one script; "+everysec),
		set("redis-zset", "aof-everysec", "redis", "aof-everysec", ProfileDiskAsync, "", "Sorted Set by due time: kept until acked, and due again when its consumer is too late; "+everysec),
		set("redis-xread", "tail", "redis", "no-persistence", ProfileAtMostOnce, "from=$", "XREAD from $: what is added between two reads is skipped, without an error"),
		set("redis-xread", "tracked", "redis", "aof-everysec", ProfileDiskAsync, "from=tracked", "XREAD from the id up to which all are acked, kept in Redis by name; every consumer gets everything; "+everysec),
		set("redis-sharded", "aof-everysec", "redis", "aof-everysec", ProfileDiskAsync, "", "a stream in 4 partitions by key, leased to consumers: a key keeps its order although they compete; "+everysec),
		set("redis-bell", "no-poll", "redis", "aof-everysec", ProfileAtMostOnce, "", "RPOP when Pub/Sub rings: a bell that nobody hears strands its message until the next; "+everysec),
		set("redis-bell", "poll", "redis", "aof-everysec", ProfileAtMostOnce, "poll=100ms", "RPOP when Pub/Sub rings, and every 100 ms: a bell that nobody hears only delays; "+everysec),
		set("rabbitmq", "transient", "rabbitmq", "default", ProfileAtMostOnce, "persistent=false&confirm=false&auto-ack=true", "no confirms, auto-ack, in memory: nothing is promised"),
		set("rabbitmq", "classic", "rabbitmq", "default", ProfileDiskSync, "type=classic", "persistent, confirmed, acked by hand; classic queue"),
		set("rabbitmq", "quorum", "rabbitmq", "default", ProfileDiskSync, "type=quorum", "persistent, confirmed, acked by hand; quorum queue on one node"),
		set("rabbitmq", "topic", "rabbitmq", "default", ProfileDiskSync, "type=classic&exchange=topic", "like classic, through a topic exchange: routed by the message's key, and a group may bind some keys only"),
		set("rabbitmq", "fanout", "rabbitmq", "default", ProfileDiskSync, "type=classic&exchange=fanout", "the exchange of classic, by its name: each group's queue gets a copy, whatever the key"),
		set("rabbitmq", "no-confirm", "rabbitmq", "default", ProfileAtMostOnce, "type=classic&confirm=false", "persistent, acked by hand, and nobody answers the publisher: nothing is promised"),
		set("rabbitmq", "auto-ack", "rabbitmq", "default", ProfileAtMostOnce, "type=classic&auto-ack=true", "persistent, confirmed, and forgotten as soon as it is written to the consumer's socket"),
		set("rabbitmq", "no-mandatory", "rabbitmq", "default", ProfileDiskSync, "type=classic&mandatory=false", "like classic, but a message for which there is no queue is confirmed too, and gone"),
		set("rabbitmq", "drop-head", "rabbitmq", "default", ProfileDiskSync, "type=classic&max-length=2000&overflow=drop-head", "at most 2000 wait: a backlog beyond that drops the oldest, the first buyers, though they were confirmed"),
		set("rabbitmq", "reject-publish", "rabbitmq", "default", ProfileDiskSync, "type=classic&max-length=2000&overflow=reject-publish", "at most 2000 wait: what comes beyond that is rejected, and the publisher is told"),
		set("kafka", "acks-0", "kafka", "default", ProfileAtMostOnce, "acks=0", "the broker does not answer: nothing is promised"),
		set("kafka", "acks-1", "kafka", "default", ProfileDiskAsync, "acks=1", "the leader answered from its page cache"),
		set("kafka", "acks-all", "kafka", "default", ProfileDiskAsync, "acks=all", "every in-sync replica answered; one node here"),
		set("kafka", "acks-all-flush", "kafka", "default", ProfileDiskSync, "acks=all&flush=1", "synced before the answer: flush.messages=1; committed offsets are not"),
		set("kafka", "commit-before", "kafka", "default", ProfileAtMostOnce, "acks=all&commit=before", "offsets are committed before the handler: what a dead consumer held is skipped"),
		set("kafka", "auto-commit", "kafka", "default", ProfileAtMostOnce, "acks=all&commit=auto&commit-interval=100ms", "a timer commits what was handed out, done or not: a dead consumer's may be skipped, or come again"),
		set("kafka", "auto-commit-poll", "kafka", "default", ProfileAtMostOnce, "acks=all&commit=poll&commit-interval=100ms", "commits in the poll loop what earlier polls returned, as Java does: nothing is skipped if the handler is done before it polls again"),
		set("kafka", "retention", "kafka", "retention", ProfileDiskAsync, "acks=all&partitions=1", "a megabyte or two is kept in each partition: a backlog beyond that loses the oldest, read or not, though every in-sync replica had answered"),
		set("kafka", "client-retries", "kafka", "default", ProfileDiskAsync, "acks=all&retries=3", "kafka-go's producer retries: a lost answer is a second copy, and no error"),
		set("kafka", "franz-idempotent", "kafka", "default", ProfileDiskAsync, "acks=all&client=franz&retries=3", "franz-go's idempotent producer retries: what is sent again has its number, and the broker stores it once"),
		set("nats", "default", "nats", "default", ProfileDiskAsync, "", "written before the answer, synced every two minutes: a killed server forgets nothing, a power cut up to two minutes"),
		set("nats", "sync-always", "nats", "sync-always", ProfileDiskSync, "", "synced before the answer: sync_interval: always"),
		set("postgres", "default", "postgres", "default", ProfileDiskSync, "", "a row in a table, SKIP LOCKED; synchronous_commit: the log is synced before the answer"),
		set("postgres", "async-commit", "postgres", "async-commit", ProfileMemory, "", "a row in a table, SKIP LOCKED; synchronous_commit off: a killed server, or a power cut, forgets up to 0.6 s"),
		set("kafka-3", "acks-1", "kafka-3", "cluster", ProfileMemory, "acks=1&"+threeKafkas, "three nodes, and the leader alone answers: what its followers have not got dies with it"),
		set("kafka-3", "acks-all", "kafka-3", "cluster", ProfileDiskAsync, "acks=all&"+threeKafkas, "three nodes, of which two at least have it before the answer: min.insync.replicas=2"),
		set("rabbitmq-3", "quorum", "rabbitmq-3", "cluster", ProfileDiskSync, "type=quorum&members=3", "three nodes, of which two at least have synced it before the confirm; without two nobody answers"),
		set("redis-sentinel", "list", "redis-sentinel", "aof-everysec", ProfileAtMostOnce, "", "a master, a replica and three Sentinels: what the replica has not got is lost by a failover"),
		set("redis-sentinel", "list-min-replicas", "redis-sentinel", "replicated", ProfileAtMostOnce, "", "likewise, and the master refuses writes a second or two after its replica fell silent: what it took until then is lost"),
		set("redis-sentinel", "list-wait", "redis-sentinel", "aof-everysec", ProfileAtMostOnce, "wait=1", "likewise, and accepted once the replica has it: WAIT 1"),
	}
}

// CoreSettings lists those that the suites measure: the guarantees of the queues
// that people choose between. The others are measured by the crash lab, and
// where they are asked for by name.
func CoreSettings() []Setting {
	core := []string{
		"memory/bounded", "redis-list/no-persistence", "redis-list/aof-everysec", "redis-list/aof-always", "redis-pubsub/default",
		"redis-streams/no-persistence", "redis-streams/aof-everysec", "redis-streams/aof-always",
		"rabbitmq/transient", "rabbitmq/classic", "rabbitmq/quorum", "kafka/acks-0", "kafka/acks-1", "kafka/acks-all",
	}
	return slices.DeleteFunc(Settings(), func(s Setting) bool { return !slices.Contains(core, s.String()) })
}

// SelectSettings returns the settings of a comma-separated list of backends or
// backend/setting names; "all" and "" are every setting.
func SelectSettings(list string) ([]Setting, error) { return selectFrom(Settings(), list) }

// SelectCore is SelectSettings for the suites: "all" and the name of a backend
// stand for its core settings, if it has any.
func SelectCore(list string) ([]Setting, error) {
	core := CoreSettings()
	if list == "" || list == "all" {
		return core, nil
	}
	var chosen []Setting
	for name := range strings.SplitSeq(list, ",") {
		some, err := selectFrom(core, name)
		if err != nil {
			if some, err = SelectSettings(name); err != nil {
				return nil, err
			}
		}
		chosen = append(chosen, some...)
	}
	return chosen, nil
}

func selectFrom(all []Setting, list string) ([]Setting, error) {
	if list == "" || list == "all" {
		return all, nil
	}
	var chosen []Setting
	for _, want := range strings.Split(list, ",") {
		want, slow, err := cutSlow(strings.TrimSpace(want))
		if err != nil {
			return nil, err
		}
		n := len(chosen)
		for _, s := range all {
			if s.Backend == want || s.String() == want {
				s.Slow = slow
				chosen = append(chosen, s)
			}
		}
		if len(chosen) == n {
			var names []string
			for _, s := range all {
				if len(names) == 0 || names[len(names)-1] != s.Backend {
					names = append(names, s.Backend)
				}
			}
			return nil, fmt.Errorf("unknown backend or setting %q: the backends are %s; `queuelab list` shows the settings", want, strings.Join(names, ", "))
		}
	}
	return chosen, nil
}

// cutSlow reads a setting that is to be spoiled on purpose, as in
// redis-streams/aof-always+slow=20%: the proof that a comparison finds it.
func cutSlow(want string) (name string, slow float64, err error) {
	name, percent, has := strings.Cut(want, "+slow=")
	if !has {
		return want, 0, nil
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(percent, "%"), 64)
	if err != nil || !(n > 0 && n <= 1000) {
		return "", 0, fmt.Errorf("%q: want +slow=20%%, more than 0 and at most 1000 per cent", want)
	}
	return name, n / 100, nil
}
