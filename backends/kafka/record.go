package kafka

import (
	"fmt"

	kafkago "github.com/segmentio/kafka-go"

	"queuelab/queue"
)

// idHeader is the first header of every record and carries the message's id. A
// caller's header of the same name comes after it and is kept.
const idHeader = "queuelab-id"

// recordOverhead bounds what a record takes beside its key, value and headers:
// lengths, offset and time, each a varint.
const recordOverhead = 40

func toRecord(m *queue.Message) kafkago.Record {
	headers := make([]kafkago.Header, 1, 1+len(m.Headers))
	headers[0] = kafkago.Header{Key: idHeader, Value: []byte(m.ID)}
	for k, v := range m.Headers {
		headers = append(headers, kafkago.Header{Key: k, Value: []byte(v)})
	}
	r := kafkago.Record{Value: kafkago.NewBytes(m.Body), Headers: headers}
	if m.Key != "" {
		r.Key = kafkago.NewBytes([]byte(m.Key))
	}
	return r
}

// recordSize is not less than what m takes in a record batch.
func recordSize(m *queue.Message) int {
	n := recordOverhead + len(idHeader) + len(m.ID) + len(m.Key) + len(m.Body)
	for k, v := range m.Headers {
		n += 10 + len(k) + len(v)
	}
	return n
}

// fromRecord gives a record that others wrote, without our header, the id
// under which Kafka knows it.
func fromRecord(m kafkago.Message) queue.Message {
	out := queue.Message{Key: string(m.Key), Body: m.Value}
	headers := m.Headers
	if len(headers) > 0 && headers[0].Key == idHeader {
		out.ID = string(headers[0].Value)
		headers = headers[1:]
	} else {
		out.ID = fmt.Sprintf("%s/%d/%d", m.Topic, m.Partition, m.Offset)
	}
	if len(headers) > 0 {
		out.Headers = make(map[string]string, len(headers))
		for _, h := range headers {
			out.Headers[h.Key] = string(h.Value)
		}
	}
	return out
}
