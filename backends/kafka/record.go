package kafka

import (
	"encoding/binary"
	"strconv"

	"queuelab/queue"
)

// idHeader is the first header of every record and carries the message's id. A
// caller's header of the same name comes after it and is kept. It is sent,
// stored and fetched with every message; one byte also reads without an
// allocation.
const idHeader = "#"

// recordOverhead bounds what a record takes beside its key, value and headers:
// lengths, offset and time, each a varint.
const recordOverhead = 40

// recordSize is not less than what m takes in a record batch.
func recordSize(m *queue.Message) int {
	n := recordOverhead + len(idHeader) + len(m.ID) + len(m.Key) + len(m.Body)
	for k, v := range m.Headers {
		n += 10 + len(k) + len(v)
	}
	return n
}

// appendRecord writes m as record number n of a batch. Its time is the batch's.
func appendRecord(dst []byte, m *queue.Message, n int) []byte {
	size := 1 + 1 + varintSize(n) + textSize(len(m.ID)) + varintSize(1+len(m.Headers)) + textSize(len(idHeader))
	if m.Key == "" {
		size++ // a length of -1
	} else {
		size += textSize(len(m.Key))
	}
	if m.Body == nil {
		size++
	} else {
		size += textSize(len(m.Body))
	}
	for k, v := range m.Headers {
		size += textSize(len(k)) + textSize(len(v))
	}

	dst = binary.AppendVarint(dst, int64(size))
	dst = append(dst, 0, 0) // attributes, time after the batch's
	dst = binary.AppendVarint(dst, int64(n))
	if m.Key == "" {
		dst = append(dst, 1)
	} else {
		dst = appendText(dst, m.Key)
	}
	if m.Body == nil {
		dst = append(dst, 1)
	} else {
		dst = append(binary.AppendVarint(dst, int64(len(m.Body))), m.Body...)
	}
	dst = binary.AppendVarint(dst, int64(1+len(m.Headers)))
	dst = appendText(dst, idHeader)
	dst = appendText(dst, m.ID)
	for k, v := range m.Headers {
		dst = appendText(appendText(dst, k), v)
	}
	return dst
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendVarint(dst, int64(len(s))), s...)
}

func textSize(n int) int { return varintSize(n) + n }

// varintSize is what binary.AppendVarint adds for n >= 0.
func varintSize(n int) int {
	size := 1
	for u := uint64(n) << 1; u >= 0x80; u >>= 7 {
		size++
	}
	return size
}

// slot is a delivery with its receipt: one allocation serves a whole batch.
type slot struct {
	queue.Delivery
	receipt receipt
}

// shelf makes deliveries out of the records of one batch, with one allocation
// for all of them, one for their texts and one for their bodies.
type shelf struct {
	part  *assigned
	slots []slot
	texts []byte // ids and keys
	body  []byte // nil: bodies stay where they are
	marks []mark // by slot
}

// mark is where the texts of a slot end.
type mark struct{ id, key int }

// reset begins a batch of at most n records.
func (s *shelf) reset(p *assigned, n int) {
	s.part = p
	s.slots = make([]slot, 0, n)
	s.body = nil
	s.texts = s.texts[:0]
	s.marks = s.marks[:0]
}

// add puts up a record. A record that others wrote, with no id of ours, gets
// the one under which Kafka knows it.
func (s *shelf) add(offset int64, id, key, body []byte, headers map[string]string) {
	s.slots = append(s.slots, slot{receipt: receipt{part: s.part, offset: offset}})
	d := &s.slots[len(s.slots)-1]
	if id == nil {
		s.texts = append(s.texts, s.part.c.q.topic...)
		s.texts = strconv.AppendInt(append(s.texts, '/'), int64(s.part.id), 10)
		s.texts = strconv.AppendInt(append(s.texts, '/'), offset, 10)
	}
	s.texts = append(s.texts, id...)
	m := mark{id: len(s.texts)}
	s.texts = append(s.texts, key...)
	m.key = len(s.texts)
	s.marks = append(s.marks, m)
	if s.body != nil && body != nil {
		from := len(s.body)
		s.body = append(s.body, body...)
		body = s.body[from:len(s.body):len(s.body)]
	}
	d.Body, d.Headers = body, headers
}

// copyBodies has the bodies that are added copied, size bytes of them at most,
// so that a delivery that is held holds on to its batch and not to a fetch.
func (s *shelf) copyBodies(size int) { s.body = make([]byte, 0, size) }

// take returns the deliveries.
func (s *shelf) take() []*queue.Delivery {
	texts := string(s.texts)
	ds := make([]*queue.Delivery, len(s.slots))
	from := 0
	for i := range s.slots {
		d, m := &s.slots[i], s.marks[i]
		d.Init(queue.Message{ID: texts[from:m.id], Key: texts[m.id:m.key], Body: d.Body, Headers: d.Headers}, 0, &d.receipt)
		from = m.key
		ds[i] = &d.Delivery
	}
	return ds
}
