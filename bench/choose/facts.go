package choose

import (
	"cmp"
	"strings"
)

// fact is what only a document tells, and where.
type fact struct {
	What   string `json:"what"`
	Source string `json:"source"`
}

// facts are what neither an open queue tells nor a trial measures, of a broker or
// of one backend on it.
type facts struct {
	Protocol   fact
	Operations fact // what must run, be installed and be watched
	Backlog    fact // where what waits is kept
	InMemory   bool // all of it must fit into memory
	Cluster    fact // empty: no setting here is of several nodes
	Order      fact // keeps a key's order though consumers compete; empty: it does not
	OrderBy    fact // likewise, with a parameter that no setting here has
	Delay      fact // empty: it has none
}

// factsOf are a backend's. What is the broker's is told once.
func factsOf(backend string) facts {
	f := brokerFacts(family(backend))
	switch backend {
	case "redis-sharded":
		f.Order = fact{"a partition, chosen by the key, is one consumer's at a time", "package doc of backends/redissharded"}
	case "redis-zset":
		f.Delay = fact{"the header delay of a message, or delay= in the URL, up to a day", "package doc of backends/rediszset"}
	case "kafka", "kafka-3":
		f.Order = fact{"a partition, chosen by the key, is one consumer's of a group at a time", "package doc of backends/kafka"}
	case "postgres":
		f.OrderBy = fact{"order=key in the queue's URL", "package doc of backends/postgres"}
	}
	switch backend {
	case "kafka-3":
		f.Operations = fact{"three Kafka nodes, each on a Java virtual machine; two of them must live", "compose/kafka-3.yml"}
		f.Cluster = fact{"three nodes, a replica on each, of which two must have it: min.insync.replicas=2", "compose/kafka/cluster.properties"}
	case "rabbitmq-3":
		f.Operations = fact{"three RabbitMQ nodes on Erlang, with one cookie; two of them must live", "compose/rabbitmq-3.yml"}
		f.Cluster = fact{"three nodes, and a quorum queue on all of them", "compose/rabbitmq-3.yml"}
	case "redis-sentinel":
		f.Operations = fact{"a Redis master, a replica, and three Sentinels that watch them", "compose/redis-sentinel.yml"}
		f.Cluster = fact{"a replica takes over when the master is dead; it copies without being waited for, unless wait= asks", "compose/redis-sentinel.yml"}
	}
	return f
}

// family is the broker that a backend is on, however many nodes it has.
func family(backend string) string {
	return cmp.Or(strings.SplitN(backend, "-", 2)[0], backend)
}

func brokerFacts(name string) facts {
	switch name {
	case "redis":
		return facts{
			Protocol:   fact{"RESP, Redis' own; a client in every language", "redis.io/docs/latest/develop/reference/protocol-spec"},
			Operations: fact{"one Redis server; memory is the limit, and maxmemory-policy must be noeviction", "compose/redis.yml"},
			Backlog:    fact{"all of it in memory, the log on disk is for restarts only", "redis.io/docs/latest/operate/oss_and_stack/management/persistence"},
			InMemory:   true,
		}
	case "rabbitmq":
		return facts{
			Protocol:   fact{"AMQP 0-9-1, a published one; others by plugins", "rabbitmq.com/docs/protocols"},
			Operations: fact{"one RabbitMQ node on Erlang; beyond a watermark of memory or disk all publishers wait", "compose/rabbitmq.yml"},
			Backlog:    fact{"on disk, with an index in memory; a long one slows publishers", "rabbitmq.com/docs/memory-use"},
		}
	case "kafka":
		return facts{
			Protocol:   fact{"Kafka's own, published and taken up by others", "kafka.apache.org/protocol"},
			Operations: fact{"one Kafka node on a Java virtual machine; disk and retention to plan for", "compose/kafka.yml"},
			Backlog:    fact{"on disk, and what was read stays for as long as retention says", "kafka.apache.org/documentation/#design"},
		}
	case "nats":
		return facts{
			Protocol:   fact{"NATS' own, text, published", "docs.nats.io/reference/reference-protocols/nats-protocol"},
			Operations: fact{"one nats-server with JetStream: a single program", "compose/nats.yml"},
			Backlog:    fact{"on disk", "docs.nats.io/nats-concepts/jetstream"},
		}
	case "postgres":
		return facts{
			Protocol:   fact{"PostgreSQL's own, and SQL", "postgresql.org/docs/current/protocol.html"},
			Operations: fact{"the PostgreSQL that you may have anyway, max_connections and vacuum to watch", "compose/postgres.yml"},
			Backlog:    fact{"on disk, in a table", "package doc of backends/postgres"},
		}
	}
	return facts{
		Protocol:   fact{"none: calls in one process", "package doc of backends/memory"},
		Operations: fact{"nothing", "package doc of backends/memory"},
		Backlog:    fact{"in the process", "package doc of backends/memory"},
		InMemory:   true,
	}
}
