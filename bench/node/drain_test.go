package node

import (
	"context"
	"testing"
	"time"
)

func TestAStallOfTheBrokerDoesNotEndTheDrain(t *testing.T) {
	n := &node{}
	n.accepted.Store(2)
	n.received.Store(1)
	late := time.AfterFunc(700*time.Millisecond, func() { n.received.Add(1) })
	defer late.Stop()
	if !n.awaitQuiet(context.Background()) || n.received.Load() != 2 {
		t.Errorf("got %d received when the drain ended, want 2", n.received.Load())
	}
}
