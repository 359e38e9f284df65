package broker

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestDiskIsWhatIsAllocatedAndEachFileCountsOnce(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	size := func() int64 {
		t.Helper()
		n, err := allocated(dir)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const mib = 1 << 20
	empty := size()
	if err := os.Mkdir(in("below"), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(in("below/written"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, mib)); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil { // file systems may allocate only then
		t.Fatal(err)
	}
	full := size()
	if got := full - empty; got < mib || got > 2*mib {
		t.Errorf("got %d bytes for a file of a MiB, want about as many", got)
	}
	if err := os.Link(in("below/written"), in("other")); err != nil {
		t.Fatal(err)
	}
	holes, err := os.Create(in("sparse"))
	if err != nil {
		t.Fatal(err)
	}
	defer holes.Close()
	if err := holes.Truncate(100 * mib); err != nil {
		t.Fatal(err)
	}
	if got := size() - full; got > mib {
		t.Errorf("got %d bytes more for a second name and a file of nothing but a hole, want hardly any", got)
	}
	if n, err := allocated(in("absent")); n != 0 || err != nil {
		t.Errorf("got %d, %v for a directory that is gone, want nothing", n, err)
	}
}

func TestTheDeadAreCountedByWhoWaitedForThem(t *testing.T) {
	began, err := readProc(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	// Two of them, one below the other; the shell waits for its child.
	cmd := exec.Command("sh", "-c", `i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; echo done; read x`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	shell, err := readProc(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if shell.used < tick || shell.dead < tick {
		t.Errorf("got %v used by a shell and %v by its dead child, want both to have worked", shell.used, shell.dead)
	}
	spent, pids, err := spentBelow(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if !contains(pids, cmd.Process.Pid) || spent < began.dead+shell.used+shell.dead {
		t.Errorf("got %v spent by %v, want %v of %d in it", spent, pids, shell.used+shell.dead, cmd.Process.Pid)
	}
	in.Close()
	cmd.Wait()
	now, err := readProc(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if got := now.dead - began.dead; got < shell.used+shell.dead-tick {
		t.Errorf("got %v of dead children after the shell's end, want its %v", got, shell.used+shell.dead)
	}
}

func TestTickIsTheKernels(t *testing.T) {
	const clockTicks = 17 // AT_CLKTCK
	auxv, err := unix.Auxv()
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range auxv {
		if pair[0] == clockTicks && time.Second/time.Duration(pair[1]) != tick {
			t.Errorf("got %d ticks a second, want one every %v", pair[1], tick)
		}
	}
}

func TestMemoryOfWhoIsGoneIsNone(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	mine, err := resident([]int{os.Getpid()})
	if err != nil || mine < 1<<20 {
		t.Errorf("got %d bytes, %v for this process, want at least a MiB", mine, err)
	}
	gone, err := resident([]int{cmd.Process.Pid})
	if err != nil || gone != 0 {
		t.Errorf("got %d bytes, %v for a process that ended, want none", gone, err)
	}
	if _, err := kibOf(filepath.Join(t.TempDir(), "absent"), "Pss:"); err == nil || !os.IsNotExist(err) {
		t.Errorf("got %v, want %v", err, fs.ErrNotExist)
	}
}

func TestTheHighestIsKept(t *testing.T) {
	var h highest
	for _, c := range []struct{ value, want time.Duration }{{3, 3}, {2, 3}, {5, 5}, {0, 5}} {
		if got := h.of(c.value); got != c.want {
			t.Errorf("after %d: got %d, want %d", c.value, got, c.want)
		}
	}
}
