package trial

import (
	"os"
	"testing"

	"queuelab/bench/broker/brokertest"
	"queuelab/bench/node/nodetest"
)

func TestMain(m *testing.M) { nodetest.Main(m) }

// soak reports whether the long form of a test is asked for.
func soak() bool { return os.Getenv("QUEUELAB_SOAK") != "" }

var buildSeckill = nodetest.Seckill()

// newTestLab is a lab whose brokers end with the test.
func newTestLab(t *testing.T, needs ...string) *Lab {
	t.Helper()
	for _, kind := range needs {
		brokertest.Need(t, kind)
	}
	seckill, err := buildSeckill()
	if err != nil {
		t.Fatal(err)
	}
	lab, err := NewLab(nil, seckill)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Close(); err != nil {
			t.Errorf("close the lab: %v", err)
		}
	})
	return lab
}

// measure runs cells as a run does.
func measure(t *testing.T, lab *Lab, specs []Spec) []Cell {
	t.Helper()
	var cells []Cell
	r := &Runner{
		Lab: lab, Suite: "quick", Seed: 7, Width: 2, Progress: NewProgress(testWriter{t}, false, specs),
		Finished: func(c Cell) error { cells = append(cells, c); return nil },
	}
	if err := r.Run(t.Context(), specs); err != nil {
		t.Fatal(err)
	}
	return cells
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", p)
	return len(p), nil
}

// specsFor picks cells of the quick suite.
func specsFor(t *testing.T, settings, test string, faults ...string) []Spec {
	t.Helper()
	chosen, err := SelectCore(settings)
	if err != nil {
		t.Fatal(err)
	}
	all, err := Suite("quick", chosen, 1)
	if err != nil {
		t.Fatal(err)
	}
	var specs []Spec
	for _, s := range all {
		for _, f := range faults {
			if s.Test == test && s.Fault == f {
				specs = append(specs, s)
			}
		}
	}
	return specs
}
