package wire_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// conversation is what both sides say, and the texts to be read.
type conversation struct {
	kind, name string
	said       []piece
	want       []string
}

func says(s string) piece    { return piece{true, []byte(s)} }
func answers(s string) piece { return piece{false, []byte(s)} }

// resp is a command as clients send it.
func resp(args ...string) string {
	b := fmt.Sprintf("*%d\r\n", len(args))
	for _, a := range args {
		b += fmt.Sprintf("$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

// conversations are short ones of each kind.
func conversations() []conversation {
	return slices.Concat(redisTalks(), amqpTalks(), kafkaTalks(), postgresTalks(), httpTalks())
}

func redisTalks() []conversation {
	long := strings.Repeat("é", 100<<10)
	return []conversation{
		{"redis", "a pipeline is answered in order", []piece{says(resp("lpush", "q", "a b") + resp("brpop", "q", "0") + resp("nosuch")), answers(":1\r\n*2\r\n$1\r\nq\r\n$3\r\na b\r\n-ERR unknown\r\n")},
			[]string{`> LPUSH/q/ LPUSH q "a b"`, `> BRPOP/q/ BRPOP q 0`, `> NOSUCH// NOSUCH`, `< LPUSH/q/ -> (integer) 1`, `< BRPOP/q/ -> 1) "q" 2) "a b"`, `< NOSUCH// -> (error) ERR unknown`}},
		{"redis", "passwords are not shown", []piece{says(resp("AUTH", "lab", "pa55word") + resp("hello", "3", "auth", "lab", "pa55word", "setname", "x") + resp("config", "set", "requirepass", "pa55word", "maxmemory", "1") + resp("ACL", "SETUSER", "lab", "on", ">pa55word", "~*") + "AUTH pa55word\r\n")},
			[]string{`~> AUTH// AUTH xxxxx xxxxx`, `~> HELLO// HELLO 3 auth xxxxx xxxxx setname x`, `> CONFIG SET// CONFIG SET requirepass xxxxx maxmemory 1`, `> ACL SETUSER// ACL SETUSER lab on xxxxx ~*`, `~> AUTH// AUTH xxxxx`}},
		{"redis", "scripts are shown by their first lines", []piece{says(resp("eval", "\n  local a = 1\n  return a\n", "1", "k", "v") + resp("EVALSHA", strings.Repeat("ab", 20), "0", "1796068201614-0") + resp("script", "load", "return 1") + resp("fcall", "take", "1", "k", "v"))},
			[]string{`> EVAL/k/ EVAL "local a = 1"… 1 k v`, `> EVALSHA//1796068201614-0 EVALSHA abababab… 0 1796068201614-0`, `~> SCRIPT LOAD// SCRIPT LOAD "return 1"`, `> FCALL/k/ FCALL take 1 k v`}},
		{"redis", "RESP3 has maps, pushes and more", []piece{says(resp("SUBSCRIBE", "c") + resp("XADD", "s", "*", "id", "x") + resp("GET", "n") + resp("HGETALL", "h")), answers(">3\r\n+subscribe\r\n+c\r\n:1\r\n$15\r\n1796068201614-0\r\n>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n_\r\n|1\r\n+ttl\r\n:1\r\n%2\r\n+a\r\n#t\r\n=6\r\ntxt:bb\r\n*2\r\n,1.5\r\n~1\r\n(12\r\n")},
			[]string{`> SUBSCRIBE/c/ SUBSCRIBE c`, `> XADD/s/ XADD s * id x`, `> GET/n/ GET n`, `> HGETALL/h/ HGETALL h`, `< SUBSCRIBE/c/ -> 1) subscribe 2) c 3) (integer) 1`, `< XADD/s/1796068201614-0 -> "1796068201614-0"`, `< MESSAGE/c/ -> 1) "message" 2) "c" 3) "hi"`, `< GET/n/ -> (nil)`, `< HGETALL/h/ -> {a: (true), "bb": [(number) 1.5 [(number) 12]]}`}},
		{"redis", "before RESP3 messages are arrays", []piece{says(resp("SUBSCRIBE", "c") + resp("PING")), answers("*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n*2\r\n$4\r\npong\r\n$0\r\n\r\n")},
			[]string{`> SUBSCRIBE/c/ SUBSCRIBE c`, `~> PING// PING`, `< SUBSCRIBE/c/ -> 1) "subscribe" 2) "c" 3) (integer) 1`, `< MESSAGE/c/ -> 1) "message" 2) "c" 3) "hi"`, `~< PING// -> 1) "pong" 2) ""`}},
		{"redis", "what is long is cut and counted", []piece{says(resp("SET", "k", long) + resp("GET", "k")), answers("+OK\r\n$204800\r\n" + long + "\r\n")},
			[]string{`> SET/k/ SET k "` + strings.Repeat("é", 100) + `"… (204800 bytes)`, `> GET/k/ GET k`, `< SET/k/ -> OK`, `< GET/k/ -> "` + strings.Repeat("é", 100) + `"… (204800 bytes)`}},
		{"redis", "waiting in vain is dull", []piece{says(resp("BRPOP", "q", "1")), answers("*-1\r\n"), says(resp("BRPOP", "q", "1")), answers("*-1\r\n"), says(resp("BRPOP", "q", "2"))},
			[]string{`> BRPOP/q/ BRPOP q 1`, `~< BRPOP/q/ -> (nil)`, `~> BRPOP/q/ BRPOP q 1`, `~< BRPOP/q/ -> (nil)`, `> BRPOP/q/ BRPOP q 2`}},
		{"redis", "what is no RESP is not read", []piece{says("*1\r\n!x\r\n" + resp("PING")), answers("HTTP/1.1 400\r\n+OK\r\n")},
			[]string{`> // this does not follow RESP: what the client says from here on is not read`, `< // this does not follow RESP: what the server says from here on is not read`}},
	}
}

// amqp is a frame.
func amqp(kind byte, channel uint16, parts ...any) string {
	var b bytes.Buffer
	for _, p := range parts {
		if s, ok := p.(string); ok { // short
			p = append([]byte{byte(len(s))}, s...)
		}
		_ = binary.Write(&b, binary.BigEndian, p)
	}
	f := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16([]byte{kind}, channel), uint32(b.Len()))
	return string(append(append(f, b.Bytes()...), 0xCE))
}

func call(channel uint16, class, method uint16, parts ...any) string {
	return amqp(1, channel, append([]any{class, method}, parts...)...)
}

func content(channel uint16, id, body string) string {
	half := len(body) / 2
	return amqp(2, channel, uint16(60), uint16(0), uint64(len(body)), uint16(1<<12|1<<7), byte(2), id) + amqp(3, channel, []byte(body[:half])) + amqp(3, channel, []byte(body[half:]))
}

func amqpTalks() []conversation {
	none := []byte{0, 0, 0, 0}
	open := "AMQP\x00\x00\x09\x01" + call(0, 10, 11, none, "PLAIN", []byte("\x00\x00\x00\x0d\x00lab\x00pa55word")) + call(1, 20, 10, "")
	opened := []string{"~> AMQP// AMQP 0 9 1", "~> connection.start// connection.start-ok xxxxx", "~> channel.open// channel.open"}
	return []conversation{
		{"rabbitmq", "publishes are confirmed by their numbers", []piece{says(open + call(1, 85, 10, byte(0)) + call(1, 60, 40, uint16(0), "", "q", byte(1)) + content(1, "m1", "order 1") + call(1, 60, 40, uint16(0), "x", "k", byte(0)) + content(1, "m2", "order 2")), answers(call(1, 60, 80, uint64(2), byte(1)))},
			append(slices.Clone(opened), "> confirm.select// confirm.select", `> basic.publish/q/1 basic.publish #1 exchange="" routing-key=q mandatory persistent message-id=m1 7 bytes "order 1"`, `> basic.publish/x/2 basic.publish #2 exchange=x routing-key=k persistent message-id=m2 7 bytes "order 2"`, "< basic.publish/x/2 basic.ack tag=2 multiple")},
		{"rabbitmq", "deliveries know their queue", []piece{says(open + call(1, 60, 10, uint32(0), uint16(9), byte(0)) + call(1, 60, 20, uint16(0), "q", "c", byte(0), none)), answers(call(1, 60, 21, "c") + call(1, 60, 60, "c", uint64(7), byte(1), "", "q") + content(1, "m1", strings.Repeat("x", 100))), says(call(1, 60, 120, uint64(7), byte(2))), answers(amqp(8, 0))},
			append(slices.Clone(opened), "> basic.qos// basic.qos prefetch=9", "> basic.consume/q/ basic.consume queue=q consumer-tag=c", "< basic.consume/q/ basic.consume-ok consumer-tag=c",
				`< basic.deliver/q/7 basic.deliver queue=q consumer-tag=c tag=7 redelivered exchange="" routing-key=q persistent message-id=m1 100 bytes "`+strings.Repeat("x", 80)+`"…`, "> basic.nack/q/7 basic.nack tag=7 requeue=true", "~< heartbeat// heartbeat")},
		{"rabbitmq", "returns and refusals are told", []piece{says(open), answers(call(1, 60, 50, uint16(312), "NO_ROUTE", "", "q") + content(1, "m1", "") + call(1, 20, 40, uint16(406), "PRECONDITION_FAILED", uint16(50), uint16(10)))},
			append(slices.Clone(opened), `< basic.return/q/m1 basic.return code=312 text=NO_ROUTE exchange="" routing-key=q persistent message-id=m1 0 bytes`, "< channel.close// channel.close code=406 text=PRECONDITION_FAILED")},
		{"rabbitmq", "tables are shown", []piece{says(open + call(1, 50, 10, uint16(0), "q", byte(2), []byte{0, 0, 0, 24}, "x-queue-type", []byte("S\x00\x00\x00\x06quorum")))},
			append(slices.Clone(opened), "> queue.declare/q/ queue.declare queue=q durable arguments={x-queue-type=quorum}")},
		{"rabbitmq", "what is no frame is not read", []piece{says("GET / HTTP/1.1\r\n")}, []string{"> // this does not follow AMQP 0-9-1: what the client says from here on is not read"}},
	}
}

// kafkaAsks is a request with its head.
func kafkaAsks(id int32, req kmsg.Request) piece {
	b := binary.BigEndian.AppendUint16(nil, uint16(req.Key()))
	b = binary.BigEndian.AppendUint16(b, uint16(req.GetVersion()))
	b = binary.BigEndian.AppendUint32(b, uint32(id))
	b = append(b, 0, 3, 'l', 'a', 'b')
	if req.IsFlexible() {
		b = append(b, 0)
	}
	b = req.AppendTo(b)
	return piece{true, append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)}
}

func kafkaAnswers(id int32, resp kmsg.Response) piece {
	b := binary.BigEndian.AppendUint32(nil, uint32(id))
	if resp.IsFlexible() {
		b = append(b, 1, 5, 2, 'x', 'y') // a tag that nobody knows
	}
	b = resp.AppendTo(b)
	return piece{false, append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)}
}

