package proxy

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
)

// Contains matches answers to requests that hold the text, in whatever case.
func Contains(text string) Match {
	want := bytes.ToLower([]byte(text))
	return func(request, _ []byte) bool { return bytes.Contains(bytes.ToLower(request), want) }
}

// RedisCommand matches answers to requests that begin with one of the commands.
func RedisCommand(names ...string) Match {
	return func(request, _ []byte) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, redisName(request)) })
	}
}

// RedisTook is RedisCommand for answers that bring something: neither nil nor an
// error.
func RedisTook(names ...string) Match {
	asked := RedisCommand(names...)
	return func(request, reply []byte) bool { return asked(request, reply) && !RedisNothing(reply) }
}

// RedisNothing reports whether a reply is nil, empty or an error.
func RedisNothing(reply []byte) bool {
	for _, begin := range []string{"*-1\r", "$-1\r", "*0\r", "%0\r", "_\r", "-"} {
		if bytes.HasPrefix(reply, []byte(begin)) {
			return true
		}
	}
	return false
}

// redisName is the name of the command that a request begins with: "*N", then
// "$length", then the name.
func redisName(request []byte) string {
	lines := bytes.SplitN(request, []byte("\r\n"), 4)
	if len(lines) < 4 || !bytes.HasPrefix(lines[0], []byte("*")) || !bytes.HasPrefix(lines[1], []byte("$")) {
		return ""
	}
	if n, err := strconv.Atoi(string(lines[1][1:])); err != nil || n != len(lines[2]) {
		return ""
	}
	return string(lines[2])
}

// The api keys of Kafka's protocol that lose something.
const (
	KafkaProduce      = 0
	KafkaFetch        = 1
	KafkaOffsetCommit = 8
)

// KafkaRequest matches answers to one kind of request.
func KafkaRequest(apiKey int16) Match {
	return func(request, _ []byte) bool {
		return len(request) >= 6 && int16(binary.BigEndian.Uint16(request[4:])) == apiKey
	}
}

// Published matches the answer to a publish that was taken. Of RabbitMQ it is an
// ack, since confirms are the only answers that are paired there; of PostgreSQL
// the tag of an INSERT, and of NATS what JetStream says of a message it stored,
// which are proof by themselves.
func Published(kind string) Match {
	switch kind {
	case "rabbitmq":
		return func(_, reply []byte) bool {
			_, method := amqpMethod(reply)
			return method == basicAck
		}
	case "kafka":
		return KafkaRequest(KafkaProduce)
	case "postgres":
		return holds("INSERT 0 ")
	case "nats":
		return holds(`"seq":`)
	}
	return RedisTook("lpush", "rpush", "xadd", "publish", "zadd", "hset", "multi", "eval", "evalsha")
}

// Received matches an answer that brings messages to a consumer which had asked
// for them. Nothing is paired with what a broker pushes.
func Received(kind string) Match {
	switch kind {
	case "kafka":
		return KafkaRequest(KafkaFetch)
	case "postgres":
		return holds("2\x00\x00\x00\x04D") // a statement was bound, and a row follows
	}
	pops := RedisTook("brpop", "blpop", "rpop", "lpop", "lmpop", "blmpop", "brpoplpush", "rpoplpush", "lmove", "blmove",
		"xread", "xreadgroup", "zpopmin", "bzpopmin", "bzmpop", "zmpop")
	scripts := RedisTook("eval", "evalsha")
	return func(request, reply []byte) bool {
		// What a script says that settles is shorter than a message.
		return pops(request, reply) || len(reply) >= 64 && scripts(request, reply)
	}
}

func holds(text string) Match {
	return func(_, reply []byte) bool { return bytes.Contains(reply, []byte(text)) }
}

// Messages is how many a publish holds, at least one. Where only the broker's
// library knows it is one.
func Messages(kind string, request []byte) int {
	if kind != "redis" {
		return 1
	}
	switch name := redisName(request); strings.ToLower(name) {
	case "lpush", "rpush": // the command and the key, and one each
		n, _, _ := bytes.Cut(request[1:], []byte("\r\n"))
		values, err := strconv.Atoi(string(n))
		if err == nil {
			return max(1, values-2)
		}
	case "xadd", "publish": // a pipeline of them
		return max(1, bytes.Count(request, []byte("\r\n"+name+"\r\n")))
	}
	return 1
}
