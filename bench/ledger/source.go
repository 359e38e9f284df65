package ledger

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unsafe"
)

// perChunk is how many slots are read at a time.
const perChunk = 1 << 12

// source yields the records of one file sorted by At. A goroutine may be held up
// for any time between taking a stamp and appending its record, so that no bound
// on the disorder holds; instead a first pass finds the lowest stamp of every
// chunk, and a record is yielded once no later chunk has a lower one.
type source struct {
	path    string
	file    io.ReaderAt
	buf     []byte
	process uint16
	unsaved uint32
	damaged int
	err     error

	low     []int64 // low[i] is the lowest stamp of chunk i and all after it
	chunk   int     // the next to decode
	records []Record
	next    int // of records
	ready   int // records[next:ready] are sorted, and none that is to come is lower
}

func newSource(file io.ReaderAt) *source {
	s := &source{file: file, buf: make([]byte, perChunk*slotSize)}
	if s.err = s.begin(); s.err != nil {
		s.low = []int64{math.MaxInt64}
	}
	return s
}

func (s *source) begin() error {
	var h header
	begun := true
	for i := 0; ; i++ {
		b, err := s.read(i)
		if err != nil {
			return err
		}
		if i == 0 && len(b) >= slotSize {
			switch binary.NativeEndian.Uint64(b) {
			case magic:
				s.process = binary.NativeEndian.Uint16(b[unsafe.Offsetof(h.process):])
				s.unsaved = binary.NativeEndian.Uint32(b[unsafe.Offsetof(h.unsaved):])
			case 0:
				begun = false // killed while creating it, if nothing follows
			default:
				return errNotLedger
			}
		}
		if !begun && slices.ContainsFunc(b, func(x byte) bool { return x != 0 }) {
			return errNotLedger
		}
		low := int64(math.MaxInt64)
		var m slot
		for off := firstSlot(i); off < len(b); off += slotSize {
			if binary.NativeEndian.Uint32(b[off:]) != 0 {
				low = min(low, int64(binary.NativeEndian.Uint64(b[off+int(unsafe.Offsetof(m.at)):])))
			}
		}
		s.low = append(s.low, low)
		if len(b) < len(s.buf) {
			break
		}
	}
	s.low = append(s.low, math.MaxInt64)
	for i := len(s.low) - 2; i >= 0; i-- {
		s.low[i] = min(s.low[i], s.low[i+1])
	}
	return nil
}

// firstSlot is where the records of a chunk begin in its bytes.
func firstSlot(chunk int) int {
	if chunk == 0 {
		return headerSlots * slotSize
	}
	return 0
}

// read returns the whole slots of a chunk; the last chunk is not full.
func (s *source) read(chunk int) ([]byte, error) {
	n, err := s.file.ReadAt(s.buf, int64(chunk)*int64(len(s.buf)))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return s.buf[:n/slotSize*slotSize], nil
}

// more reports whether head has a record.
func (s *source) more() bool {
	if s.next < s.ready {
		return true
	}
	s.records = append(s.records[:0], s.records[s.next:]...)
	s.next, s.ready = 0, 0
	lowest := int64(math.MaxInt64)
	if len(s.records) > 0 {
		lowest = s.records[0].At
	}
	// A record may be yielded as soon as no chunk that is to come has a lower one.
	for s.chunk < len(s.low)-1 && (len(s.records) == 0 || lowest > s.low[s.chunk]) {
		b, err := s.read(s.chunk)
		if err != nil {
			s.err = err
			s.chunk = len(s.low) - 1
			break
		}
		before := len(s.records)
		s.decode(b[min(firstSlot(s.chunk), len(b)):])
		for i := range s.records[before:] {
			lowest = min(lowest, s.records[before+i].At)
		}
		s.chunk++
	}
	byTime := func(a, b Record) int { return cmp.Compare(a.At, b.At) }
	if !slices.IsSortedFunc(s.records, byTime) {
		slices.SortStableFunc(s.records, byTime)
	}
	s.ready = len(s.records)
	if s.chunk < len(s.low)-1 {
		limit := s.low[s.chunk]
		s.ready, _ = slices.BinarySearchFunc(s.records, limit, func(r Record, limit int64) int {
			if r.At <= limit {
				return -1
			}
			return 1
		})
	}
	return s.ready > 0
}

func (s *source) head() *Record { return &s.records[s.next] }

// decode appends the records in some slots.
func (s *source) decode(b []byte) {
	var m slot
	for ; len(b) >= slotSize; b = b[slotSize:] {
		word := binary.NativeEndian.Uint32(b)
		if word == 0 {
			continue
		}
		if e := Event(word); e == 0 || e >= endOfEvents || word&0xff00 != 0 {
			s.damaged++
			continue
		}
		s.records = append(s.records, Record{
			Event:       Event(word),
			Attempt:     uint16(word >> 16),
			Process:     s.process,
			Producer:    binary.NativeEndian.Uint16(b[unsafe.Offsetof(m.producer):]),
			Incarnation: binary.NativeEndian.Uint16(b[unsafe.Offsetof(m.incarnation):]),
			Trial:       binary.NativeEndian.Uint32(b[unsafe.Offsetof(m.trial):]),
			Arg:         binary.NativeEndian.Uint32(b[unsafe.Offsetof(m.arg):]),
			Seq:         binary.NativeEndian.Uint64(b[unsafe.Offsetof(m.seq):]),
			At:          int64(binary.NativeEndian.Uint64(b[unsafe.Offsetof(m.at):])),
			Due:         int64(binary.NativeEndian.Uint64(b[unsafe.Offsetof(m.due):])),
		})
	}
}

// fault says what of the file could not be had.
func (s *source) fault() error {
	errs := []error{s.err}
	if s.damaged > 0 {
		errs = append(errs, fmt.Errorf("%d damaged records", s.damaged))
	}
	if s.unsaved > 0 {
		errs = append(errs, fmt.Errorf("%d records are missing: the disk was full", s.unsaved))
	}
	return errors.Join(errs...)
}
