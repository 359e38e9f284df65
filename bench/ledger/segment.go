package ledger

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// segment is a mapped part of the file. It is unmapped once done says that each
// of its slots was dealt with: a slot is handed out once and counted once, after
// the last store to it, so that no append, however slow, can still hold one.
type segment struct {
	mem  []byte
	done atomic.Uint64
	_    [32]byte // a cache line of its own, since every append counts here
}

func (s *segment) slot(k uint64) *slot { return (*slot)(unsafe.Pointer(&s.mem[k*slotSize])) }

// window is what is mapped: the segments from number first on, nil where one
// went before an earlier one. It is replaced, never changed.
type window struct {
	first int
	segs  []*segment
}

func (v *window) end() int { return v.first + len(v.segs) }

// segment returns the segment of slot n, or nil where there is no room. It is
// mapped, since slot n was not dealt with.
func (w *Writer) segment(n uint64) *segment {
	i := int(n / perSegment)
	v := w.mapped.Load()
	if i >= v.end() {
		var err error
		if v, err = w.grow(i); err != nil {
			err = fmt.Errorf("ledger %s: no room for a record: %w", w.file.Name(), err)
			w.err.CompareAndSwap(nil, &err)
			atomic.AddUint32(&w.header().unsaved, 1)
			return nil
		}
	}
	if n%perSegment == perSegment/2 {
		// The next segment is made ready while half of this one is left, so that
		// writers hardly ever wait for the disk.
		// Should it fail, the append that needs the segment meets the error.
		w.growing.Go(func() { _, _ = w.grow(i + 1) })
	}
	return v.segs[i-v.first]
}

// grow makes the segments up to i exist, and unmaps those that are done.
func (w *Writer) grow(i int) (*window, error) {
	w.growth.Lock()
	defer w.growth.Unlock()
	old := w.mapped.Load()
	if i < old.end() {
		return old, nil
	}
	if err := w.err.Load(); err != nil {
		return nil, *err // a full disk is not asked again for every record
	}
	v := &window{first: old.first}
	for _, seg := range old.segs {
		if seg != nil && seg.done.Load() == perSegment && unix.Munmap(seg.mem) == nil {
			w.retired += perSegment
			seg = nil
		}
		if seg == nil && len(v.segs) == 0 {
			v.first++
			continue
		}
		v.segs = append(v.segs, seg)
	}
	var err error
	for err == nil && v.end() <= i {
		var seg *segment
		if seg, err = w.mapSegment(v.end()); err == nil {
			v.segs = append(v.segs, seg)
		}
	}
	w.mapped.Store(v)
	if err != nil {
		return nil, err
	}
	return v, nil
}

func (w *Writer) mapSegment(i int) (*segment, error) {
	offset := int64(i) * segmentSize
	if err := w.reserve(w.file, offset, segmentSize); err != nil {
		return nil, fmt.Errorf("reserve: %w", err)
	}
	mem, err := unix.Mmap(int(w.file.Fd()), offset, segmentSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|populate)
	if err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	return &segment{mem: mem}, nil
}

// settled is how many slots were handed out and dealt with.
func (w *Writer) settled() uint64 {
	w.growth.Lock()
	defer w.growth.Unlock()
	n := w.retired + w.missed.Load()
	for _, seg := range w.mapped.Load().segs {
		if seg != nil {
			n += seg.done.Load()
		}
	}
	return n
}
