package storage

import (
	"maps"
	"slices"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// kernel is a file system as the kernel calls it.
type kernel struct {
	fuse.RawFileSystem // what is not implemented is refused
	*Disk
}

// remembered is how long the kernel may remember what it was told: nobody but itself
// changes anything.
const remembered = time.Hour

func (n *node) entry(out *fuse.EntryOut) {
	out.NodeId = n.id
	out.SetEntryTimeout(remembered)
	out.SetAttrTimeout(remembered)
	n.attr(&out.Attr)
}

// Lookup implements fuse.RawFileSystem.
func (d kernel) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	d.mu.RLock()
	defer d.mu.RUnlock()
	n := d.nodes[h.NodeId].names[name]
	if n == nil {
		return fuse.ENOENT
	}
	n.entry(out)
	return fuse.OK
}

// make makes a node with a name.
func (d kernel) make(h *fuse.InHeader, name string, mode uint32) (*node, fuse.Status) {
	dir := d.nodes[h.NodeId]
	if dir.names[name] != nil {
		return nil, fuse.Status(unix.EEXIST)
	}
	n := d.add(mode, h.Uid, h.Gid)
	if n.isFile() {
		if err := create(d.content("current", n)); err != nil {
			return nil, fuse.ToStatus(err)
		}
	}
	d.give(dir, name, n)
	return n, fuse.OK
}

// Mknod implements fuse.RawFileSystem.
func (d kernel) Mknod(_ <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	if !d.change() {
		return fuse.EIO
	}
	defer d.mu.Unlock()
	n, status := d.make(&in.InHeader, name, in.Mode)
	if status.Ok() {
		n.rdev = in.Rdev
		n.entry(out)
	}
	return status
}

// Mkdir implements fuse.RawFileSystem.
func (d kernel) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	if !d.change() {
		return fuse.EIO
	}
	defer d.mu.Unlock()
	n, status := d.make(&in.InHeader, name, in.Mode&^unix.S_IFMT|unix.S_IFDIR)
	if status.Ok() {
		n.entry(out)
	}
	return status
}

// Symlink implements fuse.RawFileSystem.
func (d kernel) Symlink(_ <-chan struct{}, h *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	if !d.change() {
		return fuse.EIO
	}
	defer d.mu.Unlock()
	n, status := d.make(h, name, unix.S_IFLNK|0o777)
	if status.Ok() {
		n.target, n.size = target, int64(len(target))
		n.entry(out)
	}
	return status
}

// Readlink implements fuse.RawFileSystem.
func (d kernel) Readlink(_ <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return []byte(d.nodes[h.NodeId].target), fuse.OK
}

// Link implements fuse.RawFileSystem.
func (d kernel) Link(_ <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	if !d.change() {
		return fuse.EIO
	}
	defer d.mu.Unlock()
	dir, n := d.nodes[in.NodeId], d.nodes[in.Oldnodeid]
	if dir.names[name] != nil {
		return fuse.Status(unix.EEXIST)
	}
	d.give(dir, name, n)
	n.entry(out)
	return fuse.OK
}

// Unlink implements fuse.RawFileSystem.
func (d kernel) Unlink(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	if !d.change() {
		return fuse.EIO
	}
	defer d.mu.Unlock()
	dir := d.nodes[h.NodeId]
	if dir.names[name] == nil {
		return fuse.ENOENT
	}
	d.give(dir, name, nil)
	return fuse.OK
}

// Rmdir implements fuse.RawFileSystem.
func (d kernel) Rmdir(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	if !d.change() {
		return fuse.EIO
	}
	defer d.mu.Unlock()
	dir := d.nodes[h.NodeId]
	switch n := dir.names[name]; {
	case n == nil:
		return fuse.ENOENT
	case len(n.names) > 0:
		return fuse.Status(unix.ENOTEMPTY)
	}
	d.give(dir, name, nil)
	return fuse.OK
}

// Rename implements fuse.RawFileSystem.
func (d kernel) Rename(_ <-chan struct{}, in *fuse.RenameIn, oldName, newName string) fuse.Status {
	if !d.change() {
		return fuse.EIO
	}
	defer d.mu.Unlock()
	from, to := d.nodes[in.NodeId], d.nodes[in.Newdir]
	n, over := from.names[oldName], to.names[newName]
	switch {
	case in.Flags&^unix.RENAME_NOREPLACE != 0:
		return fuse.EINVAL
	case n == nil:
		return fuse.ENOENT
	case n == over:
		return fuse.OK
	case over != nil && in.Flags&unix.RENAME_NOREPLACE != 0:
		return fuse.Status(unix.EEXIST)
	case over != nil && len(over.names) > 0:
		return fuse.Status(unix.ENOTEMPTY)
	}
	d.give(to, newName, n)
	d.give(from, oldName, nil)
	return fuse.OK
}

// handle is an open file or directory.
type handle struct {
	node    *node
	entries []fuse.DirEntry // of a directory, as it was opened
}

func (d kernel) hold(h *handle) uint64 {
	d.last++
	d.handles[d.last] = h
	return d.last
}

// OpenDir implements fuse.RawFileSystem.
func (d kernel) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir := d.nodes[in.NodeId]
	h := &handle{node: dir}
	for _, name := range slices.Sorted(maps.Keys(dir.names)) {
		n := dir.names[name]
		h.entries = append(h.entries, fuse.DirEntry{Name: name, Mode: n.mode, Ino: n.id})
	}
	out.Fh = d.hold(h)
	return fuse.OK
}

// ReadDir implements fuse.RawFileSystem.
func (d kernel) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	d.mu.RLock()
	defer d.mu.RUnlock()
	entries := d.handles[in.Fh].entries
	for i := min(in.Offset, uint64(len(entries))); i < uint64(len(entries)); i++ {
		e := entries[i]
		e.Off = i + 1
		if !out.AddDirEntry(e) {
			break
		}
	}
	return fuse.OK
}

// ReleaseDir implements fuse.RawFileSystem.
func (d kernel) ReleaseDir(in *fuse.ReleaseIn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.handles, in.Fh)
}
