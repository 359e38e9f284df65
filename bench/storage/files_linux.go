package storage

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

func create(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// GetAttr implements fuse.RawFileSystem.
func (d kernel) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	d.mu.RLock()
	defer d.mu.RUnlock()
	d.nodes[in.NodeId].attr(&out.Attr)
	out.SetTimeout(remembered)
	return fuse.OK
}

// SetAttr implements fuse.RawFileSystem.
func (d kernel) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	if !d.change() {
		return fuse.EIO
	}
	defer d.mu.Unlock()
	n := d.nodes[in.NodeId]
	if size, ok := in.GetSize(); ok {
		if err := d.resize(n, int64(size)); err != nil {
			return fuse.ToStatus(err)
		}
	}
	if mode, ok := in.GetMode(); ok {
		n.mode = n.kind() | mode
	}
	if uid, ok := in.GetUID(); ok {
		n.uid = uid
	}
	if gid, ok := in.GetGID(); ok {
		n.gid = gid
	}
	if t, ok := in.GetATime(); ok {
		n.atime = t
	}
	if t, ok := in.GetMTime(); ok {
		n.mtime = t
	}
	n.ctime = time.Now()
	n.attr(&out.Attr)
	out.SetTimeout(remembered)
	return fuse.OK
}

// Create implements fuse.RawFileSystem.
func (d kernel) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	if !d.change() {
		return fuse.EIO
	}
	defer d.mu.Unlock()
	n, status := d.make(&in.InHeader, name, in.Mode&^unix.S_IFMT|unix.S_IFREG)
	if !status.Ok() {
		return status
	}
	n.entry(&out.EntryOut)
	return d.open(n, &out.OpenOut)
}

// Open implements fuse.RawFileSystem.
func (d kernel) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	truncate := in.Flags&unix.O_TRUNC != 0
	if !truncate {
		d.mu.Lock() // reading goes on in a frozen file system
	} else if !d.change() {
		return fuse.EIO
	}
	defer d.mu.Unlock()
	n := d.nodes[in.NodeId]
	if truncate {
		if err := d.resize(n, 0); err != nil {
			return fuse.ToStatus(err)
		}
	}
	return d.open(n, out)
}

func (d kernel) open(n *node, out *fuse.OpenOut) fuse.Status {
	if err := d.opened(n); err != nil {
		return fuse.ToStatus(err)
	}
	out.Fh = d.hold(&handle{node: n})
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE
	return fuse.OK
}

// Release implements fuse.RawFileSystem.
func (d kernel) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.handles[in.Fh]; h != nil {
		delete(d.handles, in.Fh)
		d.released(h.node)
	}
}

// Flush implements fuse.RawFileSystem: a close makes nothing durable.
func (d kernel) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.OK }

// Read implements fuse.RawFileSystem.
func (d kernel) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	n := d.nodes[in.NodeId]
	if n.file == nil {
		return nil, fuse.EBADF
	}
	got, err := n.file.ReadAt(buf[:min(len(buf), int(in.Size))], int64(in.Offset))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fuse.ToStatus(err)
	}
	return fuse.ReadResultData(buf[:got]), fuse.OK
}

// Write implements fuse.RawFileSystem.
func (d kernel) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	// A page that was mapped into memory had its space before, and belongs to the
	// image of a killed process also when the kernel hands it over later.
	mapped := in.WriteFlags&fuse.WRITE_CACHE != 0
	if mapped {
		d.mu.Lock()
	} else if !d.change() {
		return 0, fuse.EIO
	}
	defer d.mu.Unlock()
	write := d.write
	if mapped {
		write = d.fill
	}
	n, err := write(d.nodes[in.NodeId], data, int64(in.Offset))
	if n > 0 {
		return uint32(n), fuse.OK
	}
	return 0, fuse.ToStatus(err)
}

// Fallocate implements fuse.RawFileSystem.
func (d kernel) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	if !d.change() {
		return fuse.EIO
	}
	defer d.mu.Unlock()
	n := d.nodes[in.NodeId]
	if n.file == nil {
		return fuse.EBADF
	}
	from, to := int64(in.Offset), int64(in.Offset+in.Length)
	grows := in.Mode&unix.FALLOC_FL_KEEP_SIZE == 0 && to > n.size
	if grows && d.room >= 0 && to-n.size > d.room {
		d.stats.Refused++
		return fuse.Status(unix.ENOSPC)
	}
	if in.Mode&^(unix.FALLOC_FL_KEEP_SIZE|unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_ZERO_RANGE) != 0 {
		return fuse.ENOTSUP // they move what lies behind
	}
	if err := unix.Fallocate(int(n.file.Fd()), in.Mode, from, to-from); err != nil {
		return fuse.ToStatus(err)
	}
	if grows {
		n.size = to
	}
	if in.Mode&^unix.FALLOC_FL_KEEP_SIZE != 0 { // it made zeros of what was there
		n.dirty.add(from, min(to, n.size))
	}
	n.touch()
	return fuse.OK
}

// StatFs implements fuse.RawFileSystem.
func (d kernel) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	var s unix.Statfs_t
	if err := unix.Statfs(d.work, &s); err != nil {
		return fuse.ToStatus(err)
	}
	*out = fuse.StatfsOut{
		Blocks: s.Blocks, Bfree: s.Bfree, Bavail: s.Bavail, Files: s.Files, Ffree: s.Ffree,
		Bsize: uint32(s.Bsize), Frsize: uint32(s.Frsize), NameLen: uint32(s.Namelen),
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.room >= 0 {
		out.Bfree = min(out.Bfree, uint64(d.room)/uint64(s.Bsize))
		out.Bavail = out.Bfree
	}
	return fuse.OK
}

// Fsync implements fuse.RawFileSystem.
func (d kernel) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	const datasync = 1
	return d.sync(in, func(n *node) error {
		skip := in.FsyncFlags&datasync != 0 && n.sizeIsKept() && n.keptLinks > 0
		if err := d.keepContent(n); err != nil || skip {
			return err
		}
		d.keepNames()
		return nil
	})
}

// FsyncDir implements fuse.RawFileSystem.
func (d kernel) FsyncDir(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return d.sync(in, func(*node) error {
		d.keepNames()
		return nil
	})
}

// sync waits as long as it is told and then makes something durable: what power
// takes away meanwhile was not.
func (d kernel) sync(in *fuse.FsyncIn, keep func(*node) error) fuse.Status {
	if !d.change() {
		return fuse.EIO
	}
	began, ours := now(), d.settled
	if !ours {
		d.syncing[in.Unique] = began
	}
	if delay, wake := d.delay, d.wake; delay > 0 && !ours {
		d.mu.Unlock()
		select {
		case <-time.After(delay):
		case <-wake:
		}
		d.mu.Lock()
	}
	if d.frozen {
		d.mu.Unlock()
		<-d.giveUp
		return fuse.EIO
	}
	defer d.mu.Unlock()
	err := keep(d.nodes[in.NodeId])
	if !ours {
		delete(d.syncing, in.Unique)
		d.stats.Syncs++
		d.stats.Longest = max(d.stats.Longest, time.Duration(now()-began))
	}
	if err != nil {
		return fuse.EIO
	}
	return fuse.OK
}
