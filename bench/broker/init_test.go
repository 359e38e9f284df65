package broker_test

import (
	"strings"
	"testing"
	"time"

	"queuelab/bench/broker"
)

func TestProgramWithoutInitIsToldInsteadOfStartingItselfForEver(t *testing.T) {
	t.Setenv("QUEUELAB_SUPERVISOR", "1") // as a supervisor would find it that Init did not catch
	_, err := broker.Start(within(t, time.Minute), broker.Options{Kind: "redis"})
	if err == nil || !strings.Contains(err.Error(), "broker.Init") {
		t.Errorf("got %v, want an error that names broker.Init", err)
	}
}
