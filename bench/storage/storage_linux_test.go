package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// script is what a process does to a directory. The first error ends it.
type script struct {
	dir string
	err error
}

func (s *script) do(err error) {
	if s.err == nil {
		s.err = err
	}
}

func (s *script) with(name string, flags int, f func(*os.File) error) {
	if s.err != nil {
		return
	}
	file, err := os.OpenFile(filepath.Join(s.dir, name), flags, 0o644)
	if err != nil {
		s.err = err
		return
	}
	s.do(f(file))
	s.do(file.Close())
}

func (s *script) write(name, content string) {
	s.with(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, func(f *os.File) error { _, err := f.WriteString(content); return err })
}

func (s *script) appendTo(name, content string) {
	s.with(name, os.O_WRONLY|os.O_APPEND, func(f *os.File) error { _, err := f.WriteString(content); return err })
}

func (s *script) at(name, content string, off int64) {
	s.with(name, os.O_WRONLY, func(f *os.File) error { _, err := f.WriteAt([]byte(content), off); return err })
}

func (s *script) sync(name string) { s.with(name, os.O_RDONLY, (*os.File).Sync) }

func (s *script) datasync(name string) {
	s.with(name, os.O_RDONLY, func(f *os.File) error { return unix.Fdatasync(int(f.Fd())) })
}

func (s *script) path(name string) string { return filepath.Join(s.dir, name) }
func (s *script) rename(from, to string)  { s.do(os.Rename(s.path(from), s.path(to))) }
func (s *script) remove(name string)      { s.do(os.Remove(s.path(name))) }
func (s *script) mkdir(name string)       { s.do(os.Mkdir(s.path(name), 0o755)) }
func (s *script) truncate(name string, n int64) {
	s.do(os.Truncate(s.path(name), n))
}

type files = map[string]string

