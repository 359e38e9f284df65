package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"
)

// errNotLedger: the file is not a ledger of this version and machine.
var errNotLedger = errors.New("not a ledger")

// Read returns the records of ledger files, merged and sorted by At. A process
// that was killed leaves unwritten and torn records, which are passed over. It
// is an error where a file cannot be read, holds what no Writer wrote, or lacks
// records for which there was no room; what could be read is returned with it.
// A file that is still written to may be read: its latest records may be missing.
func Read(paths ...string) ([]Record, error) {
	var all []Record
	var errs []error
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("read ledger: %w", err))
			continue
		}
		all, err = decode(all, b)
		if err != nil {
			errs = append(errs, fmt.Errorf("read ledger %s: %w", path, err))
		}
	}
	slices.SortStableFunc(all, func(a, b Record) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
	return all, errors.Join(errs...)
}

// decode appends the records of one file's bytes.
func decode(rs []Record, b []byte) ([]Record, error) {
	if len(b) < slotSize {
		return rs, nil // killed while creating it
	}
	var h header
	switch binary.NativeEndian.Uint64(b) {
	case magic:
	case 0:
		for _, x := range b {
			if x != 0 {
				return rs, errNotLedger
			}
		}
		return rs, nil
	default:
		return rs, errNotLedger
	}
	rs = slices.Grow(rs, len(b)/slotSize)
	var damaged int
	for off := slotSize; off+slotSize <= len(b); off += slotSize {
		s := b[off : off+slotSize]
		word := binary.NativeEndian.Uint32(s)
		if word == 0 {
			continue
		}
		if e := Event(word); e == 0 || e >= endOfEvents || word&0xff00 != 0 {
			damaged++
			continue
		}
		var m slot
		rs = append(rs, Record{
			Event:       Event(word),
			Attempt:     uint16(word >> 16),
			Producer:    binary.NativeEndian.Uint16(s[unsafe.Offsetof(m.producer):]),
			Incarnation: binary.NativeEndian.Uint16(s[unsafe.Offsetof(m.incarnation):]),
			Process:     binary.NativeEndian.Uint16(s[unsafe.Offsetof(m.process):]),
			Trial:       binary.NativeEndian.Uint32(s[unsafe.Offsetof(m.trial):]),
			Arg:         binary.NativeEndian.Uint32(s[unsafe.Offsetof(m.arg):]),
			Seq:         binary.NativeEndian.Uint64(s[unsafe.Offsetof(m.seq):]),
			At:          int64(binary.NativeEndian.Uint64(s[unsafe.Offsetof(m.at):])),
			Due:         int64(binary.NativeEndian.Uint64(s[unsafe.Offsetof(m.due):])),
		})
	}
	var errs []error
	if damaged > 0 {
		errs = append(errs, fmt.Errorf("%d damaged records", damaged))
	}
	if n := binary.NativeEndian.Uint32(b[unsafe.Offsetof(h.unsaved):]); n > 0 {
		errs = append(errs, fmt.Errorf("%d records are missing: the disk was full", n))
	}
	return rs, errors.Join(errs...)
}
