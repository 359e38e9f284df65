package storage

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Disk is one life of the file system, from an image to a cut. Its methods may
// be called from any goroutine, but for those that say otherwise.
type Disk struct {
	work string // a directory for the bytes of the files
	at   string // where it is mounted
	done chan struct{}

	mu      sync.RWMutex
	nodes   map[uint64]*node
	handles map[uint64]*handle
	last    uint64   // id of a node or a handle
	journal []change // names that are not durable yet
	frozen  bool
	giveUp  chan struct{} // closed once what waits at the frozen file system shall fail
	failed  error         // the first syncs that could not be carried out

	delay   time.Duration
	wake    chan struct{} // closed, and made anew, to end the delays under way
	room    int64         // bytes that may still be added; -1: as many as there are
	stats   Stats
	syncing map[uint64]int64 // when each sync under way began
	settled bool             // Settle's own syncs do not wait and are not counted
}

// change is one name given or, where to is nil, taken away.
type change struct {
	dir  *node
	name string
	to   *node
}

// New makes a file system that keeps the bytes of its files below work. Its
// content is a copy of the directory from, and all of it is synced; "" is an
// empty one, whose root belongs to that user.
func New(work, from string, uid, gid uint32) (*Disk, error) {
	d := &Disk{
		work: work, nodes: map[uint64]*node{}, handles: map[uint64]*handle{}, syncing: map[uint64]int64{},
		giveUp: make(chan struct{}), wake: make(chan struct{}), room: -1,
	}
	for _, which := range []string{"current", "synced"} {
		if err := os.RemoveAll(filepath.Join(work, which)); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(filepath.Join(work, which), 0o700); err != nil {
			return nil, err
		}
	}
	root := d.add(unix.S_IFDIR|0o700, uid, gid)
	root.links, root.keptLinks = 1, 1
	if from != "" {
		if err := d.load(root, from); err != nil {
			return nil, fmt.Errorf("take over %s: %w", from, err)
		}
	}
	return d, nil
}

// add makes a node without a name.
func (d *Disk) add(mode, uid, gid uint32) *node {
	now := time.Now()
	d.last++
	n := &node{id: d.last, mode: mode, uid: uid, gid: gid, atime: now, mtime: now, ctime: now}
	if n.isDir() {
		n.names, n.kept = map[string]*node{}, map[string]*node{}
	}
	d.nodes[n.id] = n
	return n
}

// change lets one operation change something: it holds the lock where it is
// true. On a frozen file system it waits, and is false.
func (d *Disk) change() bool {
	d.mu.Lock()
	if !d.frozen {
		return true
	}
	d.mu.Unlock()
	<-d.giveUp
	return false
}

// give gives a name, or takes it away where to is nil.
func (d *Disk) give(dir *node, name string, to *node) {
	old := dir.names[name]
	if to != nil {
		dir.names[name] = to
		to.links++
		to.ctime = time.Now()
	} else {
		delete(dir.names, name)
	}
	d.journal = append(d.journal, change{dir, name, to})
	dir.touch()
	if old != nil {
		old.links--
		old.ctime = dir.ctime
		d.free(old)
	}
}

// keepNames makes durable every name until now.
func (d *Disk) keepNames() {
	var gone []*node
	for _, c := range d.journal {
		if old := c.dir.kept[c.name]; old != nil {
			old.keptLinks--
			gone = append(gone, old)
		}
		if c.to == nil {
			delete(c.dir.kept, c.name)
			continue
		}
		c.dir.kept[c.name] = c.to
		c.to.keptLinks++
	}
	d.journal = nil
	for _, n := range gone {
		d.free(n)
	}
}

// Freeze stops the file system at one instant: whoever changes something from
// now on waits, until Release lets it fail.
func (d *Disk) Freeze() Cut {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.frozen = true
	s := d.statsLocked()
	c := Cut{At: now(), Dirty: s.Dirty, Syncs: s.Syncs, Syncing: s.Syncing, Longest: s.Longest}
	if s.SyncingSince > 0 {
		c.Longest = max(c.Longest, time.Duration(c.At-s.SyncingSince))
	}
	return c
}

// Release lets fail what waits since Freeze, for the processes that wait to be
// able to die. The file system stays frozen, but for pages that the kernel still
// holds of files that were mapped into memory: they reach the image of the
// killed process.
func (d *Disk) Release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.giveUp)
	d.hurry()
}

// Hurry ends the delays that are under way, so that killed processes do not have
// to wait for them.
func (d *Disk) Hurry() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hurry()
}

func (d *Disk) hurry() {
	close(d.wake)
	d.wake = make(chan struct{})
}

// Delay makes each sync that begins from now on take so much longer.
func (d *Disk) Delay(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.delay = by
}

// Limit leaves space for so many bytes more; -1 takes the limit away. What would
// make a file longer is refused beyond it; the write that meets it is cut short.
func (d *Disk) Limit(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = bytes
}

// Stats returns what has happened.
func (d *Disk) Stats() Stats {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.statsLocked()
}

func (d *Disk) statsLocked() Stats {
	s := d.stats
	s.Syncing = len(d.syncing)
	for _, since := range d.syncing {
		if s.SyncingSince == 0 || since < s.SyncingSince {
			s.SyncingSince = since
		}
	}
	for _, n := range d.nodes {
		if n.links > 0 {
			s.Dirty += n.dirty.bytes()
		}
	}
	return s
}

// Settle makes durable all that was written, at once, and begins Longest anew.
// It is to be called on a thread that sees the mount.
func (d *Disk) Settle() error {
	if err := d.flushMapped(); err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.nodes {
		if n.links > 0 || n.keptLinks > 0 {
			if err := d.keepContent(n); err != nil {
				return fmt.Errorf("settle: %w", err)
			}
		}
	}
	d.keepNames()
	d.stats.Longest = 0
	return nil
}

// flushMapped takes over the pages that the kernel holds of files that are
// mapped into memory, by a sync of each open file.
func (d *Disk) flushMapped() error {
	d.mu.Lock()
	d.settled = true
	var paths []string
	var walk func(dir *node, path string)
	walk = func(dir *node, path string) {
		for name, n := range dir.names {
			switch p := filepath.Join(path, name); {
			case n.isDir():
				walk(n, p)
			case n.handles > 0:
				paths = append(paths, p)
			}
		}
	}
	walk(d.nodes[fuse.FUSE_ROOT_ID], d.at)
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.settled = false
	}()
	for _, p := range paths {
		fd, err := unix.Open(p, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == unix.ENOENT {
			continue // renamed or removed meanwhile
		}
		if err != nil {
			return fmt.Errorf("open %s: %w", p, err)
		}
		err = unix.Fsync(fd)
		_ = unix.Close(fd) // what was to be kept was synced
		if err != nil {
			return fmt.Errorf("sync %s: %w", p, err)
		}
	}
	return nil
}

// now is CLOCK_MONOTONIC in nanoseconds.
func now() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // there is one on every Linux
	return ts.Nano()
}
