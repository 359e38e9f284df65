package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// storm is so many clicks over 256 connections, each of a buyer of its own. Who
// makes them is a process of its own, so that what it costs is not taken for the
// door's, and one thread that allocates nothing, so that it costs little.
type storm struct {
	Addr, Voucher string
	Clicks        int
	Rate          float64 // clicks a second, evenly; 0: each connection clicks as soon as it is answered
	Processor     int     // that it is to keep to; -1: any
}

// rush is what became of a storm.
type rush struct {
	PerSecond float64
	P99       float64 // ms from when a click was due to its answer
	Late      float64 // 99 % of the clicks were sent so many ms after they were due at most
	Buyers    float64 // us of processor time that a click cost the buyers
	Door      float64 // the same of door and Redis
}

const (
	connections = 256
	// Where there are more processors, those between are nobody's.
	buyersProcessor, doorProcessor = 0, 1
	// stormEnv tells a test binary to be the buyers.
	stormEnv = "QUEUELAB_STORM"
	// stormTick is how often they look for what is due.
	stormTick = 200 * time.Microsecond
)

func (s storm) run(b *testing.B) rush {
	b.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		b.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	out, answer, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	cmd := exec.CommandContext(b.Context(), self, "-test.run=^$", "-test.bench=^BenchmarkBuyers$", "-test.benchtime=1x")
	cmd.Env = append(os.Environ(), stormEnv+"="+string(text), "GOMAXPROCS=1", "GOGC=off")
	cmd.ExtraFiles = []*os.File{answer}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err = cmd.Run()
	answer.Close()
	if err != nil {
		b.Fatalf("the buyers: %v\n%s", err, said.String())
	}
	var r rush
	if err := json.NewDecoder(out).Decode(&r); err != nil {
		b.Fatalf("the buyers: %v\n%s", err, said.String())
	}
	return r
}

// BenchmarkBuyers is no benchmark but the buyers of BenchmarkBuy.
func BenchmarkBuyers(b *testing.B) {
	text := os.Getenv(stormEnv)
	if text == "" {
		b.Skip("BenchmarkBuy starts it")
	}
	var s storm
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		b.Fatal(err)
	}
	runtime.LockOSThread()
	if s.Processor >= 0 {
		var set unix.CPUSet
		set.Set(s.Processor)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			b.Fatal(err)
		}
	}
	r, err := s.click()
	if err != nil {
		b.Fatal(err)
	}
	answer := os.NewFile(3, "answer")
	if err := json.NewEncoder(answer).Encode(r); err != nil {
		b.Fatal(err)
	}
}

// wire is one buyer's connection.
type wire struct {
	fd      int
	request []byte
	user    []byte // the digits in it
	due     time.Duration
	answer  []byte
}

func (s storm) open() ([]*wire, error) {
	tcp, err := net.ResolveTCPAddr("tcp", s.Addr)
	if err != nil {
		return nil, err
	}
	to := &unix.SockaddrInet4{Port: tcp.Port}
	copy(to.Addr[:], tcp.IP.To4())
	wires := make([]*wire, connections)
	for i := range wires {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return nil, err
		}
		if err := unix.Connect(fd, to); err != nil {
			return nil, err
		}
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			return nil, err
		}
		w := &wire{fd: fd, answer: make([]byte, 0, 4096)}
		w.request = fmt.Appendf(nil, "POST /api/vouchers/%s/orders HTTP/1.1\r\nHost: x\r\nX-User-ID: u00000000\r\nContent-Length: 0\r\n\r\n", s.Voucher)
		at := bytes.Index(w.request, []byte("00000000"))
		w.user = w.request[at : at+8]
		wires[i] = w
	}
	return wires, nil
}

func (w *wire) send(buyer int, due time.Duration) error {
	w.due = due
	for i := len(w.user) - 1; i >= 0; i-- {
		w.user[i] = '0' + byte(buyer%10)
		buyer /= 10
	}
	n, err := unix.Write(w.fd, w.request)
	if err == nil && n < len(w.request) {
		err = fmt.Errorf("%d of %d bytes were written", n, len(w.request))
	}
	return err
}

