package storage

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tester is what helpers need of a test, or of one round of a property.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// mounted gives the test a file system at a path that only the test's own thread
// and the processes that it starts see.
func mounted(t testing.TB, from string) (d *Disk, at string) {
	t.Helper()
	if err := Available(); err != nil {
		t.Skip(err)
	}
	runtime.LockOSThread() // until the test's goroutine ends, and the thread with it
	if err := Private(); err != nil {
		t.Fatal(err)
	}
	return mount(t, t.TempDir(), from)
}

// mount makes one life of a file system, in a namespace that is there.
func mount(t tester, dir, from string) (d *Disk, at string) {
	t.Helper()
	at = filepath.Join(dir, "disk")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	d, err := New(filepath.Join(dir, "storage"), from, uint32(os.Getuid()), uint32(os.Getgid()))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Mount(at); err != nil {
		t.Fatal(err)
	}
	neverPoll(t, filepath.Join(at, "poll"))
	t.Cleanup(func() {
		if d.at != "" {
			_ = unix.Unmount(d.at, unix.MNT_DETACH)
			<-d.done
		}
	})
	return d, at
}

// neverPoll lets the kernel find out that files here cannot be polled. Package os
// asks for it at each open, in a way that stops the scheduler meanwhile, and so
// whoever should answer where that is the same process.
func neverPoll(t tester, path string) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	if err := errors.Join(err, unix.Close(fd), unix.Unlink(path)); err != nil {
		t.Fatal(err)
	}
}

// cut cuts and returns both images. No process may be left that uses it.
func cut(t tester, d *Disk) (c Cut, crash, power string) {
	t.Helper()
	c = d.Freeze()
	d.Release()
	crash, power = laid(t, d)
	return c, crash, power
}

func laid(t tester, d *Disk) (crash, power string) {
	t.Helper()
	if err := d.Unmount(); err != nil {
		t.Fatal(err)
	}
	d.at = ""
	crash, power = filepath.Join(d.work, "crash"), filepath.Join(d.work, "power")
	if err := errors.Join(d.Lay(Crash, crash), d.Lay(Power, power)); err != nil {
		t.Fatal(err)
	}
	return crash, power
}

// tree reads a directory: content by path, and "dir" for directories.
func tree(t tester, root string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name, _ := filepath.Rel(root, path)
		if e.IsDir() {
			got[name] = "dir"
			return nil
		}
		b, err := os.ReadFile(path)
		got[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// spawn starts this test binary as a process on the file system, and returns
// once it has said its first line.
func spawn(t tester, what, path string) (cmd *exec.Cmd, lines *bufio.Scanner) {
	t.Helper()
	cmd = exec.Command(os.Args[0], path)
	cmd.Env = append(os.Environ(), childVar+"="+what)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	lines = bufio.NewScanner(out)
	if !lines.Scan() || strings.HasPrefix(lines.Text(), "failed") {
		t.Fatalf("the child said %q", lines.Text())
	}
	return cmd, lines
}

// child is what a spawned process does.
func child(what, path string) error {
	switch what {
	case "map": // writes through memory: a synced part, and one that is not
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		if err := f.Truncate(8192); err != nil {
			return err
		}
		m, err := unix.Mmap(int(f.Fd()), 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		copy(m, "synced")
		if err := unix.Msync(m, unix.MS_SYNC); err != nil {
			return err
		}
		copy(m[4096:], "mapped")
		fmt.Println("mapped")
		select {}
	case "append": // numbers its writes, and says which it wrote and which it synced
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			return err
		}
		for i := 1; ; i++ {
			if _, err := fmt.Fprintf(f, "%08d\n", i); err != nil {
				return err
			}
			fmt.Println("wrote", i)
			if i%7 == 0 {
				if err := f.Sync(); err != nil {
					return err
				}
				fmt.Println("synced", i)
			}
		}
	}
	return fmt.Errorf("unknown child %q", what)
}

// until waits for a fact.
func until(t tester, fact string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10s: %s", fact)
		}
	}
}