// batch holds records with the key ann.
func batch(base int64, zipped bool, values ...string) []byte {
	var rs []byte
	for i, v := range values {
		r := kmsg.Record{OffsetDelta: int32(i), Key: []byte("ann"), Value: []byte(v)}
		r.Length = int32(len(r.AppendTo(nil)) - 1)
		rs = r.AppendTo(rs)
	}
	b := kmsg.RecordBatch{FirstOffset: base, Magic: 2, NumRecords: int32(len(values)), Records: rs}
	if zipped {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		_, _ = w.Write(rs)
		w.Close()
		b.Records, b.Attributes = z.Bytes(), 1
	}
	b.Length = int32(49 + len(b.Records))
	b.CRC = int32(crc32.Checksum(b.AppendTo(nil)[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b.AppendTo(nil)
}

func kafkaTalks() []conversation {
	id := [16]byte{1, 2}
	name := "orders"
	produce := func(version, acks int16, records []byte) *kmsg.ProduceRequest {
		return &kmsg.ProduceRequest{Version: version, Acks: acks, Topics: []kmsg.ProduceRequestTopic{{Topic: name, Partitions: []kmsg.ProduceRequestTopicPartition{{Partition: 3, Records: records}}}}}
	}
	produced := &kmsg.ProduceResponse{Version: 9, Topics: []kmsg.ProduceResponseTopic{{Topic: name, Partitions: []kmsg.ProduceResponseTopicPartition{{Partition: 3, BaseOffset: 41}, {Partition: 4, BaseOffset: -1, ErrorCode: 6}}}}}
	fetch := &kmsg.FetchRequest{Version: 13, MaxWaitMillis: 500, Topics: []kmsg.FetchRequestTopic{{TopicID: id, Partitions: []kmsg.FetchRequestTopicPartition{{Partition: 3, FetchOffset: 41}}}}}
	fetched := &kmsg.FetchResponse{Version: 13, Topics: []kmsg.FetchResponseTopic{{TopicID: id, Partitions: []kmsg.FetchResponseTopicPartition{{Partition: 3, HighWatermark: 43, RecordBatches: append(batch(41, true, "order 1", "order 2"), batch(43, false, "cut")[:40]...)}}}}}
	long := kafkaAsks(1, produce(7, -1, make([]byte, 80<<10)))
	return []conversation{
		{"kafka", "a produce and its offset", []piece{kafkaAsks(1, produce(7, 0, batch(0, false, "order 0"))), kafkaAsks(2, produce(9, -1, batch(0, false, "order 1", "order 2"))), kafkaAnswers(2, produced)},
			[]string{`> Produce v7/orders/ Produce v7 topic=orders partition=3 acks=0 1 record key=ann "order 0"`, `> Produce v9/orders/ Produce v9 topic=orders partition=3 acks=-1 2 records key=ann "order 1"`,
				"< Produce v9/orders/3/41 Produce: topic=orders partition=3 offset=41 error=none topic=orders partition=4 offset=-1 error=NOT_LEADER_FOR_PARTITION"}},
		{"kafka", "a fetch by the topic's id, compressed", []piece{
			kafkaAsks(7, &kmsg.MetadataRequest{Version: 12}), kafkaAnswers(7, &kmsg.MetadataResponse{Version: 12, Topics: []kmsg.MetadataResponseTopic{{Topic: &name, TopicID: id}}}),
			kafkaAsks(8, fetch), kafkaAnswers(8, fetched), kafkaAsks(9, fetch), kafkaAnswers(9, &kmsg.FetchResponse{Version: 13})},
			[]string{"~> Metadata v12// Metadata v12 (18 bytes)", "~< Metadata v12// Metadata: topic=orders partitions=0 error=none",
				"> Fetch v13/orders/3/41 Fetch v13 topic=orders partition=3 offset=41 max-wait=500ms", `< Fetch v13/orders/3/41 Fetch: topic=orders partition=3 2 records from 41 key=ann "order 1" and the beginning of more high-watermark=43 error=none`,
				"~> Fetch v13/orders/3/41 Fetch v13 topic=orders partition=3 offset=41 max-wait=500ms", "~< Fetch v13/orders/ Fetch: nothing"}},
		{"kafka", "passwords are not shown, a failed heartbeat is", []piece{kafkaAsks(1, &kmsg.SASLAuthenticateRequest{SASLAuthBytes: []byte("\x00lab\x00pa55word")}), kafkaAsks(2, &kmsg.HeartbeatRequest{Version: 4, Group: "g", Generation: 2, MemberID: "m"}), kafkaAnswers(2, &kmsg.HeartbeatResponse{Version: 4, ErrorCode: 27})},
			[]string{"~> SASLAuthenticate v0// SASLAuthenticate v0 xxxxx", "~> Heartbeat v4/g/ Heartbeat v4 group=g generation=2 member=m", "< Heartbeat v4/g/ Heartbeat: error=REBALANCE_IN_PROGRESS"}},
		{"kafka", "what is not understood is named by its size", []piece{long, kafkaAsks(2, &kmsg.HeartbeatRequest{Version: 99}), says("\x00\x00\x00\x08\x7f\x7f\x00\x00\x00\x00\x00\x00"), says("\xff\xff\xff\xff")},
			[]string{fmt.Sprintf("> Produce v7// Produce v7 (%d bytes, not read: too long)", len(long.bytes)-4), "~> Heartbeat v99// Heartbeat v99 (22 bytes, not read: of a version that is not known here)", "> // a request that nobody knows (8 bytes)", "> // this does not follow Kafka's protocol: what the client says from here on is not read"}},
	}
}

func pg(ms ...interface {
	Encode([]byte) ([]byte, error)
}) string {
	var b []byte
	for _, m := range ms {
		b, _ = m.Encode(b)
	}
	return string(b)
}

func postgresTalks() []conversation {
	start := says(pg(&pgproto3.StartupMessage{ProtocolVersion: 3 << 16, Parameters: map[string]string{"user": "lab"}}))
	return []conversation{
		{"postgres", "a prepared statement with its values", []piece{says("\x00\x00\x00\x08\x04\xd2\x16\x2f"), answers("N"), start, answers(pg(&pgproto3.AuthenticationCleartextPassword{})), says(pg(&pgproto3.PasswordMessage{Password: "pa55word"})), answers(pg(&pgproto3.AuthenticationOk{}, &pgproto3.ReadyForQuery{TxStatus: 'I'})),
			says(pg(&pgproto3.Parse{Name: "s", Query: "INSERT INTO orders (id, n)\n VALUES ($1, $2)"}, &pgproto3.Describe{ObjectType: 'S', Name: "s"}, &pgproto3.Sync{})), answers(pg(&pgproto3.ParseComplete{}, &pgproto3.ParameterDescription{ParameterOIDs: []uint32{25, 23}}, &pgproto3.NoData{}, &pgproto3.ReadyForQuery{TxStatus: 'I'})),
			says(pg(&pgproto3.Bind{PreparedStatement: "s", ParameterFormatCodes: []int16{0, 1}, Parameters: [][]byte{[]byte("A"), {0xff, 0xff, 0xff, 0xfe}}}, &pgproto3.Execute{}, &pgproto3.Sync{})), answers(pg(&pgproto3.BindComplete{}, &pgproto3.CommandComplete{CommandTag: []byte("INSERT 0 1")}, &pgproto3.ReadyForQuery{TxStatus: 'I'}))},
			[]string{"~> startup// may it be encrypted?", "~< startup// -> not encrypted", "~> startup// startup, protocol 3.0", "~< startup// -> authentication 3", "~> password// password xxxxx", "~< startup// -> authentication 0",
				"~> INSERT/orders/ Parse INSERT INTO orders (id, n) VALUES ($1, $2)", "> INSERT/orders/ INSERT INTO orders (id, n) VALUES ($1, $2) [$1=A $2=-2]", "< INSERT/orders/ -> INSERT 0 1"}},
		{"postgres", "rows, errors and passwords", []piece{start, says(pg(&pgproto3.Query{String: "SELECT id FROM orders"})), answers(pg(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("id"), DataTypeOID: 25}}}, &pgproto3.DataRow{Values: [][]byte{[]byte("A")}}, &pgproto3.DataRow{Values: [][]byte{nil}}, &pgproto3.CommandComplete{CommandTag: []byte("SELECT 2")}, &pgproto3.ReadyForQuery{TxStatus: 'I'})),
			says(pg(&pgproto3.Query{String: "ALTER ROLE lab PASSWORD 'pa55word'"})), answers(pg(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "42501", Message: "no"}, &pgproto3.ReadyForQuery{TxStatus: 'I'}))},
			[]string{"~> startup// startup, protocol 3.0", "> SELECT/orders/ SELECT id FROM orders", "< SELECT/orders/ -> SELECT 2: 2 rows, the first (A)", "> ALTER// ALTER ROLE lab PASSWORD xxxxx", "< ALTER// -> error 42501 no"}},
		{"postgres", "what is encrypted is not read", []piece{says("\x00\x00\x00\x08\x04\xd2\x16\x2f"), answers("S\x16\x03"), says("\x16\x03\x01")},
			[]string{"~> startup// may it be encrypted?", "< startup// -> encrypted: what is said from here on is not read"}},
	}
}

