package web

import (
	"bufio"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"queuelab/app/sale"
	"queuelab/app/trace/export"
)

// What an operator has published again is a part of the operator's request.
func TestAReplayIsOneTraceWithItsPublish(t *testing.T) {
	l := newLab(t, "memory://orders", false)
	if err := l.store.DeadLetter(t.Context(), "7", []byte("{}"), "why"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "traces.jsonl")
	tracer, err := export.Open(path, 1, "me", io.Discard, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	o := l.srv.o
	o.Service.Outbox = &sale.Outbox{Publisher: o.Service.Outbox.Publisher, Timeout: publishTimeout, Observer: sale.Unobserved{}, Tracer: tracer}
	o.Tracer, o.Metrics = tracer, NewMetrics(nil)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/api/dead-letters/7/replay", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+operator)
	resp, err := New(o).app.Test(req, -1)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("got %v, %v, want the letter replayed", resp, err)
	}
	resp.Body.Close()
	if err := tracer.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	type span struct {
		Name        string
		SpanContext struct{ SpanID string }
		Parent      struct{ SpanID string }
	}
	spans := map[string]span{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var s span
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		spans[s.Name] = s
	}
	request, publish := spans["POST /api/dead-letters/:id/replay"], spans["publish"]
	if request.SpanContext.SpanID == "" || publish.Parent.SpanID != request.SpanContext.SpanID {
		t.Errorf("got %+v beneath %+v, want the publish to be the request's", publish, request)
	}
}
