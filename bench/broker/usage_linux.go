package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// highest remembers the greatest value. Processes are read one after the other,
// so that one which ends meanwhile is in neither its parent's count nor its own.
type highest struct {
	sync.Mutex
	value time.Duration
}

func (h *highest) of(d time.Duration) time.Duration {
	h.Lock()
	defer h.Unlock()
	h.value = max(h.value, d)
	return h.value
}

func (n *native) usage() (Usage, error) {
	if n.sup.isGone() {
		return Usage{}, errSupervisorGone
	}
	supervisor := n.sup.cmd.Process.Pid
	cpu, pids, err := spentBelow(supervisor)
	if err != nil {
		return Usage{}, nil //nolint:nilerr // hidden from us, as by the mount option hidepid: it is not known
	}
	memory, err := resident(pids)
	if err != nil {
		return Usage{}, nil //nolint:nilerr // likewise
	}
	disk, err := allocated(n.sup.dir)
	if errors.Is(err, fs.ErrPermission) {
		return Usage{}, nil
	}
	if err != nil {
		return Usage{}, err
	}
	if n.sup.isGone() { // and its number may have been somebody else's
		return Usage{}, errSupervisorGone
	}
	return Usage{Known: true, CPU: n.spent.of(cpu), MemoryBytes: memory, DiskBytes: disk}, nil
}

// spentBelow is the time that the processes below a supervisor have used, and
// which those are. The supervisor adopts orphans, so that whatever died without
// a parent is in its count of dead children; its own time is not the broker's.
func spentBelow(supervisor int) (spent time.Duration, pids []int, err error) {
	// Before the others: one that ends meanwhile is rather missed than counted
	// twice, since the highest count is kept.
	s, err := readProc(supervisor)
	if err != nil {
		return 0, nil, err
	}
	if pids, err = descendants(supervisor); err != nil {
		return 0, nil, err
	}
	spent = s.dead
	for _, pid := range pids {
		if p, err := readProc(pid); err == nil { // else it ended
			spent += p.used + p.dead
		}
	}
	return spent, pids, nil
}

// resident is the memory of processes, in bytes. Where we may not see what they
// share with each other it is counted for each.
func resident(pids []int) (bytes int64, err error) {
	for _, pid := range pids {
		n, err := kibOf(fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss:")
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) { // older kernels have no such file
			n, err = kibOf(fmt.Sprintf("/proc/%d/status", pid), "VmRSS:")
		}
		if errors.Is(err, fs.ErrPermission) {
			return 0, err
		}
		if err == nil { // else it ended, and holds nothing
			bytes += n << 10
		}
	}
	return bytes, nil
}

// kibOf is the value of a line "name 1234 kB" of a file in /proc; 0 if there is
// no such line, as for a process that ended and was not waited for.
func kibOf(path, name string) (int64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, name); ok {
			return strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		}
	}
	return 0, nil
}

// allocated is what the file system keeps for the files below dir, in bytes. A
// file with several names counts once, one that goes meanwhile not at all.
func allocated(dir string) (bytes int64, err error) {
	type file struct{ device, inode uint64 }
	linked := map[file]bool{}
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return nil
		}
		if id := (file{uint64(st.Dev), st.Ino}); !d.IsDir() && st.Nlink > 1 { //nolint:unconvert // other architectures have other types
			if linked[id] {
				return nil
			}
			linked[id] = true
		}
		bytes += st.Blocks * 512
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("size of the broker's directory: %w", err)
	}
	return bytes, nil
}
