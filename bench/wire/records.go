package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/segmentio/kafka-go/compress"
)

// records is what a record set holds.
type records struct {
	count   int
	base    int64 // offset of the first record, as its batch tells it; -1: none
	key     bytesOf
	value   bytesOf
	first   bool // key and value are of the first record
	null    bool // it has no value
	control bool // they are of the broker, such as the end of a transaction
	cut     bool // the last batch is not whole, as in a fetch
	unread  string
}

const batchHead = 61 // bytes of a batch of format 2 before its records

// readRecords reads the batches of format 2; older ones it names.
func readRecords(b []byte) (r records) {
	r.base = -1
	for len(b) > 0 {
		if len(b) < 17 {
			r.cut = true
			return r
		}
		n := 12 + int(int32(binary.BigEndian.Uint32(b[8:])))
		if b[16] != 2 {
			r.unread = fmt.Sprintf("format %d", b[16])
			return r
		}
		if n > len(b) || n < batchHead {
			r.cut = true
			return r
		}
		r.add(b[:n])
		b = b[n:]
	}
	return r
}

func (r *records) add(b []byte) {
	attributes := binary.BigEndian.Uint16(b[21:])
	count := int(int32(binary.BigEndian.Uint32(b[57:])))
	if count <= 0 {
		return // it was compacted
	}
	if r.count += count; r.count > count {
		return // it is not the first
	}
	r.base = int64(binary.BigEndian.Uint64(b))
	r.control = attributes&(1<<5) != 0
	body := b[batchHead:]
	if codec := int(attributes & 7); codec != 0 {
		var why error
		if body, why = inflate(codec, body); why != nil {
			r.unread = fmt.Sprintf("compressed, %v", why)
			return
		}
	}
	r.firstOf(body)
}

// inflate returns the beginning of what was compressed.
func inflate(codec int, b []byte) (out []byte, err error) {
	if codec >= len(compress.Codecs) {
		return nil, fmt.Errorf("codec %d is not known", codec)
	}
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%v", fault)
		}
	}()
	in := compress.Codecs[codec].NewReader(bytes.NewReader(b))
	defer in.Close()
	out, err = io.ReadAll(io.LimitReader(in, most))
	if len(out) > 0 {
		err = nil
	}
	return out, err
}

// firstOf reads the first record.
func (r *records) firstOf(b []byte) {
	c := cursor{rest: b}
	varint := func() int {
		v, n := binary.Varint(c.rest)
		if n <= 0 || v > 1<<30 || v < -1<<30 {
			n = -1
		}
		c.take(n)
		return int(v)
	}
	varint() // its size
	c.take(1)
	varlong(&c)
	delta := varint()
	some := func() (s bytesOf, null bool) {
		n := varint()
		if n < 0 || c.bad {
			return s, true
		}
		s.size = n
		s.kept = c.take(min(n, len(c.rest)))
		return s, false
	}
	r.key, _ = some()
	r.value, r.null = some()
	r.first = !c.bad
	if r.first {
		r.base += int64(delta)
	}
}

func varlong(c *cursor) {
	_, n := binary.Varint(c.rest)
	if n <= 0 {
		n = -1
	}
	c.take(n)
}

func (r records) show() string {
	s := fmt.Sprintf("%d records", r.count)
	if r.count == 1 {
		s = "1 record"
	}
	if r.base >= 0 {
		s += fmt.Sprintf(" from %d", r.base)
	}
	switch {
	case r.unread != "":
		s += fmt.Sprintf(" (not read: %s)", r.unread)
	case r.control:
		s += " of the broker"
	case r.first && r.null:
		s += " key=" + r.key.word(80) + " without a value"
	case r.first && r.key.size > 0:
		s += " key=" + r.key.word(80) + " " + r.value.quote(120)
	case r.first:
		s += " " + r.value.quote(120)
	}
	if r.cut {
		s += " and the beginning of more"
	}
	return s
}
