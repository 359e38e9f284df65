package broker

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"queuelab/bench/storage"
)

// supervisor looks after the processes of one broker: it adopts whatever its
// descendants orphan, and in the end kills every one of them. One goroutine owns
// its state.
type supervisor struct {
	dir     string
	replies *json.Encoder
	chld    chan os.Signal
	runs    map[int]int   // request IDs by the pid that each waits for
	mine    map[int]bool  // every pid this process ever started or adopted
	broker  int           // pid of what serves; 0: none
	quiet   bool          // the broker is being ended on request
	disk    *storage.Disk // that its data are on; nil: none, or it was cut
	onADisk bool          // its data are to be on one
}

func supervise(kind string) int {
	// A parent-death signal follows the thread that forked, so that all forks
	// are made by one thread that lives as long as the process.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "queuelab: a supervisor cannot adopt orphans:", err)
		return 1
	}
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4)
	// Caught and not ignored: what is ignored stays ignored in the children.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGPIPE)
	s := &supervisor{
		replies: json.NewEncoder(os.NewFile(4, "replies")),
		chld:    make(chan os.Signal, 1),
		runs:    map[int]int{},
		mine:    map[int]bool{},
	}
	signal.Notify(s.chld, unix.SIGCHLD)

	requests := make(chan request)
	go func() {
		defer close(requests)
		for d := json.NewDecoder(os.NewFile(3, "requests")); ; {
			var r request
			if d.Decode(&r) != nil {
				return
			}
			requests <- r
		}
	}()

	dir, err := os.MkdirTemp("", "queuelab-"+kind+"-")
	if err != nil {
		s.send(reply{Err: err.Error()})
		return 1
	}
	s.dir = dir
	s.send(reply{Dir: dir})
	for open := true; open; {
		select {
		case <-s.chld:
			s.reap()
		case r, ok := <-requests:
			if ok {
				s.answer(r)
			}
			open = ok
		}
	}
	s.killAll()
	if err := s.unmount(); err != nil {
		fmt.Fprintln(os.Stderr, "queuelab: the broker's storage:", err) // it ends with this process
	}
	s.removeSharedMemory()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "queuelab: the broker's directory stays:", err)
		return 1
	}
	return 0
}

func (s *supervisor) answer(r request) {
	err := error(nil)
	switch r.Op {
	case opRun:
		var pid int
		if pid, err = s.start(r.Commands[0]); err == nil {
			s.runs[pid] = r.ID
			return // reap answers
		}
	case opServe:
		if s.onADisk && s.disk == nil {
			err = errors.New("the power was cut: the broker can only be restarted from an image")
			break
		}
		s.quiet = false
		for _, c := range r.Commands {
			if s.broker, err = s.start(c); err != nil {
				s.broker = 0
				break
			}
		}
	case opKill:
		s.quiet = true
		s.killAll()
	case opEnd:
		s.quiet = true
		if s.broker != 0 {
			sig := cmp.Or(r.Signal, unix.SIGTERM)
			_ = unix.Kill(s.broker, sig)
			for deadline := time.Now().Add(30 * time.Second); s.broker != 0 && time.Now().Before(deadline); s.reap() {
				time.Sleep(2 * time.Millisecond)
			}
			if s.broker != 0 {
				err = fmt.Errorf("it did not end within 30s of %s and was killed", unix.SignalName(sig))
			}
		}
		s.killAll()
	case opPause:
		err = s.pauseAll()
	case opResume:
		err = s.signalAll(unix.SIGCONT, map[int]bool{})
	case opMemory:
		err = s.limitMemory(r.Room)
	case opAlone:
		err = standAlone()
	case opDisk, opSettle, opCut, opImage, opDelay, opLimit, opStats:
		told, err := s.onDisk(r)
		told.ID = r.ID
		s.answered(told, err)
		return
	default:
		err = fmt.Errorf("unknown operation %q", r.Op)
	}
	s.reply(r.ID, err)
}

func (s *supervisor) reply(id int, err error) { s.answered(reply{ID: id}, err) }

