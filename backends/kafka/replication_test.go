package kafka

import (
	"strings"
	"testing"
)

func TestMoreReplicasInSyncThanThereAreIsAnError(t *testing.T) {
	s, err := parseURL(t, "kafka://h/orders?replication=3&min-insync=2")
	if err != nil || s.replication != 3 || s.minInSync != 2 {
		t.Errorf("got replication %d, min-insync %d, %v, want 3 and 2", s.replication, s.minInSync, err)
	}
	if _, err := parseURL(t, "kafka://h/orders?replication=2&min-insync=3"); err == nil || !strings.Contains(err.Error(), "min-insync=3") {
		t.Errorf("got %v, want an error about min-insync", err)
	}
}