// read reports whether the answer is there.
func (w *wire) read() (bool, error) {
	n, err := unix.Read(w.fd, w.answer[len(w.answer):cap(w.answer)])
	if err != nil || n == 0 {
		return false, fmt.Errorf("after %d bytes of an answer: %d, %w", len(w.answer), n, err)
	}
	w.answer = w.answer[:len(w.answer)+n]
	_, length, ok := bytes.Cut(w.answer, []byte("Content-Length: "))
	head, body, ended := bytes.Cut(length, []byte("\r\n\r\n"))
	if !ok || !ended {
		return false, nil
	}
	want := 0
	for _, c := range head {
		if c < '0' || c > '9' {
			break
		}
		want = 10*want + int(c-'0')
	}
	if len(body) < want {
		return false, nil
	}
	if !bytes.HasPrefix(w.answer, []byte("HTTP/1.1 202 ")) {
		return false, fmt.Errorf("got the answer %q", w.answer)
	}
	w.answer = w.answer[:0]
	return true, nil
}

func (s storm) click() (rush, error) {
	wires, err := s.open()
	if err != nil {
		return rush{}, err
	}
	epoll, err := unix.EpollCreate1(0)
	if err != nil {
		return rush{}, err
	}
	for i, w := range wires {
		if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, w.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}); err != nil {
			return rush{}, err
		}
	}
	timer, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, 0)
	if err != nil {
		return rush{}, err
	}
	if s.Rate > 0 {
		every := unix.NsecToTimespec(int64(stormTick))
		if err := unix.TimerfdSettime(timer, 0, &unix.ItimerSpec{Interval: every, Value: every}, nil); err != nil {
			return rush{}, err
		}
		if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, timer, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: -1}); err != nil {
			return rush{}, err
		}
	}
	took, late := make([]time.Duration, 0, s.Clicks), make([]time.Duration, 0, s.Clicks)
	free := make([]*wire, 0, connections)
	// Few at a time, so that those who are answered click again soon.
	events := make([]unix.EpollEvent, 16)
	ticks := make([]byte, 8)
	free = append(free, wires...)
	used := usage()
	began, sent := time.Now(), 0
	for len(took) < s.Clicks {
		for now := time.Since(began); sent < s.Clicks && len(free) > 0; sent++ {
			due := now
			if s.Rate > 0 {
				if due = time.Duration(float64(sent) / s.Rate * float64(time.Second)); due > now {
					break
				}
			}
			w := free[len(free)-1]
			free = free[:len(free)-1]
			if err := w.send(sent, due); err != nil {
				return rush{}, err
			}
			late = append(late, now-due)
		}
		n, err := unix.EpollWait(epoll, events, -1)
		if err != nil && err != unix.EINTR {
			return rush{}, err
		}
		for _, e := range events[:max(n, 0)] {
			if e.Fd < 0 {
				if _, err := unix.Read(timer, ticks); err != nil {
					return rush{}, err
				}
				continue
			}
			w := wires[e.Fd]
			ok, err := w.read()
			if err != nil {
				return rush{}, fmt.Errorf("click %d: %w", len(took), err)
			}
			if ok {
				took = append(took, time.Since(began)-w.due)
				free = append(free, w)
			}
		}
	}
	clicks := float64(s.Clicks)
	return rush{PerSecond: clicks / time.Since(began).Seconds(), P99: p99(took), Late: p99(late), Buyers: float64((usage() - used).Microseconds()) / clicks}, nil
}

func p99(took []time.Duration) float64 {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return float64(took[len(took)*99/100].Nanoseconds()) / 1e6
}

// usage is the processor time of this process.
func usage() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // cannot fail for oneself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func everyProcessor() []int {
	var all []int
	for i := range runtime.NumCPU() {
		all = append(all, i)
	}
	return all
}

// keepTo binds all threads of a process, and those that they will make, to the
// processors.
func keepTo(pid string, processors ...int) error {
	var set unix.CPUSet
	for _, p := range processors {
		set.Set(p)
	}
	tasks, err := os.ReadDir("/proc/" + pid + "/task")
	if err != nil {
		return err
	}
	for _, t := range tasks {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil && err != unix.ESRCH { // it may have ended
			return err
		}
	}
	return nil
}
