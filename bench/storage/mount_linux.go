package storage

import (
	"fmt"
	"io"
	"log"
	"runtime"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const device = "/dev/fuse"

// Available says with ErrUnavailable why there can be no such file system here;
// nil: there can. It tries what can be tried without leaving anything.
func Available() error {
	fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%w: open %s: %w; it needs root and the kernel's FUSE (modprobe fuse)", ErrUnavailable, device, err)
	}
	_ = unix.Close(fd) // it was only tried
	tried := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: this thread ends with the goroutine
		tried <- Private()
	}()
	if err := <-tried; err != nil {
		return fmt.Errorf("%w: %w; it needs root with CAP_SYS_ADMIN", ErrUnavailable, err)
	}
	return nil
}

// Private gives the calling thread a mount namespace of its own, which the
// children that it starts are in. The caller must have locked the thread, and may
// never unlock it: other goroutines would run on it and see other mounts.
func Private() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("a mount namespace of its own: %w", err)
	}
	// What is mounted in here shall not show out there.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts in their namespace: %w", err)
	}
	return nil
}

// writeAtMost is the longest write that the kernel hands over as one.
const writeAtMost = 128 << 10

// Mount mounts the file system at an absolute path, in the mount namespace of the
// calling thread, and serves it until Unmount.
func (d *Disk) Mount(at string) error {
	// Opened here and not by the library, whose handle would be inherited: a
	// child that holds it keeps the connection alive when nobody serves it.
	fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("mount %s: open %s: %w", at, device, err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d,default_permissions,allow_other,max_read=%d",
		fd, unix.Geteuid(), unix.Getegid(), writeAtMost)
	if err := unix.Mount("queuelab", at, "fuse.queuelab", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		_ = unix.Close(fd) // nothing was mounted
		return fmt.Errorf("mount %s: %w", at, err)
	}
	server, err := fuse.NewServer(kernel{fuse.NewDefaultRawFileSystem(), d}, fmt.Sprintf("/dev/fd/%d", fd), &fuse.MountOptions{
		MaxWrite: writeAtMost, DisableXAttrs: true, DisableReadDirPlus: true, ExplicitDataCacheControl: true,
		Logger: log.New(io.Discard, "", 0), // it tells of each request that a killed process gave up
	})
	if err != nil {
		_ = unix.Unmount(at, unix.MNT_DETACH) // nobody serves it
		return fmt.Errorf("mount %s: %w", at, err)
	}
	d.at, d.done = at, make(chan struct{})
	go func() {
		defer close(d.done)
		server.Serve()
	}()
	return nil
}

// Unmount takes the mount away, on a thread that sees it, and returns once
// nothing of it is served any more. Files that are still open make it fail.
func (d *Disk) Unmount() error {
	if err := unix.Unmount(d.at, 0); err != nil {
		return fmt.Errorf("unmount %s: %w", d.at, err)
	}
	<-d.done
	return nil
}
