package kafka

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"
	"github.com/segmentio/kafka-go/protocol/listoffsets"
	"github.com/segmentio/kafka-go/protocol/produce"
	"github.com/segmentio/kafka-go/protocol/rawproduce"
)

// kafkaGoCarrier sends record batches as they are: kafka-go's own way to write
// them takes four allocations a message.
type kafkaGoCarrier struct {
	*link
	q *topicQueue
}

func (k kafkaGo) carrier(ctx context.Context, addr string) (carrier, error) {
	l, err := k.q.cluster.connect(ctx, addr)
	if err != nil {
		return nil, err
	}
	l.stop = context.AfterFunc(ctx, func() { _ = l.Conn.Close() })
	return kafkaGoCarrier{l, k.q}, nil
}

func (k kafkaGoCarrier) alive() bool { return k.wire.alive() }

func (k kafkaGoCarrier) produce(batches []batch) (answers []answered, sent bool, err error) {
	parts := make([]rawproduce.RequestPartition, len(batches))
	for i, b := range batches {
		parts[i] = rawproduce.RequestPartition{
			Partition: int32(b.partition),
			RecordSet: protocol.RawRecordSet{Reader: bytes.NewReader(b.sized)},
		}
	}
	before := k.wire.written
	_ = k.SetDeadline(time.Now().Add(k.q.timeout))
	answer, err := k.RoundTrip(&rawproduce.Request{
		Acks:    k.q.acks,
		Timeout: k.q.brokerTimeout(),
		Topics:  []rawproduce.RequestTopic{{Topic: k.q.topic, Partitions: parts}},
	})
	if err != nil {
		return nil, k.wire.written != before, err
	}
	answers = make([]answered, len(batches))
	res, _ := answer.(*produce.Response)
	if res == nil { // acks=0
		return answers, true, nil
	}
	for _, t := range res.Topics {
		for _, p := range t.Partitions {
			sort(answers, batches, p.Partition, p.ErrorCode, p.ErrorMessage)
		}
	}
	return answers, true, nil
}

// firstOffset asks where a partition begins.
func (l *link) firstOffset(q *topicQueue, partition int) (int64, error) {
	_ = l.SetDeadline(time.Now().Add(q.timeout))
	answer, err := l.RoundTrip(&listoffsets.Request{
		ReplicaID: -1,
		Topics: []listoffsets.RequestTopic{{Topic: q.topic, Partitions: []listoffsets.RequestPartition{{
			Partition: int32(partition), CurrentLeaderEpoch: -1, Timestamp: kafkago.FirstOffset,
		}}}},
	})
	if err != nil {
		return 0, err
	}
	res, ok := answer.(*listoffsets.Response)
	if !ok || len(res.Topics) != 1 || len(res.Topics[0].Partitions) != 1 {
		return 0, fmt.Errorf("the broker did not say where partition %d begins", partition)
	}
	p := res.Topics[0].Partitions[0]
	if p.ErrorCode != 0 {
		return 0, kafkago.Error(p.ErrorCode)
	}
	return p.Offset, nil
}

// fetch returns the record batches of a partition from offset on, none after
// max-wait without a message. They are valid until the next fetch.
//
// kafka-go writes the request; the answer is read here, since kafka-go takes
// several allocations for each record of it.
func (l *link) fetch(q *topicQueue, partition int, offset int64) ([]byte, error) {
	version := l.versions[protocol.Fetch]
	if version < 4 || version > 11 {
		return nil, fmt.Errorf("fetch: %w", kafkago.UnsupportedVersion)
	}
	_ = l.SetDeadline(time.Now().Add(q.maxWait + q.timeout))
	err := protocol.WriteRequest(l, version, 0, clientID, &fetch.Request{
		ReplicaID: -1, MaxWaitTime: int32(q.maxWait.Milliseconds()), MinBytes: 1, MaxBytes: int32(q.fetchBytes), SessionEpoch: -1,
		Topics: []fetch.RequestTopic{{Topic: q.topic, Partitions: []fetch.RequestPartition{{
			Partition: int32(partition), CurrentLeaderEpoch: -1, FetchOffset: offset, LogStartOffset: -1, PartitionMaxBytes: int32(q.fetchBytes),
		}}}},
	})
	if err != nil {
		return nil, err
	}
	head, err := l.Peek(4)
	if err != nil {
		return nil, err
	}
	size := int64(binary.BigEndian.Uint32(head))
	if size > 1<<31-1 {
		return nil, fmt.Errorf("fetch: an answer of %d bytes", size)
	}
	if _, err := l.Discard(4); err != nil {
		return nil, err
	}
	if int64(cap(l.answer)) < size {
		l.answer = make([]byte, size)
	}
	l.answer = l.answer[:size]
	if _, err := io.ReadFull(l, l.answer); err != nil {
		return nil, err
	}
	return fetched(cursor{rest: l.answer}, version)
}

// fetched finds the records in the answer to a fetch of one partition.
func fetched(c cursor, version int16) ([]byte, error) {
	c.take(4 + 4) // correlation id, throttle time
	if version >= 7 {
		if code := c.int16(); code != 0 {
			return nil, kafkago.Error(code)
		}
		c.take(4) // session id
	}
	if topics := c.int32(); topics != 1 && !c.bad {
		return nil, fmt.Errorf("fetch: an answer about %d topics", topics)
	}
	c.take(int(c.int16())) // topic
	if partitions := c.int32(); partitions != 1 && !c.bad {
		return nil, fmt.Errorf("fetch: an answer about %d partitions", partitions)
	}
	c.take(4)
	code := c.int16()
	c.take(8 + 8) // high watermark, last stable offset
	if version >= 5 {
		c.take(8) // log start
	}
	if aborted := c.int32(); aborted > 0 {
		c.take(16 * int(aborted))
	}
	if version >= 11 {
		c.take(4) // preferred replica
	}
	size := c.int32()
	if code != 0 {
		return nil, kafkago.Error(code)
	}
	if size <= 0 && !c.bad {
		return nil, nil
	}
	set := c.take(int(size))
	if c.bad {
		return nil, errors.New("fetch: an answer that ends too early")
	}
	return set, nil
}
