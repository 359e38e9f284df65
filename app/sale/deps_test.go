package sale_test

import (
	"os/exec"
	"strings"
	"testing"
)

// The domain knows no database, no broker, no web, and no way for spans to leave
// the process: only what names a span.
func TestTheDomainDependsOnNoFramework(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range strings.Fields(string(out)) {
		own, third := strings.HasPrefix(p, "queuelab/"), strings.Contains(strings.SplitN(p, "/", 2)[0], ".")
		switch {
		case own && p != "queuelab/app/sale" && p != "queuelab/app/trace" && p != "queuelab/app/loop" && p != "queuelab/queue":
			t.Errorf("the domain depends on %s", p)
		case third && (!strings.HasPrefix(p, "go.opentelemetry.io/otel") && p != "github.com/cespare/xxhash/v2" || strings.Contains(p, "/otel/sdk") || strings.Contains(p, "/exporters")):
			t.Errorf("the domain depends on %s", p)
		}
	}
}
