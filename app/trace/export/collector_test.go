package export

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	spans "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"queuelab/app/trace"
)

// collecting is a collector that keeps what it is sent, and answers as it is told to.
type collecting struct {
	*httptest.Server
	mu      sync.Mutex
	status  int
	request *http.Request // the last one
	got     []*otlp.ResourceSpans
}

func collect(t *testing.T) *collecting {
	t.Helper()
	c := &collecting{status: http.StatusOK}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.request = r
		b, err := io.ReadAll(r.Body)
		var sent spans.ExportTraceServiceRequest
		if err = errors.Join(err, proto.Unmarshal(b, &sent)); err != nil {
			t.Error(err)
		}
		if w.WriteHeader(c.status); c.status == http.StatusOK {
			c.got = append(c.got, sent.ResourceSpans...)
		} else {
			_, _ = io.WriteString(w, "too\nmany "+strings.Repeat("spans ", 1000))
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collecting) answer(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

func openFor(t *testing.T, to string) (*trace.Tracer, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	tr, err := Open(to, 1, "one", nil, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return tr, &log
}

func TestACollectorGetsEverySpan(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=shop")
	c := collect(t)
	tr, log := openFor(t, c.URL)
	before := time.Now()
	ctx, parent := tr.Start(t.Context(), "request", trace.Server, "order", "7")
	_, child := tr.Within(ctx, "publish", trace.Producer)
	child.End(errors.New("no"))
	parent.End(nil)
	if err := tr.Close(); err != nil || log.Len() > 0 {
		t.Fatalf("got %v and log %s, want neither", err, log)
	}
	if r := c.request; r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("X-Tenant") != "shop" || r.Header.Get("Authorization") != "" {
		t.Errorf("got %s %s with %v, want a POST to /v1/traces with the headers of the environment", r.Method, r.URL, r.Header)
	}
	if len(c.got) != 1 || len(c.got[0].ScopeSpans) != 1 || len(c.got[0].ScopeSpans[0].Spans) != 2 {
		t.Fatalf("got %v, want one batch of two spans", c.got)
	}
	resource := map[string]string{}
	for _, a := range c.got[0].Resource.Attributes {
		resource[a.Key] = a.Value.GetStringValue()
	}
	if resource["service.name"] != "seckill" || resource["service.instance.id"] != "one" {
		t.Errorf("got resource %v, want the service and its instance", resource)
	}
	publish, request := c.got[0].ScopeSpans[0].Spans[0], c.got[0].ScopeSpans[0].Spans[1]
	if got := hex.EncodeToString(publish.TraceId); got != trace.ID(ctx) || hex.EncodeToString(request.TraceId) != got {
		t.Errorf("got traces %s and %x, want %s", got, request.TraceId, trace.ID(ctx))
	}
	if !bytes.Equal(publish.ParentSpanId, request.SpanId) || len(request.SpanId) != 8 || len(request.ParentSpanId) > 0 {
		t.Errorf("got %v beneath %v, want the publish beneath the request", publish, request)
	}
	if publish.Kind != otlp.Span_SPAN_KIND_PRODUCER || request.Kind != otlp.Span_SPAN_KIND_SERVER || request.Name != "request" {
		t.Errorf("got %v and %v, want a producer and a server", publish, request)
	}
	if publish.Status.GetCode() != otlp.Status_STATUS_CODE_ERROR || publish.Status.GetMessage() != "no" || request.Status.GetCode() == otlp.Status_STATUS_CODE_ERROR {
		t.Errorf("got status %v and %v, want that the publish failed", publish.Status, request.Status)
	}
	if a := request.Attributes; len(a) != 1 || a[0].Key != "order" || a[0].Value.GetStringValue() != "7" {
		t.Errorf("got attributes %v, want the order", a)
	}
	begun, ended := time.Unix(0, int64(request.StartTimeUnixNano)), time.Unix(0, int64(request.EndTimeUnixNano))
	if begun.Before(before.Add(-time.Second)) || ended.Before(begun) || ended.After(time.Now().Add(time.Second)) {
		t.Errorf("got %v to %v, want a time in this test", begun, ended)
	}
}

func TestACollectorsURLMayHaveAPasswordAndAPath(t *testing.T) {
	c := collect(t)
	tr, _ := openFor(t, strings.Replace(c.URL, "//", "//ann:se%3Acret@", 1)+"/otlp/v1/traces")
	_, s := tr.Start(t.Context(), "request", trace.Server)
	s.End(nil)
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	user, password, _ := c.request.BasicAuth()
	if user != "ann" || password != "se:cret" || c.request.URL.Path != "/otlp/v1/traces" {
		t.Errorf("got %s:%s at %s, want those of the URL", user, password, c.request.URL)
	}
}

func TestACollectorThatRefusesIsToldOnce(t *testing.T) {
	c := collect(t)
	var log bytes.Buffer
	cl, err := openCollector(c.URL, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	kept := &sink{collector: cl}
	tr := kept.tracer(cl.processor(), 1, "one")
	send := func(status int) {
		t.Helper()
		c.answer(status)
		_, s := tr.Start(t.Context(), "request", trace.Server)
		s.End(nil)
		if err := kept.provider.ForceFlush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, status := range []int{401, 401, 200, 200, 401} { // the last so soon that it is not told again
		send(status)
	}
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	for i, want := range []string{"does not take spans", "takes spans again", "spans=5 unconfirmed=3"} {
		if len(lines) != 3 || !strings.Contains(lines[i], want) || len(lines[i]) > 600 {
			t.Fatalf("got %s, want three short lines, %q in number %d", &log, want, i+1)
		}
	}
}

// deaf never answers.
type deaf struct{ stopped chan struct{} }

func (d deaf) ExportSpans(ctx context.Context, _ []sdk.ReadOnlySpan) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-d.stopped:
		return errors.New("stopped")
	}
}

func (d deaf) Shutdown(context.Context) error {
	select {
	case <-d.stopped:
	default:
		close(d.stopped)
	}
	return nil
}

func TestNobodyWaitsForACollectorThatDoesNotAnswer(t *testing.T) {
	const many = 10_000
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := &collector{SpanExporter: deaf{make(chan struct{})}, log: slog.New(slog.NewTextHandler(&log, nil))}
		tr := (&sink{collector: c}).tracer(c.processor(), 1, "one")
		before := time.Now()
		for range many {
			_, s := tr.Start(t.Context(), "request", trace.Server)
			s.End(nil)
		}
		if waited := time.Since(before); waited > 0 {
			t.Errorf("got spans that took %v, want none that waits", waited)
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
		if waited := time.Since(before); waited > stopWait {
			t.Errorf("got a stop that took %v, want at most %v", waited, stopWait)
		}
		if want := "spans=10000 unconfirmed=10000"; !strings.Contains(log.String(), want) {
			t.Errorf("got log %s, want %q", &log, want)
		}
	})
}

func TestAWrongPlaceForSpansIsSaidWithoutItsPassword(t *testing.T) {
	for _, tc := range []struct{ to, headers, want string }{
		{"", "", "empty"},
		{"http://u:hidden@a b", "", "no URL"},
		{"grpc://u:hidden@127.0.0.1:4317", "", "grpc://"},
		{"http://u:hidden@:4318", "", "no host"},
		{"http://127.0.0.1:4318/?key=hidden", "", "leave out"},
		{"http://127.0.0.1:4318/#hidden", "", "leave out"},
		{"http://hidden@127.0.0.1:4318", "", "without a password"},
		{"http://u:hidden@127.0.0.1:4318", "x=y", "OTEL_EXPORTER_OTLP_HEADERS is set"},
	} {
		t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", tc.headers)
		err := Check(tc.to)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%q: got %v, want %q and no secret", tc.to, err, tc.want)
		}
		if _, opened := Open(tc.to, 1, "one", nil, nil); tc.to != "" && opened == nil {
			t.Errorf("%q: got it opened, want %v", tc.to, err)
		}
	}
	for _, to := range []string{Off, Stdout, "traces.jsonl", "https://collector/v1/traces"} {
		if err := Check(to); err != nil {
			t.Errorf("%q: got %v, want that it is known", to, err)
		}
	}
}