func httpTalks() []conversation {
	return []conversation{
		{"http", "orders and their answers", []piece{says("POST /api/orders?token=pa55word HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer pa55word\r\nContent-Type: application/json\r\nContent-Length: 39\r\n\r\n{\"voucher\":\"v1\",\"password\":\"pa55word\" }\n"), answers("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"id\"\r\n6;x=y\r\n:\"A1\"}\r\n0\r\n\r\n"), says("GET /metrics HTTP/1.1\r\n\r\nHEAD /x HTTP/1.1\r\n\r\n"), answers("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 200\r\n\r\n" + strings.Repeat("m", 200) + "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")},
			[]string{`> POST /api/orders//api/orders/ POST /api/orders?token=xxxxx {"voucher":"v1","password":"xxxxx" }`, "~< // -> 100 Continue", `< POST /api/orders//api/orders/ -> 202 Accepted {"id":"A1"}`, "~> GET /metrics//metrics/ GET /metrics", "> HEAD /x//x/ HEAD /x", "~< GET /metrics//metrics/ -> 200 OK " + strings.Repeat("m", 120) + "… (200 bytes)", "< HEAD /x//x/ -> 404 Not Found", "< // -> 204 No Content"}},
		{"http", "events have lines", []piece{says("GET /events HTTP/1.1\r\n\r\n"), answers("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: 1\ndata: {\"left\":3}\n\ndata: b\n")},
			[]string{"> GET /events//events/ GET /events", "< GET /events//events/ -> 200 OK", `< GET /events//events/ -> event data: {"left":3}`, "< GET /events//events/ -> event data: b"}},
		{"http", "what is not HTTP is not read", []piece{says("\x16\x03\x01\n")}, []string{"> // this does not follow HTTP/1.1: what the client says from here on is not read"}},
	}
}

func TestConversationsAreRead(t *testing.T) {
	for _, c := range conversations() {
		t.Run(c.kind+": "+c.name, func(t *testing.T) {
			var got []string
			for _, l := range read(t, c.kind, c.said) {
				who := "< "
				if l.Client {
					who = "> "
				}
				if l.Noise {
					who = "~" + who
				}
				got = append(got, fmt.Sprintf("%s%s/%s/%s %s", who, l.Command, l.Subject, l.ID, l.Text))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			for _, l := range got {
				if strings.Contains(l, "pa55word") {
					t.Errorf("a password is shown: %s", l)
				}
			}
		})
	}
}
