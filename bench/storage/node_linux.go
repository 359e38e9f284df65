package storage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// node is a file, a directory or whatever else has a name. What it has in the
// synced image is called kept.
type node struct {
	id                  uint64
	mode                uint32 // type and permissions
	uid, gid, rdev      uint32
	atime, mtime, ctime time.Time

	links, keptLinks int // names that lead to it

	names, kept map[string]*node // of a directory
	target      string           // of a symbolic link

	size, keptSize int64
	low            int64 // the least size since the last sync
	dirty          spans
	handles        int
	file           *os.File // its current content, while there are handles
}

func (n *node) kind() uint32 { return n.mode & unix.S_IFMT }
func (n *node) isDir() bool  { return n.kind() == unix.S_IFDIR }
func (n *node) isFile() bool { return n.kind() == unix.S_IFREG }

// contentIsKept reports whether the synced image has the same content.
func (n *node) contentIsKept() bool {
	return n.sizeIsKept() && len(n.dirty) == 0
}

func (n *node) sizeIsKept() bool { return n.size == n.keptSize && n.low >= n.keptSize }

func (n *node) touch() { n.mtime = time.Now(); n.ctime = n.mtime }

// attr fills in what the kernel wants to know.
func (n *node) attr(out *fuse.Attr) {
	*out = fuse.Attr{
		Ino: n.id, Size: uint64(n.size), Blocks: uint64(n.size+511) / 512, Blksize: 4096,
		Mode: n.mode, Nlink: uint32(n.links), Owner: fuse.Owner{Uid: n.uid, Gid: n.gid}, Rdev: n.rdev,
	}
	if n.isDir() {
		out.Nlink = 2
	}
	out.SetTimes(&n.atime, &n.mtime, &n.ctime)
}

// content is where a file's bytes are: current ones, and synced ones, which are
// not there before the first sync.
func (d *Disk) content(which string, n *node) string {
	return filepath.Join(d.work, which, strconv.FormatUint(n.id, 10))
}

// opened counts a handle.
func (d *Disk) opened(n *node) error {
	if n.file == nil {
		f, err := os.OpenFile(d.content("current", n), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		n.file = f
	}
	n.handles++
	return nil
}

// released gives a handle back.
func (d *Disk) released(n *node) {
	if n.handles--; n.handles == 0 {
		n.file.Close()
		n.file = nil
		d.free(n)
	}
}

// free removes the bytes of a file that nobody can reach any more.
func (d *Disk) free(n *node) {
	if n.isFile() && n.links == 0 && n.keptLinks == 0 && n.handles == 0 {
		os.Remove(d.content("current", n))
		os.Remove(d.content("synced", n))
	}
}

// write writes and returns how many bytes found space.
func (d *Disk) write(n *node, data []byte, at int64) (int, error) {
	if growth := at + int64(len(data)) - n.size; d.room >= 0 && growth > 0 {
		if growth > d.room {
			d.stats.Refused++
			if data = data[:max(0, int64(len(data))-(growth-d.room))]; len(data) == 0 {
				return 0, unix.ENOSPC
			}
		}
		d.room = max(0, d.room-growth)
	}
	return d.fill(n, data, at)
}

// fill writes without asking for space.
func (d *Disk) fill(n *node, data []byte, at int64) (int, error) {
	if n.file == nil {
		return 0, unix.EBADF
	}
	written, err := n.file.WriteAt(data, at)
	n.dirty.add(at, at+int64(written))
	n.size = max(n.size, at+int64(written))
	n.touch()
	d.stats.Written += int64(written)
	return written, err
}

// resize truncates a file, or extends it by a hole.
func (d *Disk) resize(n *node, size int64) error {
	if err := os.Truncate(d.content("current", n), size); err != nil {
		return err
	}
	n.dirty.cut(size)
	n.low = min(n.low, size)
	n.size = size
	n.touch()
	return nil
}

// keepContent makes a file's content and size durable.
func (d *Disk) keepContent(n *node) error {
	if !n.isFile() || n.contentIsKept() {
		return nil
	}
	err := d.copyDirty(n)
	if err != nil {
		// The image is neither the one nor the other now: whoever asks for it is told.
		err = fmt.Errorf("sync: %w", err)
		d.failed = errors.Join(d.failed, err)
		return err
	}
	n.dirty, n.keptSize, n.low = nil, n.size, n.size
	return nil
}

func (d *Disk) copyDirty(n *node) error {
	from := n.file
	if from == nil {
		f, err := os.Open(d.content("current", n))
		if err != nil {
			return err
		}
		defer f.Close()
		from = f
	}
	to, err := os.OpenFile(d.content("synced", n), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer to.Close()
	if n.low < n.keptSize {
		if err := to.Truncate(n.low); err != nil {
			return err
		}
	}
	for _, p := range n.dirty {
		if _, err := io.Copy(io.NewOffsetWriter(to, p.from), io.NewSectionReader(from, p.from, p.to-p.from)); err != nil {
			return err
		}
	}
	return to.Truncate(n.size)
}
