package admission_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"queuelab/app/admission"
)

// deaf is a cluster of one node that hears every command, says what the cluster
// looks like, and hangs up instead of answering anything else once told to.
type deaf struct {
	mu    sync.Mutex
	heard []string
	hang  bool
}

func (d *deaf) serve(c net.Conn) {
	defer c.Close()
	host, port, _ := net.SplitHostPort(c.LocalAddr().String())
	r := bufio.NewReader(c)
	for {
		args, err := readCommand(r)
		if err != nil {
			return
		}
		answer := "-ERR unknown command\r\n"
		switch name := strings.ToLower(args[0]); {
		case name == "cluster":
			answer = fmt.Sprintf("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$%d\r\n%s\r\n:%s\r\n", len(host), host, port)
		case name == "set" || name == "evalsha":
			d.mu.Lock()
			d.heard = append(d.heard, name)
			hang := d.hang
			d.mu.Unlock()
			if hang {
				return
			}
			answer = "*3\r\n:6\r\n$0\r\n\r\n:0\r\n" // not loaded
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
	}
}

func readCommand(r *bufio.Reader) ([]string, error) {
	number := func(mark string) (int, error) {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(line), mark))
	}
	n, err := number("*")
	if err != nil || n < 1 {
		return nil, fmt.Errorf("%d words: %w", n, err)
	}
	args := make([]string, n)
	for i := range args {
		size, err := number("$")
		if err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		args[i] = string(b[:size])
	}
	return args, nil
}

func TestWhatACommandOfAClusterDidNotAnswerIsNotSentAgain(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &deaf{}
	var wg sync.WaitGroup
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { d.serve(c) })
		}
	})
	g, err := admission.OpenRedis(t.Context(), "redis+cluster://"+ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	d.mu.Lock()
	d.heard, d.hang = nil, true
	d.mu.Unlock()
	if err := g.Check(t.Context()); err == nil {
		t.Error("got no error of a click without an answer")
	}
	if _, ok, err := g.Locks().TryLock(t.Context(), "u"); ok || err == nil {
		t.Errorf("got %v, %v of a lock without an answer", ok, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if got := strings.Join(d.heard, " "); got != "evalsha set" {
		t.Errorf("got commands %q, want each once", got)
	}
}

func TestAClustersURLSaysWhatIsWrong(t *testing.T) {
	for name, tc := range map[string]struct{ url, want string }{
		"no port":            {"redis+cluster://:secret@node", "host:port"},
		"one without a port": {"redis+cluster://:secret@node,node:1", "host:port"},
		"a database":         {"redis+cluster://:secret@node:1/2", "one database"},
		"a parameter":        {"redis+cluster://:secret@node:1?queue=x", "no parameters"},
		"no node":            {"redis+cluster://:secret@", "host:port"},
		"bad escape":         {"redis+cluster://:se%cret@node:1", "escape"},
		"nobody there":       {"redis+cluster://:secret@127.0.0.1:1,127.0.0.1:2", "127.0.0.1:1,127.0.0.1:2"},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := admission.OpenRedis(t.Context(), tc.url)
			if err == nil {
				g.Close()
				t.Fatal("got no error")
			}
			if !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "cret") {
				t.Errorf("got %q, want it to name %q and no password", err, tc.want)
			}
		})
	}
}
