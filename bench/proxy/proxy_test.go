package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"queuelab/bench/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server answers each line with what its function makes of it, and remembers
// what it was asked and how its connections ended.
type server struct {
	net.Listener
	mu    sync.Mutex
	asked []string
	ends  chan error // of each connection
}

func serve(t *testing.T, answer func(line string) string) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Listener: l, ends: make(chan error, 1<<16)}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { s.ends <- s.talk(c, answer) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait() // the proxy was closed before, and with it every connection
	})
	return s
}

func (s *server) talk(c net.Conn, answer func(string) string) error {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		line = strings.TrimSpace(line)
		s.mu.Lock()
		s.asked = append(s.asked, line)
		s.mu.Unlock()
		if line == "quit" {
			_, err := io.WriteString(c, "bye\n")
			return err
		}
		if _, err := io.WriteString(c, answer(line)+"\n"); err != nil {
			return err
		}
	}
}

func (s *server) times(line string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.asked {
		if a == line {
			n++
		}
	}
	return n
}

func echo(line string) string { return "re " + line }

func start(t *testing.T, s *server) *proxy.Proxy {
	t.Helper()
	p, err := proxy.New("127.0.0.1:0", s.Addr().String(), proxy.Plain)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// client is a connection that gives up after a while, so that no test hangs.
type client struct {
	net.Conn
	*bufio.Reader
}

func dial(t *testing.T, p *proxy.Proxy) *client {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return &client{c, bufio.NewReader(c)}
}

func (c *client) Read(b []byte) (int, error) { return c.Reader.Read(b) }

func (c *client) ask(line string) (string, error) {
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return "", err
	}
	got, err := c.ReadString('\n')
	return strings.TrimSpace(got), err
}

func (c *client) wants(t *testing.T, line, want string) {
	t.Helper()
	if got, err := c.ask(line); err != nil || got != want {
		t.Errorf("got %q, %v for %q, want %q", got, err, line, want)
	}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestWithoutARuleEverythingArrivesAndEndsAreTold(t *testing.T) {
	s := serve(t, echo)
	p := start(t, s)
	c := dial(t, p)
	long := strings.Repeat("x", 300<<10)
	c.wants(t, long, "re "+long)
	c.wants(t, "quit", "bye")
	if _, err := c.ReadString('\n'); err != io.EOF {
		t.Errorf("got %v after the server's farewell, want EOF", err)
	}
	if got := (<-s.ends); got != nil {
		t.Errorf("the server's connection ended with %v, want nil", got)
	}
	d := dial(t, p)
	d.wants(t, "hello", "re hello")
	d.Close()
	if got := (<-s.ends); got != io.EOF {
		t.Errorf("the server saw %v as the client went, want EOF", got)
	}
}

func TestALostReplyIsCarriedOutOnceAndNeverHeardOf(t *testing.T) {
	s := serve(t, echo)
	p := start(t, s)
	victim, other := dial(t, p), dial(t, p)
	lost := p.LoseReply(proxy.Contains("PUSH"))
	victim.wants(t, "get 1", "re get 1")
	other.wants(t, "get 2", "re get 2")
	select {
	case <-lost:
		t.Error("a reply was lost that does not match")
	default:
	}
	if got, err := victim.ask("push 1"); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %q, %v, want a reset", got, err)
	}
	<-lost
	if got := s.times("push 1"); got != 1 {
		t.Errorf("the server was asked %d times, want once", got)
	}
	other.wants(t, "push 2", "re push 2")
	dial(t, p).wants(t, "push 3", "re push 3")
	if got := p.Counts().LostReplies; got != 1 {
		t.Errorf("got %d lost replies, want 1", got)
	}
}

func TestTheAnswerHasASay(t *testing.T) {
	s := serve(t, func(line string) string { return strings.TrimPrefix(line, "pop ") })
	p := start(t, s)
	c := dial(t, p)
	lost := p.LoseReply(func(request, reply []byte) bool {
		return bytes.HasPrefix(request, []byte("pop")) && !bytes.HasPrefix(reply, []byte("nil"))
	})
	c.wants(t, "pop nil", "nil")
	if got, err := c.ask("pop message"); err == nil {
		t.Errorf("got %q, want a reset", got)
	}
	<-lost
}

func TestSeveralLossesTakeOneReplyEach(t *testing.T) {
	s := serve(t, echo)
	p := start(t, s)
	first, second := p.LoseReply(proxy.Contains("push")), p.LoseReply(proxy.Contains("push"))
	for range 2 {
		if got, err := dial(t, p).ask("push"); err == nil {
			t.Errorf("got %q, want a reset", got)
		}
	}
	<-first
	<-second
	dial(t, p).wants(t, "push", "re push")
}

