package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Lay makes a directory of an image, whose files share their bytes with this
// file system. It is for one that was cut and unmounted, since it is of no use
// afterwards. A sync that could not be carried out is an error: the image would
// not be true.
func (d *Disk) Lay(image Image, at string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed != nil {
		return fmt.Errorf("image %s: %w", image, d.failed)
	}
	if err := os.RemoveAll(at); err != nil {
		return err
	}
	if err := d.lay(image, d.nodes[1], at); err != nil {
		return fmt.Errorf("image %s: %w", image, err)
	}
	return nil
}

func (d *Disk) lay(image Image, n *node, at string) error {
	switch n.kind() {
	case unix.S_IFREG:
		which := "current"
		if image == Power {
			which = "synced"
		}
		err := os.Link(d.content(which, n), at)
		if image == Power && errors.Is(err, fs.ErrNotExist) {
			err = create(at) // its name was synced, and nothing of its content
		}
		if err != nil {
			return err
		}
	case unix.S_IFDIR:
		if err := os.Mkdir(at, 0o700); err != nil {
			return err
		}
		names := n.names
		if image == Power {
			names = n.kept
		}
		for name, child := range names {
			if err := d.lay(image, child, filepath.Join(at, name)); err != nil {
				return err
			}
		}
	case unix.S_IFLNK:
		if err := os.Symlink(n.target, at); err != nil {
			return err
		}
		return os.Lchown(at, int(n.uid), int(n.gid))
	default: // a socket or a pipe: nobody is at the other end any more
		return nil
	}
	if err := os.Lchown(at, int(n.uid), int(n.gid)); err != nil {
		return err
	}
	if err := unix.Chmod(at, n.mode&0o7777); err != nil {
		return err
	}
	return os.Chtimes(at, n.atime, n.mtime)
}

// load takes over a directory.
func (d *Disk) load(into *node, from string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	into.take(info)
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	linked := map[uint64]*node{}
	for _, e := range entries {
		path := filepath.Join(from, e.Name())
		info, err := e.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		n := linked[st.Ino]
		if n == nil {
			n = d.add(st.Mode, st.Uid, st.Gid)
			if err := d.loadOne(n, path, info); err != nil {
				return err
			}
			if n.isFile() {
				linked[st.Ino] = n
			}
		}
		into.names[e.Name()], into.kept[e.Name()] = n, n
		n.links++
		n.keptLinks++
	}
	return nil
}

func (d *Disk) loadOne(n *node, path string, info fs.FileInfo) (err error) {
	switch n.kind() {
	case unix.S_IFDIR:
		return d.load(n, path)
	case unix.S_IFLNK:
		n.target, err = os.Readlink(path)
		n.size = int64(len(n.target))
	case unix.S_IFREG:
		n.size, n.keptSize, n.low = info.Size(), info.Size(), info.Size()
		for _, which := range []string{"current", "synced"} {
			if err = copySparse(path, d.content(which, n)); err != nil {
				return err
			}
		}
	}
	n.take(info)
	return err
}

// take takes over who owns a file, what may be done with it, and when it changed.
func (n *node) take(info fs.FileInfo) {
	st := info.Sys().(*syscall.Stat_t)
	n.mode, n.uid, n.gid = st.Mode, st.Uid, st.Gid
	n.mtime, n.ctime = info.ModTime(), info.ModTime()
	n.atime = time.Unix(st.Atim.Unix())
}

// copySparse copies a file and leaves its holes: an index of Kafka's is 10 MB of
// them.
func copySparse(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer dst.Close()
	info, err := src.Stat()
	if err != nil {
		return err
	}
	for at := int64(0); at < info.Size(); {
		data, err := src.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // nothing but a hole is left
		}
		if err != nil {
			return err
		}
		if at, err = src.Seek(data, unix.SEEK_HOLE); err != nil {
			return err
		}
		if _, err := io.Copy(io.NewOffsetWriter(dst, data), io.NewSectionReader(src, data, at-data)); err != nil {
			return err
		}
	}
	return dst.Truncate(info.Size())
}
