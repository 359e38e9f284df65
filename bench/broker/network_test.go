package broker

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"
)

// echoes listens and says again what it hears.
func echoes(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); c.Close() }()
		}
	}()
	return ln
}

// through connects by a relay of that way.
func through(t *testing.T, n *network, way relayed, to net.Listener) *bufio.ReadWriter {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.relay(ln, way, func() (net.Conn, error) { return net.Dial("tcp4", to.Addr().String()) })
	c, err := net.Dial("tcp4", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriter(c))
}

func say(t *testing.T, c *bufio.ReadWriter, word string) {
	t.Helper()
	if _, err := c.WriteString(word + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, c *bufio.ReadWriter, want string) {
	t.Helper()
	if got, err := c.ReadString('\n'); err != nil || got != want+"\n" {
		t.Fatalf("got %q, %v, want %q", got, err, want)
	}
}

func TestACutHoldsBackWhatNodesSayUntilTheyRejoin(t *testing.T) {
	n := newNetwork()
	defer n.close()
	server := echoes(t)
	node, other, client := through(t, n, relayed{0, 1}, server), through(t, n, relayed{1, 2}, server), through(t, n, relayed{clients, 1}, server)
	for _, c := range []*bufio.ReadWriter{node, other, client} {
		say(t, c, "before")
		hear(t, c, "before")
	}
	n.cut(0)
	say(t, node, "meanwhile")
	heard := make(chan string, 1)
	go func() { s, _ := node.ReadString('\n'); heard <- s }()
	for range 100 { // all of which is later than what the node said
		for _, c := range []*bufio.ReadWriter{other, client} {
			say(t, c, "others go on")
			hear(t, c, "others go on")
		}
	}
	late := through(t, n, relayed{2, 0}, server) // a new connection waits too
	say(t, late, "late")
	select {
	case s := <-heard:
		t.Fatalf("heard %q through the cut", s)
	default:
	}
	n.cut(nobody)
	if s := <-heard; s != "meanwhile\n" {
		t.Errorf("got %q after the cut, want what waited", s)
	}
	hear(t, late, "late")
}

func TestANetworkEndsWithItsConnectionsCutOrNot(t *testing.T) {
	n := newNetwork()
	server := echoes(t)
	c := through(t, n, relayed{0, 1}, server)
	say(t, c, "word")
	hear(t, c, "word")
	n.cut(1)
	say(t, c, "waits")
	n.close() // returns: nobody holds it up
	if s, err := c.ReadString('\n'); err == nil {
		t.Errorf("got %q from a network that has ended, want an error", s)
	}
}