func TestALossThatAResetForestallsIsAnotherReplys(t *testing.T) {
	s := serve(t, echo)
	p := start(t, s)
	c := dial(t, p)
	c.wants(t, "hello", "re hello")
	lost := p.LoseReply(proxy.Contains("push"))
	p.Set(proxy.ToClient, proxy.Rule{Delay: time.Hour}) // chosen, and not yet lost
	if _, err := io.WriteString(c, "push 1\n"); err != nil {
		t.Fatal(err)
	}
	if err := p.Await(within(t), func(c proxy.Counts) bool { return c.Held[proxy.ToClient] == 1 }); err != nil {
		t.Fatal(err)
	}
	p.Reset()
	if err := p.Await(within(t), func(c proxy.Counts) bool { return c.Open == 0 }); err != nil {
		t.Fatal(err)
	}
	if got := p.Counts().LostReplies; got != 0 {
		t.Errorf("got %d lost replies, want none: it was the reset", got)
	}
	p.Set(proxy.ToClient, proxy.Rule{})
	if got, err := dial(t, p).ask("push 2"); err == nil {
		t.Errorf("got %q, want a reset", got)
	}
	<-lost
}

func TestResetStrikesEveryConnectionAndNoneThatComesLater(t *testing.T) {
	s := serve(t, echo)
	p := start(t, s)
	clients := []*client{dial(t, p), dial(t, p), dial(t, p)}
	for _, c := range clients {
		c.wants(t, "hello", "re hello")
	}
	if got := p.Reset(); got != 3 {
		t.Errorf("got %d connections reset, want 3", got)
	}
	for range clients {
		if err := <-s.ends; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the server saw %v, want a reset", err)
		}
	}
	for _, c := range clients {
		if _, err := c.ask("hello"); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
			t.Errorf("got %v, want a reset", err)
		}
	}
	dial(t, p).wants(t, "again", "re again")
}

func TestABlackHoleSwallowsAndKeepsTheGhost(t *testing.T) {
	s := serve(t, echo)
	p := start(t, s)
	c := dial(t, p)
	c.wants(t, "hello", "re hello")
	var swallowed []byte
	p.Set(proxy.ToClient, proxy.Rule{Drop: true, Dropped: func(b []byte) { swallowed = append(swallowed, b...) }})
	if _, err := io.WriteString(c, "pop\n"); err != nil {
		t.Fatal(err)
	}
	if err := p.Await(within(t), func(c proxy.Counts) bool { return c.Dropped[proxy.ToClient] == 7 }); err != nil {
		t.Fatal(err)
	}
	c.Close() // the client has given up, and the server is not told
	late := dial(t, p)
	if _, err := io.WriteString(late, "late\n"); err != nil {
		t.Fatal(err)
	}
	if err := p.Await(within(t), func(c proxy.Counts) bool { return c.Dropped[proxy.ToClient] == 15 && c.Open == 2 }); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-s.ends:
		t.Fatalf("the server saw the end of a ghost: %v", err)
	default:
	}
	p.Set(proxy.ToClient, proxy.Rule{})
	for range 2 { // what has lost bytes cannot go on
		if err := <-s.ends; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the server saw %v after the heal, want a reset", err)
		}
	}
	if got, want := string(swallowed), "re pop\nre late\n"; got != want {
		t.Errorf("got %q swallowed, want %q", got, want)
	}
	dial(t, p).wants(t, "hello", "re hello")
}

func TestABlackHoleTowardsTheServerLetsNoRequestArrive(t *testing.T) {
	s := serve(t, echo)
	p := start(t, s)
	c := dial(t, p)
	c.wants(t, "hello", "re hello")
	p.Set(proxy.ToServer, proxy.Rule{Drop: true})
	if _, err := io.WriteString(c, "lost\n"); err != nil {
		t.Fatal(err)
	}
	if err := p.Await(within(t), func(c proxy.Counts) bool { return c.Dropped[proxy.ToServer] == 5 }); err != nil {
		t.Fatal(err)
	}
	p.Set(proxy.ToServer, proxy.Rule{})
	<-s.ends
	if got := s.times("lost"); got != 0 {
		t.Errorf("the server was asked %d times, want never", got)
	}
}

