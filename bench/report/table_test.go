package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/trial"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with testdata/name.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got; go test -update writes it anew):\n%s", name, diff)
	}
}

func TestTable(t *testing.T) {
	for _, c := range []struct {
		name   string
		width  int
		color  bool
		result trial.Result
	}{
		{"table-100.txt", 100, false, sample()}, {"table-120.txt", 120, false, sample()}, {"table-160.txt", 160, false, sample()}, {"table-color.txt", 140, true, sample()},
		{"full-100.txt", 100, false, sampleFull()}, {"full-140.txt", 140, false, sampleFull()}, {"full-color.txt", 160, true, sampleFull()},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := Table(&b, c.result, c.color, c.width); err != nil {
				t.Fatal(err)
			}
			golden(t, c.name, b.Bytes())
			if w := widest(b.String()); w > c.width {
				t.Errorf("got a line of %d columns, want at most %d", w, c.width)
			}
			if hasEscape := bytes.ContainsRune(b.Bytes(), '\x1b'); hasEscape != c.color {
				t.Errorf("got escape codes %v, want %v", hasEscape, c.color)
			}
		})
	}
}
