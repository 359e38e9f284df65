package export

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"queuelab/app/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNothingIsOpenedForNobody(t *testing.T) {
	for _, to := range []string{Off, "", Stdout} {
		share := 1.0
		if to == Stdout {
			share = 0
		}
		tr, err := Open(to, share, "test", nil, nil)
		if tr != nil || err != nil {
			t.Fatalf("%q: got %v, %v, want neither", to, tr, err)
		}
	}
}

func TestSpansAreLinesOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "traces.jsonl")
	tr, err := Open(path, 1, "test", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, s := tr.Start(t.Context(), "request", trace.Server, "order", "7")
	var line bytes.Buffer
	slog.New(trace.Handler{Handler: slog.NewTextHandler(&line, nil)}).With("a", 1).InfoContext(ctx, "said")
	s.End(nil)
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var span struct {
		Name        string
		SpanContext struct{ TraceID string }
	}
	if err := json.Unmarshal(b, &span); err != nil || span.Name != "request" || span.SpanContext.TraceID != trace.ID(ctx) {
		t.Errorf("got %s, %v, want the span request of trace %s", b, err, trace.ID(ctx))
	}
	if want := "trace=" + trace.ID(ctx); !strings.Contains(line.String(), want) {
		t.Errorf("got log line %q, want %q in it", line.String(), want)
	}
	if _, err := Open(filepath.Join(path, "x"), 1, "test", nil, nil); err == nil {
		t.Error("got no error for a file that cannot be")
	}
}