func TestACutLeavesWhatWasWrittenAndWhatWasSynced(t *testing.T) {
	for name, c := range map[string]struct {
		do           func(*script)
		crash, power files
		dirty        int64
	}{
		"content that was never synced is lost, and its name with it": {
			func(s *script) { s.write("a", "one") },
			files{"a": "one"}, files{}, 3,
		},
		"a sync makes content and name durable": {
			func(s *script) { s.write("a", "one"); s.sync("a") },
			files{"a": "one"}, files{"a": "one"}, 0,
		},
		"a data sync that needs the size makes it and the name durable": {
			func(s *script) { s.write("a", "one"); s.datasync("a") },
			files{"a": "one"}, files{"a": "one"}, 0,
		},
		"what was appended after a sync is lost": {
			func(s *script) { s.write("a", "one"); s.sync("a"); s.appendTo("a", "two") },
			files{"a": "onetwo"}, files{"a": "one"}, 3,
		},
		"what was overwritten after a sync comes back": {
			func(s *script) { s.write("a", "one two three"); s.sync("a"); s.at("a", "TWO", 4) },
			files{"a": "one TWO three"}, files{"a": "one two three"}, 3,
		},
		"what was cut off after a sync comes back": {
			func(s *script) { s.write("a", "one two"); s.sync("a"); s.truncate("a", 3) },
			files{"a": "one"}, files{"a": "one two"}, 0,
		},
		"what was written and cut off is dirty no more": {
			func(s *script) { s.write("a", "one two"); s.truncate("a", 3) },
			files{"a": "one"}, files{}, 3,
		},
		"what was cut off and synced is gone, also where the file grew again": {
			func(s *script) {
				s.write("a", "one two")
				s.sync("a")
				s.truncate("a", 3)
				s.truncate("a", 5)
				s.sync("a")
			},
			files{"a": "one\x00\x00"}, files{"a": "one\x00\x00"}, 0,
		},
		"a hole before what was written is zeros": {
			func(s *script) { s.write("a", ""); s.at("a", "end", 4); s.sync("a") },
			files{"a": "\x00\x00\x00\x00end"}, files{"a": "\x00\x00\x00\x00end"}, 0,
		},
		"a name is durable with the directory, its content is not": {
			func(s *script) { s.write("a", "one"); s.sync(".") },
			files{"a": "one"}, files{"a": ""}, 3,
		},
		"a sync of another file makes earlier names durable": {
			func(s *script) { s.write("a", "one"); s.write("b", "two"); s.sync("b"); s.write("c", "three") },
			files{"a": "one", "b": "two", "c": "three"}, files{"a": "", "b": "two"}, 8,
		},
		"a data sync in place takes no names along": {
			func(s *script) {
				s.write("b", "two")
				s.sync("b")
				s.write("a", "one")
				s.at("b", "TWO", 0)
				s.datasync("b")
			},
			files{"a": "one", "b": "TWO"}, files{"b": "TWO"}, 3,
		},
		"a rename over a file is undone as a whole": {
			func(s *script) {
				s.write("a", "old")
				s.sync("a")
				s.write("new", "new")
				s.sync("new")
				s.rename("new", "a")
			},
			files{"a": "new"}, files{"a": "old", "new": "new"}, 0,
		},
		"a rename is durable with its directory": {
			func(s *script) {
				s.write("a", "old")
				s.write("new", "new")
				s.sync("new")
				s.rename("new", "a")
				s.sync(".")
			},
			files{"a": "new"}, files{"a": "new"}, 0,
		},
		"a removed file comes back": {
			func(s *script) { s.write("a", "one"); s.sync("a"); s.remove("a") },
			files{}, files{"a": "one"}, 0,
		},
		"a removed file that nobody synced since stays away after a sync of its directory": {
			func(s *script) { s.write("a", "one"); s.sync("a"); s.remove("a"); s.sync(".") },
			files{}, files{}, 0,
		},
		"a sync of a file makes the directories above it durable": {
			func(s *script) { s.mkdir("d"); s.mkdir("d/e"); s.write("d/e/a", "one"); s.sync("d/e/a"); s.mkdir("f") },
			files{"d": "dir", "d/e": "dir", "d/e/a": "one", "f": "dir"}, files{"d": "dir", "d/e": "dir", "d/e/a": "one"}, 0,
		},
		"a directory is renamed with what is in it": {
			func(s *script) { s.mkdir("d"); s.write("d/a", "one"); s.sync("d/a"); s.rename("d", "e"); s.sync(".") },
			files{"e": "dir", "e/a": "one"}, files{"e": "dir", "e/a": "one"}, 0,
		},
		"a second name of a file is durable on its own": {
			func(s *script) {
				s.write("a", "one")
				s.sync("a")
				s.do(os.Link(s.path("a"), s.path("b")))
				s.sync("b")
				s.remove("a")
			},
			files{"b": "one"}, files{"a": "one", "b": "one"}, 0,
		},
		"a file without a name can be written and synced, and is gone": {
			func(s *script) {
				s.with("a", os.O_RDWR|os.O_CREATE, func(f *os.File) error {
					_, err := f.WriteString("one")
					return errors.Join(err, os.Remove(f.Name()), f.Sync())
				})
			},
			files{}, files{}, 0,
		},
		"space that was reserved is zeros": {
			func(s *script) {
				s.with("a", os.O_RDWR|os.O_CREATE, func(f *os.File) error {
					return errors.Join(unix.Fallocate(int(f.Fd()), 0, 0, 4), f.Sync())
				})
			},
			files{"a": "\x00\x00\x00\x00"}, files{"a": "\x00\x00\x00\x00"}, 0,
		},
		"a part that was freed comes back unless it was synced": {
			func(s *script) {
				s.write("a", strings.Repeat("x", 3*4096))
				s.sync("a")
				s.with("a", os.O_RDWR, func(f *os.File) error {
					return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 4096, 4096)
				})
			},
			files{"a": strings.Repeat("x", 4096) + strings.Repeat("\x00", 4096) + strings.Repeat("x", 4096)},
			files{"a": strings.Repeat("x", 3*4096)}, 4096,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, at := mounted(t, "")
			s := &script{dir: at}
			c.do(s)
			if s.err != nil {
				t.Fatal(s.err)
			}
			if diff := cmp.Diff(c.crash, tree(t, at)); diff != "" {
				t.Errorf("before the cut (-want +got):\n%s", diff)
			}
			told, crash, power := cut(t, d)
			if diff := cmp.Diff(c.crash, tree(t, crash)); diff != "" {
				t.Errorf("of a killed process (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.power, tree(t, power)); diff != "" {
				t.Errorf("of a power loss (-want +got):\n%s", diff)
			}
			if told.Dirty != c.dirty {
				t.Errorf("got %d dirty bytes, want %d", told.Dirty, c.dirty)
			}
		})
	}
}

