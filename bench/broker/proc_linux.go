package broker

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// proc is what /proc tells about a process.
type proc struct {
	parent int
	state  byte
	used   time.Duration // by itself, user and system
	dead   time.Duration // by the children that it waited for, and theirs
}

// tick is what /proc counts time in. It has been a hundredth of a second for
// programs on every architecture that Go knows.
const tick = 10 * time.Millisecond

func readProc(pid int) (proc, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return proc{}, err
	}
	// The name, in brackets, may hold anything, brackets too.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	const utime, stime, cutime, cstime = 11, 12, 13, 14
	if len(fields) <= cstime {
		return proc{}, fmt.Errorf("/proc/%d/stat: unexpected form", pid)
	}
	ticks := func(i int) time.Duration {
		n, _ := strconv.ParseInt(fields[i], 10, 64)
		return time.Duration(n) * tick
	}
	parent, err := strconv.Atoi(fields[1])
	return proc{
		parent: parent, state: fields[0][0],
		used: ticks(utime) + ticks(stime), dead: ticks(cutime) + ticks(cstime),
	}, err
}

// children returns the direct children of this process, dead ones included.
func children() []int {
	files, _ := filepath.Glob("/proc/self/task/*/children")
	if len(files) == 0 { // a kernel without CONFIG_PROC_CHILDREN
		return childrenOf(processes(), os.Getpid())
	}
	var pids []int
	for _, f := range files {
		b, _ := os.ReadFile(f)
		for _, s := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(s); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// processes returns the parents of all processes by pid.
func processes() map[int]int {
	entries, _ := os.ReadDir("/proc")
	parents := make(map[int]int, len(entries))
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, err := readProc(pid); err == nil {
				parents[pid] = p.parent
			}
		}
	}
	return parents
}

func childrenOf(parents map[int]int, pid int) []int {
	var pids []int
	for p, parent := range parents {
		if parent == pid {
			pids = append(pids, p)
		}
	}
	return pids
}

// descendants returns the processes below pid, parents before their children.
func descendants(pid int) ([]int, error) {
	parents := processes()
	if len(parents) == 0 {
		return nil, fmt.Errorf("/proc lists no process")
	}
	found := []int{}
	for next := []int{pid}; len(next) > 0; {
		kids := childrenOf(parents, next[0])
		next = append(next[1:], kids...)
		found = append(found, kids...)
	}
	return found, nil
}

func contains(pids []int, pid int) bool { return slices.Contains(pids, pid) }

// segment is a System V shared memory segment.
type segment struct{ id, creator, attached int }

func sharedMemory() []segment {
	b, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		return nil
	}
	var segs []segment
	for _, line := range strings.Split(string(b), "\n")[1:] {
		// key shmid perms size cpid lpid nattch …
		f := strings.Fields(line)
		if len(f) < 7 {
			continue
		}
		id, err1 := strconv.Atoi(f[1])
		creator, err2 := strconv.Atoi(f[4])
		attached, err3 := strconv.Atoi(f[6])
		if err1 == nil && err2 == nil && err3 == nil {
			segs = append(segs, segment{id, creator, attached})
		}
	}
	return segs
}
