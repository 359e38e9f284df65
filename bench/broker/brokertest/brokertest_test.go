package brokertest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"queuelab/bench/broker/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

const left = "BROKERTEST_LEFT"

func TestWhatIsAskedForAtTheEndIsDone(t *testing.T) {
	if dir := os.Getenv(left); dir != "" { // this is the binary that the test started
		brokertest.AtEnd(func() { os.RemoveAll(dir) })
		return
	}
	dir := filepath.Join(t.TempDir(), "left")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	c.Env = append(os.Environ(), left+"="+dir)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("got %v, want the folder to be gone", err)
	}
}
