package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"
)

// ahead is how far a Follower looks beyond the last record that it has seen: far
// more slots than a process has appends under way.
const ahead = 1 << 10

// mostHoles is how many slots without a record are looked at again: those of
// appends that were under way, and for ever those that a kill left torn.
const mostHoles = 1 << 12

// Follower reads a ledger that is still written to. It is not safe for
// concurrent use.
type Follower struct {
	file  *os.File
	s     source // decodes
	next  int64  // the first slot after the last record seen
	holes []int64
	buf   []byte
}

// Follow opens the ledger of a process, which must have been created.
func Follow(path string) (*Follower, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("follow ledger: %w", err)
	}
	var head [slotSize]byte
	var h header
	if _, err := io.ReadFull(f, head[:]); err != nil || binary.NativeEndian.Uint64(head[:]) != magic {
		f.Close()
		return nil, fmt.Errorf("follow ledger %s: %w", path, errNotLedger)
	}
	w := &Follower{file: f, next: headerSlots, buf: make([]byte, ahead*slotSize)}
	w.s.process = binary.NativeEndian.Uint16(head[unsafe.Offsetof(h.process):])
	return w, nil
}

// Next returns the records that came since the last call, in the order in which
// they were begun, and none where there are none. It takes no lock of the writer's
// and costs what is new. A record may come after those that were begun later. The
// slice is good until the next call.
func (f *Follower) Next() ([]Record, error) {
	f.s.records = f.s.records[:0]
	var left []int64
	for _, n := range f.holes {
		b, err := f.read(n, 1)
		if err != nil {
			return nil, err
		}
		if !f.decode(b) {
			left = append(left, n)
		}
	}
	if over := len(left) - mostHoles; over > 0 {
		left = left[over:]
	}
	f.holes = left
	for {
		b, err := f.read(f.next, ahead)
		if err != nil {
			return nil, err
		}
		last := int64(-1)
		for i := int64(0); len(b) >= slotSize; i, b = i+1, b[slotSize:] {
			if f.decode(b[:slotSize]) {
				for n := last + 1; n < i; n++ {
					f.holes = append(f.holes, f.next+n)
				}
				last = i
			}
		}
		f.next += last + 1
		if last+1 < ahead { // the rest was not written yet
			break
		}
	}
	if f.s.damaged > 0 {
		return f.s.records, fmt.Errorf("follow ledger %s: %d damaged records", f.file.Name(), f.s.damaged)
	}
	return f.s.records, nil
}

// read returns at most n slots from one on.
func (f *Follower) read(from int64, n int) ([]byte, error) {
	got, err := f.file.ReadAt(f.buf[:n*slotSize], from*slotSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("follow ledger %s: %w", f.file.Name(), err)
	}
	return f.buf[:got/slotSize*slotSize], nil
}

// decode reports whether a slot had a record.
func (f *Follower) decode(b []byte) bool {
	n := len(f.s.records) + f.s.damaged
	f.s.decode(b)
	return len(f.s.records)+f.s.damaged > n
}

// Close closes the file.
func (f *Follower) Close() error { return f.file.Close() }
