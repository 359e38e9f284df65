package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"queuelab/app/console"
	"queuelab/app/fleet"
	"queuelab/app/store"
)

func TestALabIsRefusedWhereItWouldBeNoLab(t *testing.T) {
	shared := []string{"--lab", "--redis", "redis://127.0.0.1:1/0", "--queue", "redis-streams"}
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"for everybody", append([]string{"--listen", "0.0.0.0:0"}, shared...), "loopback"},
		{"with a role", append([]string{"--role", "web"}, shared...), "--role"},
		{"with the memory queue", []string{"--lab", "--redis", "redis://127.0.0.1:1/0"}, "--queue redis-streams"},
		{"with a gate of its own", []string{"--lab", "--queue", "redis-streams"}, "--redis"},
		{"without a queue", []string{"--lab", "--redis", "redis://127.0.0.1:1/0", "--mode", "sync"}, "sync"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := run(t.Context(), append([]string{"--listen", "127.0.0.1:0"}, tc.args...), io.Discard, io.Discard)
			if err == nil || !strings.Contains(err.Error(), "--lab") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want a sentence about --lab with %q", err, tc.want)
			}
		})
	}
}

// readyWorkers lists the names of the workers that are ready, of an operator's picture.
func readyWorkers(t *testing.T, base string) map[string]bool {
	t.Helper()
	status, b, err := call(base, "GET", "/api/operator/state", "", "")
	var s console.State
	if err != nil || status != 200 || json.Unmarshal(b, &s) != nil || !s.Lab {
		t.Fatalf("got %d %s, %v, want the picture of a lab", status, b, err)
	}
	ready := map[string]bool{}
	for _, i := range s.Instances {
		if i.Role == roleWorker && i.Health == fleet.Ready {
			ready[i.Name] = true
		}
	}
	return ready
}

func TestAWorkerOfALabIsKilledAndTheSaleGoesOn(t *testing.T) {
	db, args := streams(t)
	p := start(t, t.TempDir(), append(args, "--lab")...)
	waitFor(t, "both workers are ready", func() bool { return len(readyWorkers(t, p.base)) == labWorkers })
	d := newDoor(t, p.base, 200)
	var wg sync.WaitGroup
	wg.Go(func() { d.rush(1000) })
	waitFor(t, "the sale is under way", func() bool { return d.count.Load() >= 40 })
	status, b, err := call(p.base, "POST", "/api/operator/kill", "", "")
	var killed struct{ PID int }
	if err != nil || status != 200 || json.Unmarshal(b, &killed) != nil || killed.PID == 0 {
		t.Fatalf("got %d %s, %v, want the process that was killed", status, b, err)
	}
	wg.Wait()
	wantConfirmed(t, d.results(), 200)
	d.audit(db, 200)
	// By the name, which ends with the number of the process.
	end := fmt.Sprintf("-%d", killed.PID)
	waitFor(t, "another worker is in its place", func() bool {
		ready, others := readyWorkers(t, p.base), 0
		for name := range ready {
			if !strings.HasSuffix(name, end) {
				others++
			}
		}
		return others == labWorkers
	})

	p.kill()
	s, err := store.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	waitFor(t, "the workers stop in order after the lab was killed", func() bool {
		is, err := s.Instances(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		stopped := 0
		for _, i := range is {
			if i.Role == roleWorker && i.Stopped {
				stopped++
			}
		}
		return stopped == labWorkers
	})
}
