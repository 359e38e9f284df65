package web

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// counted counts the deadlines that are set.
type counted struct {
	net.Conn
	reads, writes int
	reading       chan struct{} // closed as a read begins; nil: nobody waits for it
}

func (c *counted) Read(b []byte) (int, error) {
	if c.reading != nil {
		close(c.reading)
	}
	return c.Conn.Read(b)
}

func (c *counted) SetReadDeadline(t time.Time) error {
	c.reads++
	return c.Conn.SetReadDeadline(t)
}

func (c *counted) SetWriteDeadline(t time.Time) error {
	c.writes++
	return c.Conn.SetWriteDeadline(t)
}

func pair(t *testing.T) (near *counted, far net.Conn) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	far, err = net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = far.Close()
		_ = c.Close()
	})
	return &counted{Conn: c}, far
}

func TestRequestsInOnePieceShareTheirDeadlines(t *testing.T) {
	near, far := pair(t)
	c := slack(near)
	buf := make([]byte, 8)
	for range 20 { // as fasthttp does for each request
		if err := c.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := far.Write([]byte("request")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(buf); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.SetReadDeadline(time.Now().Add(5*time.Second)), c.SetWriteDeadline(time.Now().Add(10*time.Second))); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("answer")); err != nil {
			t.Fatal(err)
		}
	}
	// One each, and one more for every half second that a slow machine took.
	if near.reads > 5 || near.writes > 5 || near.reads == 0 || near.writes == 0 {
		t.Errorf("got %d and %d deadlines set, want about one", near.reads, near.writes)
	}
}

func TestADeadlineHoldsWheneverItIsSet(t *testing.T) {
	for name, test := range map[string]func(c, far net.Conn) error{
		"before the read": func(c, _ net.Conn) error { return c.SetReadDeadline(time.Now().Add(20 * time.Millisecond)) },
		"in the past":     func(c, _ net.Conn) error { return c.SetReadDeadline(time.Unix(1, 0)) },
		"sooner than that of the read before": func(c, far net.Conn) error {
			err := c.SetReadDeadline(time.Now().Add(time.Hour))
			_, sent := far.Write([]byte("x"))
			_, read := c.Read(make([]byte, 1))
			return errors.Join(err, sent, read, c.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
		},
		"of both directions": func(c, _ net.Conn) error { return c.SetDeadline(time.Now().Add(20 * time.Millisecond)) },
	} {
		t.Run(name, func(t *testing.T) {
			near, far := pair(t)
			c := slack(near)
			if err := test(c, far); err != nil {
				t.Fatal(err)
			}
			timesOut(t, c)
			// Taken away again, it does not hold.
			if err := c.SetDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write([]byte("x")); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("during the read", func(t *testing.T) {
		near, _ := pair(t)
		near.reading = make(chan struct{})
		c := slack(near)
		go func() {
			<-near.reading
			_ = c.SetReadDeadline(time.Now())
		}()
		timesOut(t, c)
	})
}

func timesOut(t *testing.T, c net.Conn) {
	t.Helper()
	got := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		got <- err
	}()
	select {
	case err := <-got:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v, want a passed deadline", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("the read goes on, want a passed deadline")
	}
}
