package proxy

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pieced says what both sides say, in pieces of any size, and returns what
// passed and whether something was lost.
func pieced(r *rand.Rand, d dialogue, m Match, turns ...[2][]byte) (passed []byte, lost bool) {
	cut := func(b []byte, do func([]byte)) {
		for len(b) > 0 {
			n := 1 + r.IntN(len(b))
			do(b[:n])
			b = b[n:]
		}
	}
	for _, turn := range turns {
		cut(turn[0], d.request)
		cut(turn[1], func(b []byte) {
			if lost {
				return
			}
			var pass []byte
			pass, lost = d.reply(b, m)
			passed = append(passed, pass...)
		})
	}
	return passed, lost
}

func kafkaFrame(parts ...any) []byte {
	var b bytes.Buffer
	for _, p := range parts {
		_ = binary.Write(&b, binary.BigEndian, p)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(b.Len())), b.Bytes()...)
}

func kafkaAsk(key int16, id int32, body string) []byte {
	return kafkaFrame(key, int16(8), id, []byte(body))
}

func kafkaSay(id int32, body string) []byte { return kafkaFrame(id, []byte(body)) }

func join(bs ...[]byte) []byte { return bytes.Join(bs, nil) }

func TestKafkaAnswersArePairedHoweverTheyAreCut(t *testing.T) {
	asks := join(kafkaAsk(3, 1, "metadata"), kafkaAsk(KafkaProduce, 2, "no answer, acks=0"), kafkaAsk(KafkaFetch, 3, ""), kafkaAsk(KafkaProduce, 4, "order"), kafkaAsk(3, 5, ""))
	says := [][]byte{kafkaSay(1, "brokers"), kafkaSay(3, ""), kafkaSay(4, "stored"), kafkaSay(5, "brokers")}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		d := Kafka.dialogue()
		passed, lost := pieced(r, d, KafkaRequest(KafkaProduce), [2][]byte{asks, join(says...)})
		if want := join(says[:2]...); !lost || !bytes.Equal(passed, want) {
			t.Fatalf("seed %d: got lost %v after %q, want the answer to the produce lost, after %q", seed, lost, passed, want)
		}
		passed, lost = pieced(r, Kafka.dialogue(), KafkaRequest(KafkaOffsetCommit), [2][]byte{asks, join(says...)})
		if want := join(says...); lost || !bytes.Equal(passed, want) {
			t.Fatalf("seed %d: got lost %v after %q, want everything to pass", seed, lost, passed)
		}
	}
}

func amqpFrame(kind byte, channel uint16, parts ...any) []byte {
	var b bytes.Buffer
	for _, p := range parts {
		_ = binary.Write(&b, binary.BigEndian, p)
	}
	f := []byte{kind}
	f = binary.BigEndian.AppendUint16(f, channel)
	f = binary.BigEndian.AppendUint32(f, uint32(b.Len()))
	return append(append(f, b.Bytes()...), 0xCE)
}

func amqpCall(channel uint16, method uint32, parts ...any) []byte {
	return amqpFrame(1, channel, append([]any{method}, parts...)...)
}

func amqpConfirm(channel uint16, tag uint64, multiple byte) []byte {
	return amqpCall(channel, basicAck, tag, multiple)
}

func publishing(channel uint16, body string) []byte {
	return join(amqpCall(channel, basicPublish, uint16(0), []byte(body)), amqpFrame(2, channel, []byte("header")), amqpFrame(3, channel, []byte(body)))
}

func TestConfirmsArePairedWithTheirPublishes(t *testing.T) {
	const deliver = 60<<16 | 60
	greeting := []byte("AMQP\x00\x00\x09\x01")
	heartbeat := amqpFrame(8, 0)
	third := func(request, _ []byte) bool { return bytes.Contains(request, []byte("order 3")) }
	open := join(greeting, amqpCall(1, channelOpen, byte(0)), amqpCall(2, channelOpen, byte(0)),
		publishing(1, "before confirms"), amqpCall(1, confirmSelect, byte(0)), amqpCall(2, confirmSelect, byte(0)))
	orders := join(publishing(1, "order 1"), publishing(2, "another's"), publishing(1, "order 2"), heartbeat, publishing(1, "order 3"), publishing(1, "order 4"))
	for _, c := range []struct {
		name string
		says [][]byte
		pass int // how many of them
		lost bool
	}{
		{"one by one", [][]byte{heartbeat, amqpConfirm(1, 1, 0), amqpConfirm(2, 1, 0), amqpConfirm(1, 2, 0), amqpConfirm(1, 3, 0), amqpConfirm(1, 4, 0)}, 4, true},
		{"out of order", [][]byte{amqpConfirm(1, 4, 0), amqpConfirm(1, 2, 0), amqpConfirm(1, 3, 0)}, 2, true},
		{"many at once", [][]byte{amqpConfirm(1, 1, 0), amqpConfirm(1, 4, 1)}, 1, true},
		{"refused", [][]byte{amqpConfirm(1, 2, 1), amqpCall(1, basicNack, uint64(3), byte(0))}, 1, true},
		{"confirmed on another channel", [][]byte{amqpConfirm(2, 3, 1), amqpConfirm(1, 2, 1)}, 2, false},
		{"delivered meanwhile", [][]byte{amqpCall(2, deliver, []byte("\x03tag"), uint64(3), byte(0)), amqpConfirm(1, 1, 0)}, 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(100) {
				d := AMQP.dialogue()
				passed, lost := pieced(rand.New(rand.NewPCG(seed, 1)), d, third, [2][]byte{open, heartbeat}, [2][]byte{orders, join(c.says...)})
				if want := join(append([][]byte{heartbeat}, c.says[:c.pass]...)...); lost != c.lost || !bytes.Equal(passed, want) {
					t.Fatalf("seed %d: got lost %v after %q, want %v after %q", seed, lost, passed, c.lost, want)
				}
			}
		})
	}
}

