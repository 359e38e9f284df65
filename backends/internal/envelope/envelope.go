// Package envelope is how a message travels as one value, where a broker has no
// fields for the id, key and headers: on a Redis list and over Pub/Sub. Or where
// its fields do not hold every text: over NATS.
//
// Layout: a version byte, then id, key, the number of headers, and each
// header's name and value, every text with its length before it as an unsigned
// varint; what remains is the body.
package envelope

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"queuelab/queue"
)

// version is a byte that no text starts with, so that a value which somebody
// typed into redis-cli is recognised as foreign.
const version = 0x01

// ErrForeign: the value was not made by Append.
var ErrForeign = errors.New("not a message of this queue")

// Append appends the encoded message to dst.
func Append(dst []byte, m queue.Message) []byte {
	dst = append(dst, version)
	dst = appendText(dst, m.ID)
	dst = appendText(dst, m.Key)
	dst = binary.AppendUvarint(dst, uint64(len(m.Headers)))
	for name, value := range m.Headers {
		dst = appendText(dst, name)
		dst = appendText(dst, value)
	}
	return append(dst, m.Body...)
}

// Size is how many bytes Append adds.
func Size(m queue.Message) int {
	n := 1 + textSize(m.ID) + textSize(m.Key) + numberSize(len(m.Headers)) + len(m.Body)
	for name, value := range m.Headers {
		n += textSize(name) + textSize(value)
	}
	return n
}

func textSize(s string) int { return numberSize(len(s)) + len(s) }

func numberSize(n int) int { return (bits.Len(uint(n)|1) + 6) / 7 }

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// Decode is the inverse of Append. The texts of the message share v's memory;
// the body is a copy, since a consumer may do with it what it likes, and is
// appended to bodies, so that many need one allocation. An error wraps ErrForeign
// and never quotes the value.
func Decode(v string, bodies *[]byte) (queue.Message, error) {
	d := decoder{rest: v}
	if !d.version() {
		return queue.Message{}, fmt.Errorf("%w: %d bytes without its mark", ErrForeign, len(v))
	}
	m := queue.Message{ID: d.text(), Key: d.text()}
	// A header takes two bytes at least: a count beyond that is no count, and
	// must not become an allocation.
	n := d.number()
	if n > uint64(len(d.rest))/2 {
		d.bad = true
	}
	if n > 0 && !d.bad {
		m.Headers = make(map[string]string, n)
		for range n {
			name := d.text()
			m.Headers[name] = d.text()
		}
		if uint64(len(m.Headers)) != n {
			d.bad = true
		}
	}
	if d.bad || m.ID == "" {
		return queue.Message{}, fmt.Errorf("%w: %d bytes with a broken head", ErrForeign, len(v))
	}
	from := len(*bodies)
	*bodies = append(*bodies, d.rest...)
	m.Body = (*bodies)[from:len(*bodies):len(*bodies)]
	return m, nil
}

// Deliveries decodes the values of an at-most-once queue, in a few allocations
// for all. Those that are foreign are left out and counted; err is the first
// one's.
func Deliveries(values []string) (ds []*queue.Delivery, foreign int, err error) {
	size := 0
	for _, v := range values {
		size += len(v)
	}
	bodies := make([]byte, 0, size)
	all := make([]queue.Delivery, len(values))
	ds = make([]*queue.Delivery, 0, len(values))
	for i, v := range values {
		m, e := Decode(v, &bodies)
		if e != nil {
			foreign++
			err = cmp.Or(err, e)
			continue
		}
		all[i].Init(m, 0, nil)
		ds = append(ds, &all[i])
	}
	return ds, foreign, err
}

type decoder struct {
	rest string
	bad  bool
}

func (d *decoder) version() bool {
	if d.rest == "" || d.rest[0] != version {
		return false
	}
	d.rest = d.rest[1:]
	return true
}

func (d *decoder) number() uint64 {
	var n uint64
	for i := 0; i < len(d.rest) && i < binary.MaxVarintLen64; i++ {
		b := d.rest[i]
		n |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			d.rest = d.rest[i+1:]
			return n
		}
	}
	d.bad = true
	return 0
}

func (d *decoder) text() string {
	n := d.number()
	if d.bad || n > uint64(len(d.rest)) {
		d.bad = true
		return ""
	}
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s
}
