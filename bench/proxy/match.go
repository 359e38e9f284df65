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

// Published matches the answer to a publish that was taken: for RabbitMQ an ack,
// since confirms are the only answers that are paired there.
func Published(kind string) Match {
	switch kind {
	case "rabbitmq":
		return func(_, reply []byte) bool {
			_, method := amqpMethod(reply)
			return method == basicAck
		}
	case "kafka":
		return KafkaRequest(KafkaProduce)
	}
	return RedisTook("lpush", "rpush", "xadd", "publish", "zadd", "spublish", "hset", "eval", "evalsha")
}

// Received matches an answer that brings messages to a consumer which had asked
// for them. Nothing is paired with what a broker pushes.
func Received(kind string) Match {
	if kind == "kafka" {
		return KafkaRequest(KafkaFetch)
	}
	return RedisTook("brpop", "blpop", "rpop", "lpop", "lmpop", "blmpop", "brpoplpush", "rpoplpush", "lmove", "blmove",
		"xread", "xreadgroup", "zpopmin", "bzpopmin", "bzmpop", "zmpop")
}
