package wire_test

import (
	"crypto/rand"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/backends"
	"queuelab/bench/broker/brokertest"
	"queuelab/bench/proxy"
	"queuelab/bench/wire"
	"queuelab/queue"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

// talk is what was said on all connections of one proxy.
type talk struct {
	mu    sync.Mutex
	lines []wire.Line
	on    map[int]*wire.Decoder
	said  map[int][]piece // as it passed
}

// piece is what one side said at once.
type piece struct {
	client bool
	bytes  []byte
}

// read reads a conversation anew.
func read(t testing.TB, kind string, said []piece) (lines []wire.Line) {
	t.Helper()
	d, err := wire.New(kind)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range said {
		if p.client {
			lines = append(lines, d.Client(p.bytes)...)
		} else {
			lines = append(lines, d.Server(p.bytes)...)
		}
	}
	for i := range lines {
		lines[i].At = time.Time{}
	}
	return lines
}

// byByte cuts a conversation as small as can be.
func byByte(said []piece) (cut []piece) {
	for _, p := range said {
		for i := range p.bytes {
			cut = append(cut, piece{p.client, p.bytes[i : i+1]})
		}
	}
	return cut
}

// checkCuts reads each connection again, by the byte.
func (k *talk) checkCuts(t *testing.T, kind string) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for conn, said := range k.said {
		if diff := cmp.Diff(read(t, kind, said), read(t, kind, byByte(said))); diff != "" {
			t.Errorf("connection %d reads differently by the byte (-at once +by the byte):\n%s", conn, diff)
		}
	}
}

func (k *talk) all() []wire.Line {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lines
}

// overhear puts a proxy before a shared broker, and returns what is said through
// it, and how a backend's queue goes through it.
func overhear(t *testing.T, kind string) (k *talk, through func(scheme, name, query string) string) {
	t.Helper()
	b := brokertest.Start(t, kind, "")
	listen, target, err := b.ProxyAddrs()
	if err != nil {
		t.Fatal(err)
	}
	p, err := proxy.New(listen, target, proxy.Speaks(kind))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	k = &talk{on: map[int]*wire.Decoder{}, said: map[int][]piece{}}
	t.Cleanup(func() { k.checkCuts(t, kind) })
	p.Tap(func(conn int, d proxy.Direction, bytes []byte) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.on[conn] == nil {
			if k.on[conn], err = wire.New(kind); err != nil {
				t.Error(err)
			}
		}
		k.said[conn] = append(k.said[conn], piece{d == proxy.ToServer, slices.Clone(bytes)})
		said := k.on[conn].Client
		if d == proxy.ToClient {
			said = k.on[conn].Server
		}
		for _, l := range said(bytes) {
			l.Conn = conn
			k.lines = append(k.lines, l)
		}
	})
	return k, func(scheme, name, query string) string {
		u, err := url.Parse(b.QueueURL(scheme, name, query))
		if err != nil {
			t.Fatal(err)
		}
		u.Host = p.Addr()
		return u.String()
	}
}

