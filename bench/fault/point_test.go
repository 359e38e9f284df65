package fault

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"queuelab/bench/broker/brokertest"
)

// TestMain lets the test binary be the victim: it passes every place three
// times and says so.
func TestMain(m *testing.M) {
	place := os.Getenv("FAULT_TEST_PLACE")
	if place == "" {
		brokertest.Main(m)
	}
	p, err := ParsePoint(place, 2)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for i := range 3 {
		for _, at := range []string{OnReceive, MidHandle, BeforeAck, AfterAck} {
			p.Pass(at)
			fmt.Println("passed", at, i+1)
		}
	}
	os.Exit(0)
}

func TestAProcessDiesOfSIGKILLAtItsPlaceAndNowhereElse(t *testing.T) {
	for place, last := range map[string]string{
		OnReceive: "passed after-ack 1", MidHandle: "passed on-receive 2", BeforeAck: "passed mid-handle 2", AfterAck: "passed before-ack 2",
	} {
		victim := exec.Command(os.Args[0])
		victim.Env = append(os.Environ(), "FAULT_TEST_PLACE="+place)
		out, err := victim.Output()
		var ee *exec.ExitError
		if !errors.As(err, &ee) {
			t.Errorf("%s: got %v, want a death", place, err)
			continue
		}
		if ws := ee.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != syscall.SIGKILL {
			t.Errorf("%s: got %v, want SIGKILL", place, ee)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if got := lines[len(lines)-1]; got != last {
			t.Errorf("%s: the last place passed was %q, want %q", place, got, last)
		}
	}
}

func TestNoPointNeverKills(t *testing.T) {
	p, err := ParsePoint("", 0)
	if err != nil || p != nil {
		t.Fatalf("got %v, %v, want none", p, err)
	}
	p.Pass(MidHandle)
}

func TestAPointThatCannotBeIsAnError(t *testing.T) {
	if _, err := ParsePoint("lunch", 1); err == nil || !strings.Contains(err.Error(), MidHandle) {
		t.Errorf("got %v, want an error that names the places", err)
	}
	if _, err := ParsePoint(MidHandle, 0); err == nil {
		t.Error("got no error for pass 0")
	}
}
