package kafka

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/protocol"

	"queuelab/queue"
)

// partOf is all messages as one part.
func partOf(ms ...queue.Message) *part {
	t := &part{call: ms}
	for i := range ms {
		t.places = append(t.places, int32(i))
	}
	return t
}

// partition is partition 2 of topic orders, where next is the next offset.
func partition(next int64) *assigned {
	c := &consumer{q: &topicQueue{settings: settings{topic: "orders"}}}
	return c.newAssigned(2, next)
}

// at gives a batch the offset that the broker would.
func at(offset int64, b []byte) []byte {
	binary.BigEndian.PutUint64(b, uint64(offset))
	return b
}

func messagesOf(ds []*queue.Delivery) []queue.Message {
	ms := make([]queue.Message, len(ds))
	for i, d := range ds {
		ms[i] = d.Message
	}
	return ms
}

func offsetsOf(ds []*queue.Delivery) []int64 {
	var out []int64
	for _, d := range ds {
		out = append(out, d.Receipt().(*receipt).offset)
	}
	return out
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	want := []queue.Message{
		{ID: "1", Body: []byte("body")},
		{ID: "2", Key: "key", Body: []byte{}},
		{ID: "3"},
		{ID: "4", Key: "k", Headers: map[string]string{idHeader: "the caller's", "empty": "", "": "nameless"}},
		{ID: string(make([]byte, 300)), Body: bytes.Repeat([]byte{7}, 100_000)},
	}
	for i := range 200 { // so that places in the batch take two bytes
		want = append(want, queue.Message{ID: fmt.Sprint("more", i), Key: fmt.Sprint(i % 3), Body: []byte{byte(i)}})
	}
	b := at(1000, appendBatch(nil, time.Now(), []*part{partOf(want[:3]...), partOf(want[3:]...)}))
	size := atRecords
	for i := range want {
		size += recordSize(&want[i])
	}
	if len(b) > size {
		t.Errorf("got %d bytes, want at most the %d that were expected", len(b), size)
	}
	p := partition(1000)
	ds, err := p.read(b, new(shelf))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, messagesOf(ds)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p.next != 1000+int64(len(want)) {
		t.Errorf("got %d as the next offset, want %d", p.next, 1000+len(want))
	}
	for _, d := range ds { // one must not reach into another
		d.Body = append(d.Body, "more"...)
	}
	if got := string(ds[0].Body); got != "bodymore" {
		t.Errorf("after every body was appended to: got %q, want %q", got, "bodymore")
	}
}

// kafkaGoSet is what kafka-go writes: one batch of records with these values.
func kafkaGoSet(t *testing.T, attributes protocol.Attributes, values ...string) []byte {
	t.Helper()
	records := make([]protocol.Record, len(values))
	for i, v := range values {
		records[i] = protocol.Record{Offset: int64(i), Value: protocol.NewBytes([]byte(v)), Headers: []protocol.Header{{Key: "trace", Value: []byte("x")}}}
	}
	set := protocol.RecordSet{Version: 2, Attributes: attributes, Records: protocol.NewRecordReader(records...)}
	var out bytes.Buffer
	if _, err := set.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()[4:]
}

func TestWhatKafkaGoWritesIsRead(t *testing.T) {
	for _, kind := range []compress.Compression{compress.None, compress.Gzip, compress.Snappy, compress.Lz4, compress.Zstd} {
		ds, err := partition(50).read(at(50, kafkaGoSet(t, protocol.Attributes(kind), "a", "", "c")), new(shelf))
		if err != nil {
			t.Errorf("%v: %v", kind, err)
		}
		trace := map[string]string{"trace": "x"}
		want := []queue.Message{ // others have no ids, so they get their place
			{ID: "orders/2/50", Body: []byte("a"), Headers: trace},
			{ID: "orders/2/51", Body: []byte{}, Headers: trace},
			{ID: "orders/2/52", Body: []byte("c"), Headers: trace},
		}
		if diff := cmp.Diff(want, messagesOf(ds)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", kind, diff)
		}
	}
}