// carry sends one message through a queue and settles it.
func carry(t *testing.T, at, id string) {
	t.Helper()
	ctx := t.Context()
	q, err := backends.Open(ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	consumer, err := q.Consumer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	publisher, err := q.Publisher(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer publisher.Close()
	if err := publisher.Publish(ctx, queue.Message{ID: id, Key: "ann", Body: []byte(`{"order":"` + id + `"}`)}); err != nil {
		t.Fatal(err)
	}
	ds, err := consumer.Receive(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := consumer.Ack(ctx, ds...); err != nil {
		t.Fatal(err)
	}
}

// heard is a line that must have been said.
type heard struct {
	client           bool
	command, subject string
	id               bool     // it has one
	text             []string // parts of Text
}

func (k *talk) wants(t *testing.T, wanted ...heard) {
	t.Helper()
	lines := k.all()
	for _, w := range wanted {
		found := false
		for _, l := range lines {
			found = found || l.Client == w.client && !l.Noise && strings.HasPrefix(l.Command, w.command) && strings.Contains(l.Subject, w.subject) && (!w.id || l.ID != "") && holdsAll(l.Text, w.text)
		}
		if !found {
			t.Errorf("nobody said %+v", w)
		}
	}
	for _, l := range lines {
		if strings.Contains(l.Text, "not read") || strings.Contains(l.Text, "\n") || l.Text == "" || time.Since(l.At) > time.Minute {
			t.Errorf("got a line %+v", l)
		}
	}
	if t.Failed() || testing.Verbose() {
		for _, l := range lines {
			t.Logf("%d %5v %-22s %-18s %-22s %5v | %s", l.Conn, l.Client, l.Command, l.Subject, l.ID, l.Noise, l.Text)
		}
	}
}

func holdsAll(s string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

func TestARedisListIsOverheard(t *testing.T) {
	k, through := overhear(t, "redis")
	name, id := "list-"+rand.Text(), rand.Text()
	carry(t, through("redis+list", name, ""), id)
	k.wants(t,
		heard{true, "LPUSH", name, false, []string{id, "LPUSH list:{" + name}},
		heard{false, "LPUSH", name, false, []string{"-> (integer) 1"}},
		heard{false, "BRPOP", name, false, []string{id, `-> 1) "list:{` + name + `}" 2) "`}},
	)
}

func TestARedisStreamIsOverheard(t *testing.T) {
	k, through := overhear(t, "redis")
	name, id := "stream-"+rand.Text(), rand.Text()
	carry(t, through("redis+streams", name, ""), id)
	k.wants(t,
		heard{true, "XADD", name, false, []string{id}},
		heard{false, "XADD", name, true, []string{"-> \""}},
		heard{false, "XREADGROUP", name, true, []string{id, name}},
		heard{true, "EVALSHA", name, true, []string{"… 3 stream:{" + name}},
	)
}

func TestRabbitMQIsOverheard(t *testing.T) {
	t.Parallel() // brokers take seconds to start
	k, through := overhear(t, "rabbitmq")
	name, id := "rabbit-"+rand.Text(), rand.Text()
	carry(t, through("amqp", name, ""), id)
	k.wants(t,
		heard{true, "basic.publish", name, true, []string{id, "persistent"}},
		heard{false, "basic.publish", name, true, []string{"basic.ack tag=1"}},
		heard{false, "basic.deliver", name, true, []string{id, "tag=1", "queue=" + name, `{"order":"` + id}},
		heard{true, "basic.ack", name, true, []string{"basic.ack tag=1"}},
	)
}

func TestKafkaIsOverheard(t *testing.T) {
	t.Parallel() // brokers take seconds to start
	for _, client := range []string{"kafka-go", "franz"} {
		t.Run(client, func(t *testing.T) {
			k, through := overhear(t, "kafka")
			name, id := "kafka-"+rand.Text(), rand.Text()
			carry(t, through("kafka", name, "partitions=1&client="+client), id)
			k.wants(t,
				heard{true, "Produce", name, false, []string{id, "topic=" + name, "acks=-1", "1 record", "key=ann"}},
				heard{false, "Produce", name, true, []string{"Produce: topic=" + name, "offset=0 error=none"}},
				heard{false, "Fetch", name, true, []string{id, "1 record from 0"}},
				heard{true, "OffsetCommit", name, true, []string{"offset=1"}},
			)
		})
	}
}

func TestPostgreSQLIsOverheard(t *testing.T) {
	t.Parallel() // brokers take seconds to start
	k, through := overhear(t, "postgres")
	name, id := "pg_"+strings.ToLower(rand.Text()), rand.Text()
	carry(t, through("postgres", name, ""), id)
	k.wants(t,
		heard{true, "INSERT", name, false, []string{id}},
		heard{false, "INSERT", name, false, []string{"-> INSERT 0 1"}},
		heard{false, "WITH", name, false, []string{id, "-> SELECT 1: 1 row"}},
	)
}
