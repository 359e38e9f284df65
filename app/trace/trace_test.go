package trace

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/goleak"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorded is a tracer whose spans are kept.
func recorded(t *testing.T, share float64) (*Tracer, *tracetest.InMemoryExporter) {
	t.Helper()
	kept := tracetest.NewInMemoryExporter()
	p := sdk.NewTracerProvider(sdk.WithSyncer(kept), sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(share))))
	return New(p.Tracer("test"), func() error { return p.Shutdown(context.Background()) }), kept
}

func TestATracerThatIsOffDoesNothing(t *testing.T) {
	var tr *Tracer
	got := testing.AllocsPerRun(100, func() {
		ctx, s := tr.Start(t.Context(), "x", Server)
		s.Set()
		s.Name("y")
		ctx, b := tr.Batch(ctx, "x", 3, nil)
		b.End(nil)
		if tr.Headers(ctx) != nil || ID(ctx) != "" {
			t.Error("got a trace")
		}
		s.End(nil)
	})
	if got > 1 { // t.Context() may count
		t.Errorf("got %v allocations, want none", got)
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
}

func TestABatchIsInEveryOrdersTrace(t *testing.T) {
	tr, kept := recorded(t, 1)
	var messages []Carrier
	traces := map[string]bool{}
	for _, id := range []string{"1", "2", "3"} {
		ctx, s := tr.Start(t.Context(), "publish", Producer)
		messages = append(messages, Carrier{ID: id, Headers: tr.Headers(ctx)})
		traces[ID(ctx)] = true
		s.End(nil)
	}
	messages = append(messages, Carrier{ID: "4"}, Carrier{ID: "5", Headers: map[string]string{"traceparent": "nonsense"}})
	kept.Reset()
	ctx, b := tr.Batch(t.Context(), "decide", len(messages), func(i int) Carrier { return messages[i] })
	_, s := tr.Within(ctx, "commit", Client)
	s.End(nil)
	b.End(errors.New("no"))
	found := map[string]int{}
	for _, s := range kept.GetSpans() {
		found[s.SpanContext.TraceID().String()]++
		switch {
		case s.Name == "decide" && s.Parent.SpanID().IsValid() == false:
			t.Error("got a batch that is in no order's trace")
		case s.Name == "decide" && len(s.Links) == 0:
			t.Error("got a batch without a link")
		case s.Name == "decide" && s.Status.Description != "no":
			t.Errorf("got status %v, want the error", s.Status)
		}
	}
	for id := range traces {
		if found[id] == 0 {
			t.Errorf("trace %s does not lead to the batch", id)
		}
	}
	if len(found) != len(traces) {
		t.Errorf("got %d traces, want %d", len(found), len(traces))
	}
}

func TestWhatIsNotSampledTakesNothingAlong(t *testing.T) {
	tr, kept := recorded(t, 0)
	ctx, s := tr.Start(t.Context(), "request", Server)
	if h := tr.Headers(ctx); h != nil {
		t.Errorf("got headers %v, want none", h)
	}
	_, in := tr.Within(ctx, "admission", Client)
	in.End(nil)
	s.End(nil)
	if got := len(kept.GetSpans()); got != 0 || ID(ctx) != "" {
		t.Errorf("got %d spans and id %q, want none", got, ID(ctx))
	}
}

func TestALineWithoutATraceHasNone(t *testing.T) {
	var line bytes.Buffer
	slog.New(Handler{slog.NewTextHandler(&line, nil)}).InfoContext(context.Background(), "said")
	if strings.Contains(line.String(), "trace") {
		t.Errorf("got %q", line.String())
	}
}