func TestKafkaGoReadsWhatIsWritten(t *testing.T) {
	b := appendBatch(nil, time.UnixMilli(1_700_000_000_000), []*part{partOf(queue.Message{ID: "1", Key: "k", Body: []byte("body")}, queue.Message{ID: "2"})})
	var set protocol.RecordSet
	if _, err := set.ReadFrom(bytes.NewReader(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))); err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		r, err := set.Records.ReadRecord()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		key, _ := protocol.ReadAll(r.Key)
		value, _ := protocol.ReadAll(r.Value)
		got = append(got, fmt.Sprintf("%d %q %q %s=%s %d", r.Offset, key, value, r.Headers[0].Key, r.Headers[0].Value, r.Time.UnixMilli()))
	}
	want := []string{`0 "k" "body" #=1 1700000000000`, `1 "" "" #=2 1700000000000`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAFetchGoesOnWhereItShould(t *testing.T) {
	three := func(offset int64) []byte {
		return at(offset, appendBatch(nil, time.Now(), []*part{partOf(messages(3, "")...)}))
	}
	marker := three(103)
	binary.BigEndian.PutUint16(marker[atAttributes:], control)
	seal(marker)
	for name, c := range map[string]struct {
		next     int64
		set      []byte
		want     []int64
		wantNext int64
	}{
		"WhatWasHadBeforeIsLeftOut":           {102, append(three(100), three(103)...), []int64{102, 103, 104, 105}, 106},
		"AWholeBatchThatWasHadIsLeftOut":      {103, append(three(100), three(103)...), []int64{103, 104, 105}, 106},
		"ABatchThatIsCutOffIsForTheNextFetch": {100, append(three(100), three(103)[:80]...), []int64{100, 101, 102}, 103},
		"AHeadThatIsCutOffIsForTheNextFetch":  {100, append(three(100), three(103)[:5]...), []int64{100, 101, 102}, 103},
		"TheEndOfATransactionIsNoMessage":     {100, append(three(100), marker...), []int64{100, 101, 102}, 106},
		"WhatCompactionRemovedIsPassedOver":   {100, three(200), []int64{200, 201, 202}, 203},
		"AnEmptyFetchStaysWhereItIs":          {100, nil, nil, 100},
	} {
		t.Run(name, func(t *testing.T) {
			p := partition(c.next)
			ds, err := p.read(c.set, new(shelf))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, offsetsOf(ds)); diff != "" || p.next != c.wantNext {
				t.Errorf("next %d, want %d; offsets (-want +got):\n%s", p.next, c.wantNext, diff)
			}
		})
	}
}

// seal makes the checksum right again.
func seal(b []byte) { binary.BigEndian.PutUint32(b[atCRC:], checksum(b)) }

func TestADamagedBatchIsAnErrorAndWhatIsBeforeItIsNot(t *testing.T) {
	good := at(100, appendBatch(nil, time.Now(), []*part{partOf(messages(3, "k")...)}))
	for name, damage := range map[string]func(b []byte){
		"AFlippedBit":           func(b []byte) { b[len(b)-1] ^= 1 },
		"AnUnknownFormat":       func(b []byte) { b[atMagic] = 1 },
		"MoreRecordsThanBytes":  func(b []byte) { binary.BigEndian.PutUint32(b[atCount:], 1<<30); seal(b) },
		"FewerThanNoRecords":    func(b []byte) { binary.BigEndian.PutUint32(b[atCount:], 1<<31); seal(b) },
		"MoreRecordsThanThere":  func(b []byte) { binary.BigEndian.PutUint32(b[atCount:], 4); seal(b) },
		"ARecordBeyondTheBatch": func(b []byte) { b[atRecords] = 0x7e; seal(b) },
		"AnUnknownCompression":  func(b []byte) { binary.BigEndian.PutUint16(b[atAttributes:], 7); seal(b) },
		"NotCompressedAtAll":    func(b []byte) { binary.BigEndian.PutUint16(b[atAttributes:], 1); seal(b) },
		"ALengthWithoutAHead":   func(b []byte) { binary.BigEndian.PutUint32(b[atLength:], 3) },
	} {
		t.Run(name, func(t *testing.T) {
			bad := at(103, bytes.Clone(good))
			damage(bad)
			p := partition(100)
			ds, err := p.read(append(bytes.Clone(good), bad...), new(shelf))
			if !errors.Is(err, errDamaged) {
				t.Errorf("got %v, want errDamaged", err)
			}
			if len(ds) != 3 || p.next != 103 {
				t.Errorf("got %d deliveries and next %d, want the 3 before and 103", len(ds), p.next)
			}
		})
	}
}

// Whatever a broker sends, reading ends, and offsets only grow.
func FuzzRead(f *testing.F) {
	f.Add(at(100, appendBatch(nil, time.Now(), []*part{partOf(messages(3, "k")...)})), int64(100))
	f.Add([]byte{}, int64(0))
	f.Fuzz(func(t *testing.T, set []byte, next int64) {
		if len(set) > atRecords {
			binary.BigEndian.PutUint32(set[atLength:], uint32(len(set)-afterLength))
			set[atMagic] = 2
			seal(set) // or nothing would come further than the checksum
		}
		p := partition(next)
		ds, _ := p.read(set, new(shelf))
		for _, o := range offsetsOf(ds) {
			if o < next {
				t.Errorf("got offset %d, want none before %d", o, next)
			}
		}
		if p.next < next {
			t.Errorf("got next %d, want at least %d", p.next, next)
		}
	})
}
