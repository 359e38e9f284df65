package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/proxy"
)

// overheard is what a tap was shown, in order.
type overheard []string

func (o *overheard) see(conn int, d proxy.Direction, b []byte) {
	*o = append(*o, fmt.Sprint(conn, " ", d, " ", strings.TrimSpace(string(b))))
}

func TestATapSeesWhatPassesAndNothingElse(t *testing.T) {
	var o overheard
	s := serve(t, func(line string) string {
		if want := "0 " + line; !strings.HasSuffix(o[len(o)-1], want) {
			t.Errorf("the server got %q before the tap, which saw %q", line, o)
		}
		return "re " + line
	})
	p := start(t, s)
	before := dial(t, p) // it was open before anybody listened
	p.Tap(o.see)
	before.wants(t, "one", "re one")
	after := dial(t, p)
	after.wants(t, "two", "re two")
	before.wants(t, "three", "re three")
	lost := p.LoseReply(proxy.Contains("four"))
	if got, err := after.ask("four"); err == nil {
		t.Errorf("got %q, want a reset", got)
	}
	<-lost
	p.Tap(nil)
	heard := slices.Clone(o)
	o = append(o, "0 unheard") // for what the server checks
	before.wants(t, "unheard", "re unheard")
	want := overheard{"1 0 one", "1 1 re one", "2 0 two", "2 1 re two", "1 0 three", "1 1 re three", "2 0 four", "2 2 re four"}
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Errorf("overheard (-want +got):\n%s", diff)
	}
	if len(o) != len(want)+1 {
		t.Errorf("got %q after the end, want nothing", o[len(want)+1:])
	}
}

func TestATapSeesAllOfALongAnswerInOrder(t *testing.T) {
	s := serve(t, func(line string) string { return strings.Repeat(line, 50<<10) })
	p := start(t, s)
	p.Set(proxy.ToClient, proxy.Rule{BytesPerSecond: 20 << 20})
	var seen [4]strings.Builder
	p.Tap(func(conn int, d proxy.Direction, b []byte) {
		if d == proxy.ToClient {
			seen[conn].Write(b)
		}
	})
	var asking sync.WaitGroup
	for i := range 3 {
		c := dial(t, p)
		asking.Go(func() { c.wants(t, fmt.Sprint("123456789", i), strings.Repeat(fmt.Sprint("123456789", i), 50<<10)) })
	}
	asking.Wait()
	p.Tap(nil)
	var got []string
	for conn := 1; conn <= 3; conn++ {
		got = append(got, seen[conn].String())
	}
	slices.Sort(got)
	for i, g := range got {
		if want := strings.Repeat(fmt.Sprint("123456789", i), 50<<10) + "\n"; g != want {
			t.Errorf("connection %d: got %d bytes that differ from the %d that were said", i, len(g), len(want))
		}
	}
}

func TestTapsMayChangeUnderLoad(t *testing.T) {
	s := serve(t, echo)
	p := start(t, s)
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for range 4 {
		c := dial(t, p)
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					c.wants(t, "hello", "re hello")
				}
			}
		})
	}
	for range 50 {
		seen, over := 0, false
		enough := make(chan struct{})
		p.Tap(func(int, proxy.Direction, []byte) {
			if over {
				t.Error("a tap was shown something after its end")
			}
			if seen++; seen == 20 {
				close(enough)
			}
		})
		select {
		case <-enough:
		case <-time.After(20 * time.Second):
			t.Fatal("not 20 pieces were seen within 20s")
		}
		p.Tap(nil)
		over = true
	}
	close(stop)
	clients.Wait()
}

func TestATapSeesARequestBeforeTheServerDoes(t *testing.T) {
	s := serve(t, echo)
	p := start(t, s)
	c := dial(t, p)
	c.wants(t, "hello", "re hello")
	direct, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	r := bufio.NewReader(direct)
	p.Tap(func(_ int, d proxy.Direction, b []byte) {
		if d == proxy.ToClient {
			return
		}
		for range 20 { // time for the server to answer others
			if _, err := io.WriteString(direct, "other\n"); err != nil {
				t.Error(err)
			}
			if _, err := r.ReadString('\n'); err != nil {
				t.Error(err)
			}
		}
		if got := s.times("late"); got != 0 {
			t.Error("the server had it before the tap")
		}
	})
	c.wants(t, "late", "re late")
	p.Tap(nil)
}
