package rabbitmq

import (
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhoeverStoodStillTooLongHangsUp(t *testing.T) {
	for _, c := range []struct {
		name      string
		heartbeat time.Duration
		silence   time.Duration
		hangsUp   bool
	}{
		{"two heartbeats are no matter", time.Second, 2 * time.Second, false},
		{"more than two are", time.Second, 2*time.Second + time.Millisecond, true},
		{"without heartbeats nobody gives anybody up", 0, time.Hour, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				defer ours.Close()
				heard := make(chan string, 1)
				go func() {
					all, _ := io.ReadAll(theirs) // until we hang up
					heard <- string(all)
				}()
				a := newAttentive(ours)
				time.Sleep(time.Minute) // a slow log-in has no heartbeats yet
				a.watch(c.heartbeat)
				if _, err := a.Write([]byte("one ")); err != nil {
					t.Fatal(err)
				}
				time.Sleep(c.silence)
				_, err := a.Write([]byte("ack"))
				if (err != nil) != c.hangsUp {
					t.Errorf("got %v, want it to hang up: %v", err, c.hangsUp)
				}
				ours.Close()
				if got := <-heard; strings.HasSuffix(got, "ack") == c.hangsUp {
					t.Errorf("the broker heard %q, want the ack: %v", got, !c.hangsUp)
				}
			})
		})
	}
}

func TestAWriteThatStoodStillOnItsWayIsNoAck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		a := newAttentive(ours)
		a.watch(time.Second)
		go func() {
			time.Sleep(3 * time.Second)
			_, _ = theirs.Read(make([]byte, 10))
		}()
		if _, err := a.Write([]byte("ack")); err == nil {
			t.Error("got nil from a write of 3s with heartbeats of 1s, want an error: who it was for may be gone")
		}
	})
}

func TestHeartbeatsAreOfWholeSeconds(t *testing.T) {
	for raw, want := range map[string]time.Duration{"": 10 * time.Second, "heartbeat=1s": time.Second, "heartbeat=1500ms": 0, "heartbeat=0s": 0} {
		u, err := url.Parse("amqp://127.0.0.1/?" + raw)
		if err != nil {
			t.Fatal(err)
		}
		c, err := parse(u)
		if (err != nil) != (want == 0) || err == nil && c.heartbeat != want {
			t.Errorf("%q: got %v, %v, want %v", raw, c.heartbeat, err, want)
		}
	}
}