func TestPlainAnswersBelongToWhatWasSaidBefore(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	set := []byte("*3\r\n$3\r\nset\r\n$1\r\nk\r\n$4\r\nlong\r\n")
	push := []byte("*3\r\n$5\r\nlpush\r\n$4\r\nlist\r\n$7\r\norder 1\r\n")
	brpop := []byte("*3\r\n$5\r\nBRPOP\r\n$4\r\nlist\r\n$1\r\n1\r\n")
	for _, c := range []struct {
		name  string
		match Match
		turns [][2]string
		pass  string
		lost  bool
	}{
		{"the command's own answer", RedisCommand("LPUSH"), [][2]string{{string(set), "+OK\r\n"}, {string(push), ":1\r\n"}}, "+OK\r\n", true},
		{"a text within a message is no command", RedisCommand("order"), [][2]string{{string(push), ":1\r\n"}}, ":1\r\n", false},
		{"nothing taken is nothing lost", RedisTook("brpop"), [][2]string{{string(brpop), "*-1\r\n"}, {string(brpop), "_\r\n"}, {string(brpop), "-ERR no\r\n"}}, "*-1\r\n_\r\n-ERR no\r\n", false},
		{"a message that was taken", RedisTook("brpop"), [][2]string{{string(brpop), "*-1\r\n"}, {string(brpop), "*2\r\n$4\r\nlist\r\n$7\r\norder 1\r\n"}}, "*-1\r\n", true},
		{"what nobody asked for", Contains(""), [][2]string{{"", "+hello\r\n"}}, "+hello\r\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Plain.dialogue()
			var passed []byte
			var lost bool
			for _, turn := range c.turns {
				p, l := pieced(r, d, c.match, [2][]byte{[]byte(turn[0]), nil})
				if turn[1] != "" {
					p, l = d.reply([]byte(turn[1]), c.match)
				}
				passed, lost = append(passed, p...), lost || l
			}
			if diff := cmp.Diff(c.pass, string(passed)); diff != "" || lost != c.lost {
				t.Errorf("got lost %v, want %v, passed (-want +got):\n%s", lost, c.lost, diff)
			}
		})
	}
}

func TestAPublishTellsHowManyMessagesItHolds(t *testing.T) {
	add := "*5\r\n$4\r\nxadd\r\n$1\r\ns\r\n$1\r\n*\r\n$2\r\nid\r\n$1\r\n7\r\n"
	for _, c := range []struct {
		kind, request string
		want          int
	}{
		{"redis", "*3\r\n$5\r\nlpush\r\n$1\r\nq\r\n$1\r\nA\r\n", 1},
		{"redis", "*5\r\n$5\r\nlpush\r\n$1\r\nq\r\n$1\r\nA\r\n$1\r\nB\r\n$1\r\nC\r\n", 3},
		{"redis", add + add + add, 3},
		{"redis", "*1\r\n$4\r\nping\r\n", 1},
		{"redis", "nonsense", 1},
		{"kafka", "*5\r\n$5\r\nlpush\r\n", 1},
	} {
		if got := Messages(c.kind, []byte(c.request)); got != c.want {
			t.Errorf("got %d for %q, want %d", got, c.request, c.want)
		}
	}
}

func TestWhatIsTakenIsMatched(t *testing.T) {
	lpush := "*3\r\n$5\r\nlpush\r\n$1\r\nq\r\n$1\r\nA\r\n"
	brpop := "*3\r\n$5\r\nbrpop\r\n$1\r\nq\r\n$1\r\n1\r\n"
	script := "*3\r\n$7\r\nevalsha\r\n$1\r\nx\r\n$1\r\n0\r\n"
	long := "*1\r\n$64\r\n" + string(bytes.Repeat([]byte("x"), 64)) + "\r\n"
	for _, c := range []struct {
		name           string
		match          Match
		request, reply string
		want           bool
	}{
		{"a push", Published("redis"), lpush, ":1\r\n", true},
		{"a push that was refused", Published("redis"), lpush, "-OOM\r\n", false},
		{"a pop is no publish", Published("redis"), brpop, "*2\r\n", false},
		{"a pop", Received("redis"), brpop, "*2\r\n$1\r\nq\r\n", true},
		{"a pop of nothing", Received("redis"), brpop, "$-1\r\n", false},
		{"a script that brings a message", Received("redis"), script, long, true},
		{"a script that settles", Received("redis"), script, ":1\r\n", false},
		{"an ack", Published("rabbitmq"), "", string(amqpConfirm(1, 1, 0)), true},
		{"a nack", Published("rabbitmq"), "", string(amqpCall(1, basicNack, uint64(1), byte(0))), false},
		{"a produce", Published("kafka"), string(kafkaAsk(KafkaProduce, 1, "")), "", true},
		{"a fetch", Received("kafka"), string(kafkaAsk(KafkaFetch, 1, "")), "", true},
		{"a fetch is no publish", Published("kafka"), string(kafkaAsk(KafkaFetch, 1, "")), "", false},
		{"an insert", Published("postgres"), "", "C\x00\x00\x00\x0fINSERT 0 1\x00", true},
		{"a row", Received("postgres"), "", "2\x00\x00\x00\x04D\x00", true},
		{"no row", Received("postgres"), "", "2\x00\x00\x00\x04C\x00", false},
		{"JetStream's answer", Published("nats"), "", `MSG _INBOX.1 1 30\r\n{"stream":"s", "seq":1}`, true},
	} {
		if got := c.match([]byte(c.request), []byte(c.reply)); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
