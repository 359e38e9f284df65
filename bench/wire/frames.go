package wire

import (
	"encoding/binary"
	"slices"
)

// frames cuts one direction into frames that tell their size.
type frames struct {
	kept        []byte
	seen, total int
	lost        bool
}

// feed calls see with each frame that is complete: at most its first 64 KB, and
// its size. size tells the whole size of a frame that begins so; 0: more must
// come; negative: this is no frame, and nothing is read any more.
func (f *frames) feed(b []byte, size func([]byte) int, see func(kept []byte, total int)) {
	for len(b) > 0 && !f.lost {
		n := 1 // until the size is known
		if f.total > 0 {
			n = min(len(b), f.total-f.seen)
		}
		f.kept = append(f.kept, b[:min(n, most-len(f.kept))]...)
		f.seen += n
		b = b[n:]
		if f.total == 0 {
			f.total = size(f.kept)
		}
		switch {
		case f.total < 0 || f.total > 0 && f.total < f.seen:
			f.lost, f.kept = true, nil
		case f.total > 0 && f.seen == f.total:
			kept, total := f.kept, f.total
			f.kept, f.seen, f.total = f.kept[:0], 0, 0
			see(kept, total)
		}
	}
}

// cursor reads what a frame holds. Past its end everything is zero, and it is
// bad.
type cursor struct {
	rest []byte
	bad  bool
}

func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.rest) {
		c.bad, c.rest = true, nil
		return nil
	}
	b := c.rest[:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cursor) number(bytes int) uint64 {
	b := c.take(bytes)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint64(slices.Concat(make([]byte, 8-bytes), b))
}

func (c *cursor) u8() int  { return int(c.number(1)) }
func (c *cursor) u16() int { return int(c.number(2)) }
func (c *cursor) u32() int { return int(c.number(4)) }

// counted is a text that its size in so many bytes precedes.
func (c *cursor) counted(bytes int) bytesOf { return text(c.take(int(c.number(bytes)))) }