func (s *supervisor) answered(r reply, err error) {
	if err != nil {
		r.Err = err.Error()
	}
	s.send(r)
}

// send has nobody to tell about an error: a command that is gone shows as the
// end of the requests.
func (s *supervisor) send(r reply) { _ = s.replies.Encode(r) }

// start forks a command into a session of its own, its output appended to the
// log. The kernel kills it should this supervisor be killed.
func (s *supervisor) start(c command) (pid int, err error) {
	log, err := os.OpenFile(filepath.Join(s.dir, logName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	attr := &syscall.ProcAttr{
		Dir:   s.dir,
		Env:   append(append(os.Environ(), c.Env...), supervisedVar+"="+s.dir),
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL},
	}
	if c.User != nil {
		attr.Sys.Credential = &syscall.Credential{Uid: c.User.UID, Gid: c.User.GID}
	}
	if pid, err = syscall.ForkExec(c.Argv[0], c.Argv, attr); err != nil {
		return 0, fmt.Errorf("start %s: %w", c.Argv[0], err)
	}
	s.mine[pid] = true
	return pid, nil
}

// reap collects the dead, answers those who waited for them, and reports
// whether there are children left.
func (s *supervisor) reap() bool {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return false
		case pid == 0:
			return true
		}
		s.mine[pid] = true
		if id, ok := s.runs[pid]; ok {
			delete(s.runs, pid)
			if status.Exited() && status.ExitStatus() == 0 {
				s.reply(id, nil)
			} else {
				s.reply(id, errors.New(describe(status)))
			}
		}
		if pid == s.broker {
			s.broker = 0
			if !s.quiet {
				s.send(reply{Ended: describe(status)})
			}
		}
	}
}

func describe(status unix.WaitStatus) string {
	if status.Signaled() {
		return "killed by " + unix.SignalName(status.Signal())
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}

// killAll returns when there is no descendant left. Only direct children are
// killed, over and over: orphans become direct children, and since nobody else
// reaps these, none of the pids can meanwhile belong to a stranger.
func (s *supervisor) killAll() {
	for s.reap() {
		for _, pid := range children() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if s.disk != nil {
			s.disk.Hurry() // who waits for a slow sync dies only after it
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// pauseAll stops every descendant and waits until the kernel shows each as
// stopped. A process may fork until it is stopped, so it looks until it finds
// no new one.
func (s *supervisor) pauseAll() error {
	told := map[int]bool{}
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		before := len(told)
		if err := s.signalAll(unix.SIGSTOP, told); err != nil {
			return err
		}
		running := 0
		for pid := range told {
			if p, err := readProc(pid); err == nil && p.state != 'T' && p.state != 't' && p.state != 'Z' {
				running = pid
			}
		}
		if running == 0 && len(told) == before {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d did not stop within 5s of SIGSTOP", running)
		}
	}
}

// signalAll signals the descendants that are not in told, and adds them to it.
func (s *supervisor) signalAll(sig unix.Signal, told map[int]bool) error {
	pids, err := descendants(os.Getpid())
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if told[pid] {
			continue
		}
		told[pid] = true
		// The handle names this very process, whatever becomes of its number: a
		// grandchild can be reaped by its parent while we look.
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			if err == unix.ESRCH {
				continue
			}
			return fmt.Errorf("signal process %d: %w", pid, err)
		}
		if still, _ := descendants(os.Getpid()); contains(still, pid) {
			err = unix.PidfdSendSignal(fd, sig, nil, 0)
		}
		_ = unix.Close(fd)
		if err != nil && err != unix.ESRCH {
			return fmt.Errorf("signal process %d: %w", pid, err)
		}
	}
	return nil
}

// removeSharedMemory removes the System V segments of this broker's processes:
// they are the one thing that the kernel keeps for the dead, and PostgreSQL
// makes one at every start.
func (s *supervisor) removeSharedMemory() {
	for _, seg := range sharedMemory() {
		if seg.attached == 0 && s.mine[seg.creator] {
			_, _ = unix.SysvShmCtl(seg.id, unix.IPC_RMID, nil)
		}
	}
}
