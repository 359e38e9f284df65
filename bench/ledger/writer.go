package ledger

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A ledger file is a header followed by slots, each of slotSize. A slot whose
// word is zero is unwritten, or torn: its process died before the word was
// stored. Numbers are in the machine's byte order; a ledger does not travel.
const (
	slotSize    = 40
	perSegment  = 1 << 16
	segmentSize = slotSize * perSegment // a multiple of every page size
	magic       = uint64(0x514c4147_45520002)
	closed      = uint64(1) << 62
	headerSlots = 1
)

// slot is the memory of one record. The word is stored last and atomically.
type slot struct {
	word        uint32 // event | attempt<<16
	producer    uint16
	incarnation uint16
	trial       uint32
	arg         uint32
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
// A record takes 40 bytes of the file, a message that goes well 200. The
// process itself holds a few segments of 2.5 MiB, however long it records; but
// on a tmpfs the file is the machine's memory: 2 GB for 10 million messages.
//
// All methods are safe for concurrent use.
type Writer struct {
	process uint16
	file    *os.File
	reserve func(f *os.File, offset, size int64) error
	skew    atomic.Int64

	next   atomic.Uint64 // slots handed out; at least closed after Close
	mapped atomic.Pointer[window]
	head   []byte        // the header's page, mapped by itself: its segment goes
	missed atomic.Uint64 // slots handed out for which there was no room

	growth  sync.Mutex
	retired uint64 // slots of the segments that were unmapped; under growth
	growing sync.WaitGroup
	err     atomic.Pointer[error]

	consumers atomic.Uint32 // numbers RecordConsumer has given out
	calls     atomic.Uint32 // Publish calls of more than one message
}

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
	w.mapped.Store(&window{})
	w.next.Store(headerSlots)
	if err := w.begin(); err != nil {
		f.Close()
		os.Remove(path)
		return nil, fmt.Errorf("create ledger %s: %w", path, err)
	}
	return w, nil
}

func (w *Writer) begin() error {
	v, err := w.grow(0)
	if err != nil {
		return err
	}
	v.segs[0].done.Store(headerSlots)
	w.head, err = unix.Mmap(int(w.file.Fd()), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return errors.Join(fmt.Errorf("map the header: %w", err), unix.Munmap(v.segs[0].mem))
	}
	h := w.header()
	h.process = w.process
	h.magic = magic
	return nil
}

func (w *Writer) header() *header { return (*header)(unsafe.Pointer(&w.head[0])) }

// Skew puts all stamps of later records off by d, also the due times of
// intents, as if this process had a clock that is wrong by that much. It is for
// calibration only: a harness that is worth its name must notice.
func (w *Writer) Skew(d time.Duration) { w.skew.Store(int64(d)) }

// Append writes a record; r.Process is replaced by the Writer's. It does not
// fail: a record for which there is no room on the disk is counted in the file,
// which makes Read fail, and shows in Err. After Close it does nothing.
func (w *Writer) Append(r Record) {
	n := w.next.Add(1) - 1
	if n >= closed {
		return
	}
	seg := w.segment(n)
	if seg == nil {
		w.missed.Add(1)
		return
	}
	if skew := w.skew.Load(); skew != 0 {
		r.At += skew
		if r.Event == Intent {
			r.Due += skew
		}
	}
	s := seg.slot(n % perSegment)
	s.producer, s.incarnation = r.Producer, r.Incarnation
	s.trial, s.arg = r.Trial, r.Arg
	s.seq, s.at, s.due = r.Seq, r.At, r.Due
	atomic.StoreUint32(&s.word, uint32(r.Event)|uint32(r.Attempt)<<16)
	seg.done.Add(1) // the last touch: from here on the segment may go
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
	for w.settled() != used {
		runtime.Gosched()
	}
	w.growing.Wait()
	errs := []error{w.Err()}
	v := w.mapped.Load()
	for _, seg := range v.segs {
		if seg != nil {
			errs = append(errs, unix.Munmap(seg.mem))
		}
	}
	errs = append(errs, unix.Munmap(w.head))
	if size := int64(used) * slotSize; size < int64(v.end())*segmentSize {
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
