package kafka

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"time"

	"github.com/segmentio/kafka-go/compress"

	"queuelab/queue"
)

// A record batch, as Kafka stores it and both directions of its protocol carry
// it: this header, then the records.
const (
	atLength     = 8  // int32, of what follows
	atMagic      = 16 // int8, 2
	atCRC        = 17 // uint32, of what follows
	atAttributes = 21 // int16
	atLastDelta  = 23 // int32
	atFirstTime  = 27 // int64, and after it the last one
	atProducer   = 43 // int64 id, int16 epoch, int32 sequence
	atCount      = 57 // int32
	atRecords    = 61

	afterLength  = 12
	compressions = 0x07 // of the attributes
	control      = 0x20
)

// appendBatch writes the messages of parts, which go to one partition, as one
// batch. Nothing of it names an idempotent producer.
func appendBatch(dst []byte, now time.Time, parts []*part) []byte {
	start := len(dst)
	var head [atRecords]byte
	dst = append(dst, head[:]...)
	n := 0
	for _, t := range parts {
		for _, i := range t.places {
			dst = appendRecord(dst, &t.call[i], n)
			n++
		}
	}
	b := dst[start:]
	be := binary.BigEndian
	be.PutUint32(b[atLength:], uint32(len(b)-afterLength))
	be.PutUint32(b[atLength+4:], ^uint32(0)) // the leader's epoch is the broker's to say
	b[atMagic] = 2
	be.PutUint32(b[atLastDelta:], uint32(n-1))
	be.PutUint64(b[atFirstTime:], uint64(now.UnixMilli()))
	be.PutUint64(b[atFirstTime+8:], uint64(now.UnixMilli()))
	for i := atProducer; i < atCount; i++ {
		b[i] = 0xff
	}
	be.PutUint32(b[atCount:], uint32(n))
	be.PutUint32(b[atCRC:], checksum(b))
	return dst
}

func checksum(b []byte) uint32 {
	return crc32.Checksum(b[atAttributes:], crc32.MakeTable(crc32.Castagnoli))
}

// errDamaged is wrapped by what is wrong with fetched records.
var errDamaged = errors.New("damaged record batch")

// read makes deliveries of the fetched records from p.next on, and moves
// p.next behind them. A batch that the broker cut off at the fetch's end is
// left for the next fetch.
func (p *assigned) read(set []byte, s *shelf) ([]*queue.Delivery, error) {
	var all []*queue.Delivery
	for len(set) >= afterLength {
		size := afterLength + int64(int32(binary.BigEndian.Uint32(set[atLength:])))
		if size > int64(len(set)) {
			break
		}
		if size < atRecords {
			return all, fmt.Errorf("%w: %d bytes long", errDamaged, size)
		}
		b := set[:size]
		set = set[size:]
		last := int64(binary.BigEndian.Uint64(b)) + int64(int32(binary.BigEndian.Uint32(b[atLastDelta:])))
		if last < p.next {
			continue
		}
		if err := p.readBatch(b, s); err != nil {
			return all, fmt.Errorf("%w, offset %d", err, int64(binary.BigEndian.Uint64(b)))
		}
		p.next = last + 1
		if all == nil {
			all = s.take()
		} else {
			all = append(all, s.take()...)
		}
	}
	return all, nil
}

func (p *assigned) readBatch(b []byte, s *shelf) error {
	if b[atMagic] != 2 {
		return fmt.Errorf("%w: format %d, want 2", errDamaged, b[atMagic])
	}
	if binary.BigEndian.Uint32(b[atCRC:]) != checksum(b) {
		return fmt.Errorf("%w: its checksum does not fit", errDamaged)
	}
	base := int64(binary.BigEndian.Uint64(b))
	attributes := binary.BigEndian.Uint16(b[atAttributes:])
	count := int64(int32(binary.BigEndian.Uint32(b[atCount:])))
	if attributes&control != 0 {
		count = 0 // the end of a transaction, which is no message
	}
	records := b[atRecords:]
	if kind := compress.Compression(attributes & compressions); kind != 0 && count > 0 {
		var err error
		if records, err = unpack(kind, records); err != nil {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
	}
	if count < 0 || count > int64(len(records)) {
		return fmt.Errorf("%w: %d records in %d bytes", errDamaged, count, len(records))
	}
	s.reset(p, int(count))
	s.copyBodies(len(records))
	c := cursor{rest: records}
	for range count {
		c.record(base, p.next, s)
		if c.bad {
			return fmt.Errorf("%w: a record ends beyond it", errDamaged)
		}
	}
	return nil
}

func unpack(kind compress.Compression, records []byte) ([]byte, error) {
	codec := kind.Codec()
	if codec == nil {
		return nil, fmt.Errorf("compression %d", kind)
	}
	r := codec.NewReader(&cursor{rest: records})
	defer r.Close()
	return io.ReadAll(r)
}

// cursor reads from the front of rest; bad once something was not there.
type cursor struct {
	rest []byte
	bad  bool
}

// Read makes a cursor a source of compressed bytes.
func (c *cursor) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// take returns the next n bytes.
func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.rest) {
		c.bad, c.rest = true, nil
		return nil
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cursor) int16() int16 {
	if b := c.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (c *cursor) int32() int32 {
	if b := c.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (c *cursor) varint() int64 {
	v, n := binary.Varint(c.rest)
	if n <= 0 {
		c.bad, c.rest = true, nil
		return 0
	}
	c.rest = c.rest[n:]
	return v
}

// bytes reads a length and as many bytes; nil for a length of -1.
func (c *cursor) bytes() []byte {
	n := c.varint()
	if n < 0 {
		return nil
	}
	return c.take(int(min(n, math.MaxInt)))
}

// record reads the next record and puts it up if its offset is from on.
func (c *cursor) record(base, from int64, s *shelf) {
	whole := cursor{rest: c.bytes()}
	if c.bad || len(whole.rest) == 0 {
		c.bad = true
		return
	}
	whole.rest = whole.rest[1:] // attributes, of which there are none
	whole.varint()              // time
	offset := base + whole.varint()
	key, body := whole.bytes(), whole.bytes()
	var id []byte
	var headers map[string]string
	for i := range whole.varint() {
		k, v := whole.bytes(), whole.bytes()
		if whole.bad {
			break
		}
		if i == 0 && string(k) == idHeader {
			id = v
			continue
		}
		if headers == nil {
			headers = map[string]string{}
		}
		headers[string(k)] = string(v)
	}
	if c.bad = whole.bad; !c.bad && offset >= from {
		s.add(offset, id, key, body, headers)
	}
}
