package kafka

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kafkago "github.com/segmentio/kafka-go"

	"queuelab/queue"
)

func parseURL(t *testing.T, raw string) (settings, error) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return parse(u)
}

func TestURL(t *testing.T) {
	s, err := parseURL(t, "kafka://one,two:9093/orders?group=workers&acks=1&session=3s")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one:9092", "two:9093"}, s.hosts); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	if s.topic != "orders" || s.group != "orders.workers" || s.acks != 1 || s.session != 3*time.Second {
		t.Errorf("got topic %q, group %q, acks %d, session %v, want those of the URL", s.topic, s.group, s.acks, s.session)
	}
	if s.heartbeat != 500*time.Millisecond {
		t.Errorf("got heartbeat %v, want 500ms at most", s.heartbeat)
	}
	s, err = parseURL(t, "kafka://[::1]/orders")
	if err != nil || s.acks != acksAll || s.hosts[0] != "[::1]:9092" {
		t.Errorf("without parameters: got acks %d, hosts %v and %v, want all and the default port", s.acks, s.hosts, err)
	}
}

func TestWrongURLsSayWhatIsWrong(t *testing.T) {
	for raw, want := range map[string]string{
		"kafka:///orders":                           "no host",
		"kafka://h/":                                "topic",
		"kafka://h/a%20b":                           "topic",
		"kafka://u:p@h/orders":                      "password",
		"kafka://h/orders?acks=2":                   "all, 1, 0",
		"kafka://h/orders?partitions=0":             "partitions",
		"kafka://h/orders?nosuch=1":                 "the known ones are",
		"kafka://h/orders?session=1s&heartbeat=2s":  "shorter",
		"kafka://h/orders?preset=fastest":           "latency, throughput",
		"kafka://h/orders?flush=yes":                "0, 1",
		"kafka://h/orders?linger=1s&linger=2s":      "2 times",
		"kafka://h/orders?group=with%20space&acks=": "group",
	} {
		_, err := parseURL(t, raw)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one that says %q", raw, err, want)
		}
	}
}

func TestAPresetGivesWayAndChangesNoGuarantee(t *testing.T) {
	s, err := parseURL(t, "kafka://h/orders?preset=throughput&batch=7")
	if err != nil {
		t.Fatal(err)
	}
	if s.batch != 7 || s.prefetch != 5000 {
		t.Errorf("got batch %d and prefetch %d, want the URL's 7 and the preset's 5000", s.batch, s.prefetch)
	}
	var claims []queue.Capabilities
	for _, preset := range []string{"", "preset=latency", "preset=throughput"} {
		s, err := parseURL(t, "kafka://h/orders?"+preset)
		if err != nil {
			t.Fatal(err)
		}
		claims = append(claims, (&topicQueue{settings: s}).Capabilities())
	}
	if claims[0] != claims[1] || claims[0] != claims[2] {
		t.Errorf("got %+v, want the same three times", claims)
	}
}

func TestAConfirmNamesWhoAnswered(t *testing.T) {
	for _, c := range []struct {
		acks  int16
		facts topicFacts
		want  queue.Confirm
	}{
		{0, topicFacts{minInSync: 2, flushEach: true}, queue.ConfirmNone},
		{1, topicFacts{minInSync: 2}, queue.ConfirmOS},
		{1, topicFacts{minInSync: 1, flushEach: true}, queue.ConfirmDisk},
		{acksAll, topicFacts{minInSync: 1}, queue.ConfirmOS},
		{acksAll, topicFacts{minInSync: 1, flushEach: true}, queue.ConfirmDisk},
		{acksAll, topicFacts{minInSync: 2}, queue.ConfirmReplicas},
	} {
		got := (&topicQueue{settings: settings{acks: c.acks}, facts: c.facts}).Capabilities().Confirm
		if got != c.want {
			t.Errorf("acks=%d, %+v: got %v, want %v", c.acks, c.facts, got, c.want)
		}
	}
}

func TestOnlyWhatIsCertainlyNotStoredIsRejected(t *testing.T) {
	for _, c := range []struct {
		err   kafkago.Error
		waits bool
		want  bool
	}{
		{kafkago.MessageSizeTooLarge, true, true},
		{kafkago.NotEnoughReplicas, true, true},
		{kafkago.NotEnoughReplicasAfterAppend, true, false},
		{kafkago.RequestTimedOut, true, false},
		{kafkago.Unknown, false, false},
		{kafkago.KafkaStorageError, false, false},
		{kafkago.UnknownTopicOrPartition, true, true},
		{kafkago.NotLeaderForPartition, false, true},
		{kafkago.NotLeaderForPartition, true, false},
	} {
		if got := refused(fmt.Errorf("wrapped: %w", c.err), c.waits); got != c.want {
			t.Errorf("%v, waits for replicas %v: got rejected %v, want %v", c.err, c.waits, got, c.want)
		}
	}
}

func TestAKeyGoesWhereKafkaGoWouldPutIt(t *testing.T) {
	ids := make([]int, 7)
	for i := range 1000 {
		key := fmt.Sprintf("key-%d", i)
		want := new(kafkago.Hash).Balance(kafkago.Message{Key: []byte(key)}, ids...)
		if got := keyPartition(key, len(ids)); got != want {
			t.Fatalf("%s: got partition %d, want %d", key, got, want)
		}
	}
}

func TestAPlaceIsNeverOutsideThePartition(t *testing.T) {
	for _, c := range []struct {
		s    span
		want int64
	}{
		{span{first: 3, last: 9, committed: -1}, 3},
		{span{first: 3, last: 9, committed: 5}, 5},
		{span{first: 3, last: 9, committed: 1}, 3},
		{span{first: 0, last: 4, committed: 7}, 4},
	} {
		if got := c.s.from(); got != c.want {
			t.Errorf("%+v: got %d, want %d", c.s, got, c.want)
		}
	}
}

func TestAnAckOfSomebodyElsesDeliveryIsAnError(t *testing.T) {
	c := &consumer{q: &topicQueue{settings: settings{timeout: time.Second, commit: commitAfter}}, dealt: newAnswer()}
	d := queue.NewDelivery(queue.Message{ID: "1"}, 0, nil)
	if err := c.Ack(t.Context(), d); err == nil || errors.Is(err, queue.ErrLeaseLost) {
		t.Errorf("got %v, want an error that is not ErrLeaseLost", err)
	}
	if d.Settled() {
		t.Error("got settled, want the delivery left as it was")
	}
}

func TestAConnectionThatTheOtherSideClosedIsNotAlive(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	other, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Conn: conn}
	if !w.alive() {
		t.Error("an open connection: got not alive")
	}
	// franz-go always reads where acks=0: the look must not wait for it.
	reads := make(chan struct{})
	go func() {
		defer close(reads)
		_, _ = conn.Read(make([]byte, 1))
	}()
	seen := make(chan bool)
	go func() { // as often as it takes the reader to be in its read
		for range 1000 {
			w.alive()
			runtime.Gosched()
		}
		seen <- w.alive()
	}()
	select {
	case got := <-seen:
		if !got {
			t.Error("an open connection that somebody reads from: got not alive")
		}
	case <-time.After(patience):
		t.Error("an open connection that somebody reads from: the look waits for the reader")
	}
	_ = other.Close()
	<-reads
	for deadline := time.Now().Add(patience); w.alive(); {
		if pause(t.Context(), time.Millisecond) != nil || time.Now().After(deadline) {
			t.Fatal("a closed connection: got alive")
		}
	}
}