func TestPagesWrittenThroughMemoryAreOfTheKilledProcess(t *testing.T) {
	d, at := mounted(t, "")
	cmd, _ := spawn(t, "map", filepath.Join(at, "a"))
	d.Freeze()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.Release()
	cmd.Wait()
	crash, power := laid(t, d)
	page := func(s string) string { return s + strings.Repeat("\x00", 4096-len(s)) }
	if diff := cmp.Diff(files{"a": page("synced") + page("mapped")}, tree(t, crash)); diff != "" {
		t.Errorf("of a killed process (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(files{"a": page("synced") + page("")}, tree(t, power)); diff != "" {
		t.Errorf("of a power loss (-want +got):\n%s", diff)
	}
}

func TestSettleSyncsWhatIsOnlyInMemory(t *testing.T) {
	d, at := mounted(t, "")
	s := &script{dir: at}
	s.mkdir("d")
	s.write("d/b", "written")
	if s.err != nil {
		t.Fatal(s.err)
	}
	cmd, _ := spawn(t, "map", filepath.Join(at, "a"))
	if err := d.Settle(); err != nil {
		t.Fatal(err)
	}
	if got := d.Stats().Dirty; got != 0 {
		t.Errorf("got %d dirty bytes after Settle, want none", got)
	}
	d.Freeze()
	cmd.Process.Kill()
	d.Release()
	cmd.Wait()
	crash, power := laid(t, d)
	if diff := cmp.Diff(tree(t, crash), tree(t, power)); diff != "" {
		t.Errorf("the images differ (-killed +power):\n%s", diff)
	}
	if got := tree(t, power)["a"]; !strings.Contains(got, "mapped") {
		t.Errorf("got %q, want what was written through memory", got)
	}
}

// A process writes and syncs until it is killed: the images are of one instant.
func TestACutUnderLoadHasAllThatWasAnsweredBefore(t *testing.T) {
	d, at := mounted(t, "")
	cmd, lines := spawn(t, "append", filepath.Join(at, "a"))
	var mu sync.Mutex
	told := map[string]int{}
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines.Scan() {
			what, n := "", 0
			fmt.Sscan(lines.Text(), &what, &n)
			mu.Lock()
			told[what] = n
			mu.Unlock()
		}
	})
	until(t, "50 syncs", func() bool { return d.Stats().Syncs > 50 })
	mu.Lock()
	wrote, synced := told["wrote"], told["synced"]
	mu.Unlock()
	d.Freeze()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.Release()
	cmd.Wait()
	reading.Wait()
	crash, power := laid(t, d)
	const line = 9
	inCrash, inPower := tree(t, crash)["a"], tree(t, power)["a"]
	if len(inCrash) < wrote*line || len(inCrash)%line != 0 {
		t.Errorf("got %d bytes of a killed process, want whole lines and at least %d", len(inCrash), wrote*line)
	}
	if len(inPower) < synced*line || len(inPower)%(7*line) != 0 {
		t.Errorf("got %d bytes of a power loss, want what one of its syncs left and at least %d", len(inPower), synced*line)
	}
	if !strings.HasPrefix(inCrash, inPower) {
		t.Error("what was synced is no beginning of what was written")
	}
}

