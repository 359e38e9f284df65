package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	spans "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// span is one line of the file of traces.
type span struct {
	Name        string
	SpanContext struct{ TraceID, SpanID string }
	Parent      struct{ TraceID, SpanID string }
	Attributes  []struct {
		Key   string
		Value struct{ Value any }
	}
}

const noSpan = "0000000000000000"

// readTraces groups the spans of a file by trace.
func readTraces(t *testing.T, path string) map[string][]span {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	traces := map[string][]span{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s span
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		traces[s.SpanContext.TraceID] = append(traces[s.SpanContext.TraceID], s)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return traces
}

// wantOneTree wants every span but one beneath another one of the same trace.
func wantOneTree(t *testing.T, spans []span) (names []string) {
	t.Helper()
	ids := map[string]bool{}
	for _, s := range spans {
		ids[s.SpanContext.SpanID] = true
	}
	roots := 0
	for _, s := range spans {
		names = append(names, s.Name)
		switch {
		case s.Parent.SpanID == noSpan:
			roots++
		case !ids[s.Parent.SpanID]:
			t.Errorf("span %s hangs on %s, which is not in its trace", s.Name, s.Parent.SpanID)
		}
	}
	if roots != 1 {
		t.Errorf("got %d roots among %v, want one", roots, names)
	}
	return names
}

// buyTraced sells one unit with tracing on, and returns the names of the trace
// that the click began.
func buyTraced(t *testing.T, args ...string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "traces.jsonl")
	return buyTracedAt(t, path, func() map[string][]span { return readTraces(t, path) }, args...)
}

// buyTracedAt is buyTraced for any place; traces is what is there at the end.
func buyTracedAt(t *testing.T, to string, traces func() map[string][]span, args ...string) []string {
	t.Helper()
	p := start(t, t.TempDir(), append(args, "--trace", to, "--log-level", "debug")...)
	d := newDoor(t, p.base, 1)
	d.rush(1)
	wantConfirmed(t, d.results(), 1)
	p.stop(t) // writes what is not written yet
	var found [][]span
	for _, spans := range traces() {
		if slices.ContainsFunc(spans, func(s span) bool { return s.Name == "POST /api/vouchers/:id/orders" }) {
			found = append(found, spans)
		}
	}
	if len(found) != 1 {
		t.Fatalf("got %d traces of one click, want one", len(found))
	}
	id := found[0][0].SpanContext.TraceID
	for _, step := range []string{"clicked", "decided"} {
		if !slices.ContainsFunc(strings.Split(p.stderr.String(), "\n"), func(line string) bool {
			return strings.Contains(line, `"msg":"`+step+`"`) && strings.Contains(line, id) && strings.Contains(line, d.told["1"]) && strings.Contains(line, d.voucher)
		}) {
			t.Errorf("got log %s, want a line %q with the trace, the order and the voucher", p.stderr, step)
		}
	}
	return wantOneTree(t, found[0])
}

func wantSteps(t *testing.T, got []string, want ...string) {
	t.Helper()
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("got steps %v, want %s among them", got, name)
		}
	}
}

func TestOneClickIsOneTrace(t *testing.T) {
	wantSteps(t, buyTraced(t), "admission", "publish", "decide", "transaction")
}

func TestOneClickIsOneTraceWhereAScriptQueues(t *testing.T) {
	_, args := streams(t)
	wantSteps(t, buyTraced(t, args...), "admission", "decide", "transaction")
}

func TestOneClickIsOneTraceAtACollector(t *testing.T) {
	var mu sync.Mutex
	traces := map[string][]span{}
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		b, err := io.ReadAll(r.Body)
		var sent spans.ExportTraceServiceRequest
		if err := errors.Join(err, proto.Unmarshal(b, &sent)); err != nil {
			t.Error(err)
		}
		for _, rs := range sent.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				for _, s := range ss.Spans {
					got := span{Name: s.Name}
					got.SpanContext.TraceID, got.SpanContext.SpanID = hex.EncodeToString(s.TraceId), hex.EncodeToString(s.SpanId)
					if got.Parent.SpanID = noSpan; len(s.ParentSpanId) > 0 {
						got.Parent.SpanID = hex.EncodeToString(s.ParentSpanId)
					}
					traces[got.SpanContext.TraceID] = append(traces[got.SpanContext.TraceID], got)
				}
			}
		}
	}))
	t.Cleanup(collector.Close)
	got := buyTracedAt(t, collector.URL, func() map[string][]span { return traces })
	wantSteps(t, got, "admission", "publish", "decide", "transaction")
}

func TestACollectorThatIsAwayCostsSpansAndOneLine(t *testing.T) {
	for name, there := range map[string]bool{"nobody listens": false, "it never answers": true} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			if !there {
				l.Close()
			}
			defer l.Close()
			p := start(t, t.TempDir(), "--trace", "http://ann:hidden@"+l.Addr().String())
			d := newDoor(t, p.base, 20)
			d.rush(20)
			wantConfirmed(t, d.results(), 20)
			p.stop(t)
			for line, want := range map[string]int{"does not take spans": 1, "has not confirmed every span": 1, "hidden": 0} {
				if got := strings.Count(p.stderr.String(), line); got != want {
					t.Errorf("got %d times %q in %s, want %d", got, line, p.stderr, want)
				}
			}
		})
	}
}

func TestAShareOfNoneTracesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "traces.jsonl")
	p := start(t, dir, "--trace", path, "--trace-ratio", "0")
	d := newDoor(t, p.base, 1)
	d.rush(1)
	wantConfirmed(t, d.results(), 1)
	p.stop(t)
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("got %v, want no file of traces", err)
	}
}
