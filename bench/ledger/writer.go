package ledger

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A ledger file is a header followed by slots, each of slotSize. A slot whose
// word is zero is unwritten, or torn: its process died before the word was
// stored. Numbers are in the machine's byte order; a ledger does not travel.
const (
	slotSize    = 48
	perSegment  = 1 << 16
	segmentSize = slotSize * perSegment // a multiple of every page size
	magic       = uint64(0x514c4147_45520001)
	closed      = uint64(1) << 62
	headerSlots = 1
)

// slot is the memory of one record. The word is stored last and atomically.
type slot struct {
	word        uint32 // event | attempt<<16
	producer    uint16
	incarnation uint16
	process     uint16
	_           uint16
	trial       uint32
	arg         uint32
	_           uint32
	seq         uint64
	at          int64
	due         int64
}

// header takes the place of the first slot.
type header struct {
	magic   uint64
	process uint16
	_       uint16
	unsaved uint32 // records for which there was no room
}

// Writer appends the records of one process to one file. What was appended
// survives kill -9 of the process at once: it is in the page cache. A power cut
// of the machine loses it, since nothing is synced.
//
// All methods are safe for concurrent use.
type Writer struct {
	process uint16
	file    *os.File
	reserve func(f *os.File, offset, size int64) error

	next     atomic.Uint64 // slots handed out; at least closed after Close
	finished atomic.Uint64 // slots handed out and dealt with
	segments atomic.Pointer[[]segment]
	growth   sync.Mutex
	growing  sync.WaitGroup
	err      atomic.Pointer[error]

	consumers atomic.Uint32 // numbers RecordConsumer has given out
	calls     atomic.Uint32 // Publish calls of more than one message
}

type segment []byte

// Create creates the ledger file of a process; process is any number that is
// unique within the trial. It fails where the file exists: a restarted process
// needs a file of its own. The best place is a tmpfs, where records never wait
// for the disk that the brokers are measured on.
func Create(path string, process uint16) (*Writer, error) {
	return create(path, process, allocate)
}

func create(path string, process uint16, reserve func(*os.File, int64, int64) error) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create ledger: %w", err)
	}
	w := &Writer{process: process, file: f, reserve: reserve}
	w.segments.Store(&[]segment{})
	w.next.Store(headerSlots)
	w.finished.Store(headerSlots)
	segs, err := w.grow(0)
	if err != nil {
		f.Close()
		os.Remove(path)
		return nil, fmt.Errorf("create ledger %s: %w", path, err)
	}
	h := (*header)(unsafe.Pointer(&segs[0][0]))
	h.process = process
	h.magic = magic
	return w, nil
}

// Append writes a record; r.Process is replaced by the Writer's. It does not
// fail: a record for which there is no room on the disk is counted in the file,
// which makes Read fail, and shows in Err. After Close it does nothing.
func (w *Writer) Append(r Record) {
	n := w.next.Add(1) - 1
	if n >= closed {
		return
	}
	if s := w.slot(n); s != nil {
		s.producer, s.incarnation, s.process = r.Producer, r.Incarnation, w.process
		s.trial, s.arg = r.Trial, r.Arg
		s.seq, s.at, s.due = r.Seq, r.At, r.Due
		atomic.StoreUint32(&s.word, uint32(r.Event)|uint32(r.Attempt)<<16)
	}
	w.finished.Add(1)
}

// slot returns the memory of slot n, or nil where there is no room.
func (w *Writer) slot(n uint64) *slot {
	i, k := int(n/perSegment), n%perSegment
	segs := *w.segments.Load()
	if i >= len(segs) {
		var err error
		if segs, err = w.grow(i); err != nil {
			err = fmt.Errorf("ledger %s: no room for a record: %w", w.file.Name(), err)
			w.err.CompareAndSwap(nil, &err)
			h := (*header)(unsafe.Pointer(&segs[0][0]))
			atomic.AddUint32(&h.unsaved, 1)
			return nil
		}
	}
	if k == perSegment/2 {
		// The next segment is made ready while half of this one is left, so that
		// writers hardly ever wait for the disk.
		// Should it fail, the append that needs the segment meets the error.
		w.growing.Go(func() { _, _ = w.grow(i + 1) })
	}
	return (*slot)(unsafe.Pointer(&segs[i][k*slotSize]))
}

// grow makes segments 0 to i exist, and returns those that do.
func (w *Writer) grow(i int) ([]segment, error) {
	w.growth.Lock()
	defer w.growth.Unlock()
	segs := *w.segments.Load()
	for len(segs) <= i {
		if err := w.err.Load(); err != nil {
			return segs, *err // a full disk is not asked again for every record
		}
		offset := int64(len(segs)) * segmentSize
		if err := w.reserve(w.file, offset, segmentSize); err != nil {
			return segs, fmt.Errorf("reserve: %w", err)
		}
		mem, err := unix.Mmap(int(w.file.Fd()), offset, segmentSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return segs, fmt.Errorf("map: %w", err)
		}
		more := append(slices.Clone(segs), mem) // readers hold the old one
		w.segments.Store(&more)
		segs = more
	}
	return segs, nil
}

// Err returns why records are missing from the file, or nil.
func (w *Writer) Err() error {
	if err := w.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Close waits for appends that are under way, cuts the unused tail and closes
// the file. nil means that every record is there. A second Close is a no-op
// that returns the same as Err.
func (w *Writer) Close() error {
	var used uint64
	for {
		used = w.next.Load()
		if used >= closed {
			return w.Err()
		}
		if w.next.CompareAndSwap(used, used|closed) {
			break
		}
	}
	for w.finished.Load() != used {
		runtime.Gosched()
	}
	w.growing.Wait()
	errs := []error{w.Err()}
	segs := *w.segments.Load()
	for _, mem := range segs {
		errs = append(errs, unix.Munmap(mem))
	}
	if size := int64(used) * slotSize; size < int64(len(segs))*segmentSize {
		errs = append(errs, w.file.Truncate(size))
	}
	errs = append(errs, w.file.Close())
	return errors.Join(errs...)
}

func writeZeros(f *os.File, offset, size int64) error {
	zeros := make([]byte, 1<<16)
	for end := offset + size; offset < end; {
		n, err := f.WriteAt(zeros[:min(int64(len(zeros)), end-offset)], offset)
		if err != nil {
			return err
		}
		offset += int64(n)
	}
	return nil
}