func TestWhatComesAfterTheCutFailsAndIsInNoImage(t *testing.T) {
	d, at := mounted(t, "")
	s := &script{dir: at}
	s.write("a", "one")
	s.sync("a")
	if s.err != nil {
		t.Fatal(s.err)
	}
	f, err := os.OpenFile(filepath.Join(at, "a"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	d.Freeze()
	failed := make(chan error)
	go func() { _, err := f.WriteString("two"); failed <- errors.Join(err, f.Sync()) }()
	select {
	case err := <-failed:
		t.Fatalf("got %v before the release, want it to wait", err)
	default:
	}
	d.Release()
	if err := <-failed; !errors.Is(err, unix.EIO) {
		t.Errorf("got %v, want EIO", err)
	}
	f.Close()
	crash, power := laid(t, d)
	for _, image := range []string{crash, power} {
		if diff := cmp.Diff(files{"a": "one"}, tree(t, image)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", image, diff)
		}
	}
}

func TestASlowSyncIsUnderWayUntilItIsHurried(t *testing.T) {
	d, at := mounted(t, "")
	f, err := os.Create(filepath.Join(at, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("one"); err != nil {
		t.Fatal(err)
	}
	d.Delay(time.Hour)
	done := make(chan error)
	go func() { done <- f.Sync() }()
	until(t, "a sync is under way", func() bool { return d.Stats().SyncingSince > 0 })
	if s := d.Stats(); s.Dirty != 3 || s.Syncs != 0 {
		t.Errorf("got %+v, want 3 dirty bytes and no sync done", s)
	}
	d.Hurry()
	if err := <-done; err != nil {
		t.Errorf("got %v, want nil", err)
	}
	if s := d.Stats(); s.Dirty != 0 || s.Syncs != 1 || s.Syncing != 0 {
		t.Errorf("got %+v, want nothing dirty and one sync", s)
	}
}

func TestASyncThatPowerInterruptedWasNone(t *testing.T) {
	d, at := mounted(t, "")
	f, err := os.Create(filepath.Join(at, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("one"); err != nil {
		t.Fatal(err)
	}
	d.Delay(time.Hour)
	done := make(chan error)
	go func() { done <- f.Sync() }()
	until(t, "a sync is under way", func() bool { return d.Stats().Syncing > 0 })
	c := d.Freeze()
	if c.Syncing != 1 || c.Longest <= 0 {
		t.Errorf("got %+v, want a sync under way for some time", c)
	}
	d.Release()
	if err := <-done; !errors.Is(err, unix.EIO) {
		t.Errorf("got %v, want EIO", err)
	}
	f.Close()
	_, power := laid(t, d)
	if diff := cmp.Diff(files{}, tree(t, power)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAFullDiskCutsTheLastWriteAndTakesMoreOnceThereIsSpace(t *testing.T) {
	d, at := mounted(t, "")
	f, err := os.Create(filepath.Join(at, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("0123456789"); err != nil {
		t.Fatal(err)
	}
	d.Limit(4)
	if n, err := unix.Write(int(f.Fd()), []byte("abcdefgh")); n != 4 || err != nil {
		t.Errorf("got %d, %v from the write that meets the end, want 4 bytes of it", n, err)
	}
	if _, err := f.WriteString("x"); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("got %v, want ENOSPC", err)
	}
	if _, err := f.WriteAt([]byte("OVER"), 0); err != nil {
		t.Errorf("got %v from a write in place, want nil", err)
	}
	if err := unix.Fallocate(int(f.Fd()), 0, 0, 1<<20); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("got %v from a reservation, want ENOSPC", err)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil || st.Bavail != 0 {
		t.Errorf("got %d free blocks, %v, want none", st.Bavail, err)
	}
	if got := d.Stats().Refused; got != 3 {
		t.Errorf("got %d refused, want 3", got)
	}
	d.Limit(-1)
	if _, err := f.WriteString("!"); err != nil {
		t.Errorf("got %v once there is space, want nil", err)
	}
	f.Close()
	if diff := cmp.Diff(files{"a": "OVER456789abcd!"}, tree(t, at)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnImageCanBePutBackAgainAndAgain(t *testing.T) {
	d, at := mounted(t, "")
	s := &script{dir: at}
	s.mkdir("d")
	s.write("d/a", "one")
	s.with("d/sparse", os.O_RDWR|os.O_CREATE, func(f *os.File) error {
		_, err := f.WriteAt([]byte("end"), 10<<20)
		return err
	})
	s.do(os.Symlink("a", s.path("d/link")))
	s.do(os.Chmod(s.path("d/a"), 0o640))
	s.do(os.Lchown(s.path("d/a"), 1234, 4321))
	s.do(d.Settle())
	s.appendTo("d/a", "two")
	if s.err != nil {
		t.Fatal(s.err)
	}
	_, crash, power := cut(t, d)
	for _, c := range []struct{ image, want string }{{crash, "onetwo"}, {power, "one"}, {crash, "onetwo"}} {
		d, again := mount(t, filepath.Dir(at), c.image)
		if again != at {
			t.Fatalf("got it at %s, want the same path %s", again, at)
		}
		if b, err := os.ReadFile(filepath.Join(at, "d/link")); err != nil || string(b) != c.want {
			t.Errorf("got %q, %v through the link, want %q", b, err, c.want)
		}
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(at, "d/a"), &st); err != nil || st.Mode != unix.S_IFREG|0o640 || st.Uid != 1234 || st.Gid != 4321 {
			t.Errorf("got mode %o of %d:%d, %v, want it as before", st.Mode, st.Uid, st.Gid, err)
		}
		d.mu.RLock()
		sparse := d.content("synced", d.nodes[1].names["d"].names["sparse"])
		d.mu.RUnlock()
		if err := unix.Stat(sparse, &st); err != nil || st.Size != 10<<20+3 || st.Blocks > 64 {
			t.Errorf("got %d bytes in %d blocks, %v, want the hole kept", st.Size, st.Blocks, err)
		}
		// What this life does stays out of the image.
		s := &script{dir: at}
		s.write("d/a", "gone")
		s.sync("d/a")
		if s.err != nil {
			t.Fatal(s.err)
		}
		if err := d.Unmount(); err != nil {
			t.Fatal(err)
		}
		d.at = ""
	}
}

func TestOnlyThoseWhoAreMeantToSeeTheMount(t *testing.T) {
	_, at := mounted(t, "")
	for file, want := range map[string]bool{"/proc/thread-self/mountinfo": true, "/proc/self/mountinfo": false} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(b), at); got != want {
			t.Errorf("%s: got the mount there: %v, want %v", file, got, want)
		}
	}
}

func TestWhatNobodyCanReachTakesNoSpace(t *testing.T) {
	d, at := mounted(t, "")
	s := &script{dir: at}
	for i := range 5 {
		name := fmt.Sprint("a", i)
		s.write(name, "some")
		s.sync(name)
		s.remove(name)
	}
	s.sync(".")
	if s.err != nil {
		t.Fatal(s.err)
	}
	until(t, "no bytes are left of removed files", func() bool {
		for _, which := range []string{"current", "synced"} {
			if left, err := os.ReadDir(filepath.Join(d.work, which)); err != nil || len(left) > 0 {
				return false
			}
		}
		return true
	})
}
