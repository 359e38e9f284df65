package broker

import "testing"

func TestMetadataVersionsAreNamedAndUnknownOnesNumbered(t *testing.T) {
	for level, want := range map[int16]string{
		7: "metadata.version 3.3-IV3", 20: "metadata.version 3.8-IV0", 25: "metadata.version 4.0-IV3", 30: "metadata.version 4.3-IV0",
		6: "metadata.version level 6", 31: "metadata.version level 31", -1: "metadata.version level -1",
	} {
		if got := metadataVersion(level); got != want {
			t.Errorf("level %d: got %q, want %q", level, got, want)
		}
	}
}