func TestDelayHoldsBackEachWayAndKeepsTheOrder(t *testing.T) {
	s := serve(t, echo)
	p := start(t, s)
	c := dial(t, p)
	c.wants(t, "hello", "re hello")
	const delay = 30 * time.Millisecond
	for _, d := range []proxy.Direction{proxy.ToServer, proxy.ToClient} {
		p.Set(d, proxy.Rule{Delay: delay, Jitter: 5 * time.Millisecond})
	}
	began := time.Now()
	var want []string
	for i := range 20 {
		line := fmt.Sprint("line ", i)
		want = append(want, "re "+line)
		if _, err := io.WriteString(c, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range want {
		got, err := c.ReadString('\n')
		if err != nil || strings.TrimSpace(got) != w {
			t.Fatalf("got %q, %v, want %q", got, err, w)
		}
	}
	if took := time.Since(began); took < 2*delay {
		t.Errorf("there and back took %v, want at least %v", took, 2*delay)
	}
	if h := p.Counts().Held; h[proxy.ToServer] == 0 || h[proxy.ToClient] == 0 {
		t.Errorf("got %v pieces held back, want some each way", h)
	}
}

func TestALimitIsSharedByAllConnections(t *testing.T) {
	s := serve(t, func(line string) string { return fmt.Sprint(len(line)) })
	p := start(t, s)
	const rate, size = 100 << 10, 10 << 10
	p.Set(proxy.ToServer, proxy.Rule{BytesPerSecond: rate})
	began := time.Now()
	var asking sync.WaitGroup
	for range 2 {
		c := dial(t, p)
		asking.Go(func() { c.wants(t, strings.Repeat("x", size), fmt.Sprint(size)) })
	}
	asking.Wait()
	// The last piece goes as soon as its turn has come.
	if took, want := time.Since(began), time.Duration(2*size-rate/50*2)*time.Second/rate; took < want {
		t.Errorf("%d bytes took %v, want at least %v", 2*size, took, want)
	}
	if got := p.Counts().Held[proxy.ToServer]; got == 0 {
		t.Error("got nothing held back, want some")
	}
}

func TestIdleConnectionsAreClosedInOrder(t *testing.T) {
	s := serve(t, echo)
	p := start(t, s)
	c := dial(t, p)
	c.wants(t, "hello", "re hello")
	p.CloseIdle(time.Hour)
	c.wants(t, "still here", "re still here")
	p.CloseIdle(40 * time.Millisecond)
	if _, err := c.ReadString('\n'); err != io.EOF {
		t.Errorf("got %v, want EOF", err)
	}
	if err := <-s.ends; err != io.EOF {
		t.Errorf("the server saw %v, want EOF", err)
	}
	if err := p.Await(within(t), func(c proxy.Counts) bool { return c.IdleCloses == 1 && c.Open == 0 }); err != nil {
		t.Error(err)
	}
	p.CloseIdle(0)
	dial(t, p).wants(t, "hello", "re hello")
}

func TestAServerThatIsNotThereIsARefusal(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := l.Addr().String()
	l.Close()
	p, err := proxy.New("127.0.0.1:0", gone, proxy.Plain)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if c, err := net.Dial("tcp", p.Addr()); err == nil { // or it is refused at once
		defer c.Close()
		if got, err := io.ReadAll(c); err == nil {
			t.Errorf("got %q, want an error", got)
		}
	}
	if _, err := proxy.New(p.Addr(), gone, proxy.Plain); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got %v for an address in use, want EADDRINUSE", err)
	}
}

func TestCloseEndsEverythingUnderWay(t *testing.T) {
	s := serve(t, echo)
	p := start(t, s)
	held, hole := dial(t, p), dial(t, p)
	for _, c := range []*client{held, hole} {
		c.wants(t, "hello", "re hello")
	}
	p.Set(proxy.ToServer, proxy.Rule{BytesPerSecond: 1})
	if _, err := io.WriteString(held, "takes minutes\n"); err != nil {
		t.Fatal(err)
	}
	if err := p.Await(within(t), func(c proxy.Counts) bool { return c.Held[proxy.ToServer] > 0 }); err != nil {
		t.Fatal(err)
	}
	p.Set(proxy.ToClient, proxy.Rule{Drop: true})
	hole.Close()
	p.LoseReply(proxy.Contains("never asked"))
	p.CloseIdle(time.Hour)
	for range 2 {
		p.Close()
	}
	if _, err := net.Dial("tcp", p.Addr()); err == nil {
		t.Error("a closed proxy still listens")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Await(ctx, func(c proxy.Counts) bool { return c.Open > 0 }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want what ended the wait", err)
	}
}

func TestRulesMayChangeUnderLoad(t *testing.T) {
	s := serve(t, echo)
	p := start(t, s)
	var clients sync.WaitGroup
	stop := make(chan struct{})
	for range 8 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				c, err := net.Dial("tcp", p.Addr())
				if err != nil {
					continue // a reset can be that quick
				}
				_ = c.SetDeadline(time.Now().Add(2 * time.Second))
				r := bufio.NewReader(c)
				for i := range 50 {
					line := fmt.Sprint("line ", i)
					if _, err := io.WriteString(c, line+"\n"); err != nil {
						break
					}
					got, err := r.ReadString('\n')
					if err != nil {
						break
					}
					if got != "re "+line+"\n" {
						t.Errorf("got %q, want the answer to %q", got, line)
					}
				}
				c.Close()
			}
		})
	}
	for i := range 40 {
		d := proxy.Direction(i % 2)
		switch i % 5 {
		case 0:
			p.Set(d, proxy.Rule{Delay: time.Millisecond, Jitter: time.Millisecond})
		case 1:
			lost := p.LoseReply(proxy.Contains("line"))
			p.Set(d, proxy.Rule{})
			p.Set(1-d, proxy.Rule{})
			select {
			case <-lost:
			case <-time.After(10 * time.Second):
				t.Errorf("step %d: no reply was lost: %+v", i, p.Counts())
			}
		case 2:
			p.Reset()
		case 3:
			p.Set(d, proxy.Rule{Drop: true})
		case 4:
			p.CloseIdle(time.Duration(500+i) * time.Millisecond) // a busy machine is slow
			p.Set(d, proxy.Rule{BytesPerSecond: 1 << 20})
		}
	}
	close(stop)
	clients.Wait()
}
