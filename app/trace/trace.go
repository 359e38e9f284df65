// Package trace follows an order's way over HTTP, the gate, the queue and the
// database as spans of OpenTelemetry, which are written as one JSON object per
// line or sent to a collector.
//
// A nil *Tracer is the one that is off: it makes nothing, and each call of it is
// a comparison. So nobody who is traced needs to ask whether he is.
package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	otel "go.opentelemetry.io/otel/trace"
)

// Where spans go besides a collector's URL and a file of that name.
const (
	Off    = "off"
	Stdout = "stdout"
)

// Kind is a span's place between two processes.
type Kind = otel.SpanKind

// The kinds that are here.
const (
	Server   = otel.SpanKindServer
	Client   = otel.SpanKindClient
	Producer = otel.SpanKindProducer
	Consumer = otel.SpanKindConsumer
)

// stopWait bounds how long the last spans may take to be written or sent.
const stopWait = 3 * time.Second

// Tracer makes spans until Close. Nil makes none.
type Tracer struct {
	provider  *sdk.TracerProvider
	tracer    otel.Tracer
	file      io.Closer  // nil: not ours
	collector *collector // nil: none
}

// Open writes the spans of that share of the traces, 0 to 1, to "stdout" or to
// the end of a file, or sends them to the collector that takes OTLP over HTTP at
// a URL; "off" or a share of 0 is nil. Whether a trace is sampled is decided
// where it begins, and holds for all of it, in other instances as well. Nil does
// not promise that a collector is there: log is told when it takes nothing.
func Open(to string, share float64, instance string, stdout io.Writer, log *slog.Logger) (*Tracer, error) {
	if to == Off || to == "" || share <= 0 {
		return nil, nil
	}
	t := &Tracer{}
	if isURL(to) {
		c, err := openCollector(to, log)
		if err != nil {
			return nil, fmt.Errorf("the collector of traces: %w", err)
		}
		t.collector = c
		t.use(c.processor(), share, instance)
		return t, nil
	}
	w := stdout
	if to != Stdout {
		// It names who bought what.
		f, err := os.OpenFile(to, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, fmt.Errorf("the file of traces: %w", err)
		}
		t.file, w = f, f
	}
	exporter, err := stdouttrace.New(stdouttrace.WithWriter(w))
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	t.use(sdk.NewBatchSpanProcessor(exporter), share, instance)
	return t, nil
}

func (t *Tracer) use(p sdk.SpanProcessor, share float64, instance string) {
	t.provider = sdk.NewTracerProvider(sdk.WithSpanProcessor(p),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(share))),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "seckill"), attribute.String("service.instance.id", instance))))
	t.tracer = t.provider.Tracer("queuelab/app")
}

// Close writes or sends what is not yet; it takes no longer than 3 s.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopWait)
	defer cancel()
	if t.collector != nil {
		defer time.AfterFunc(giveUp, t.collector.interrupt).Stop()
		defer t.collector.account()
	}
	err := t.provider.Shutdown(ctx)
	if t.file != nil {
		err = errors.Join(err, t.file.Close())
	}
	if err != nil {
		return fmt.Errorf("traces: %w", err)
	}
	return nil
}

// Span is a step that takes time. The zero value is one that nobody traces.
type Span struct{ s otel.Span }

// Start begins a step within the one of ctx, or a trace if there is none.
// attributes are names and values in turn.
func (t *Tracer) Start(ctx context.Context, name string, kind Kind, attributes ...string) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	ctx, s := t.tracer.Start(ctx, name, otel.WithSpanKind(kind))
	span := Span{s}
	span.Set(attributes...)
	return ctx, span
}

// Within is Start for a step that begins no trace by itself.
func (t *Tracer) Within(ctx context.Context, name string, kind Kind, attributes ...string) (context.Context, Span) {
	if t == nil || !otel.SpanContextFromContext(ctx).IsSampled() {
		return ctx, Span{}
	}
	return t.Start(ctx, name, kind, attributes...)
}

// Traced reports whether what is noted of the step is written down.
func (s Span) Traced() bool { return s.s != nil && s.s.IsRecording() }

// Set notes attributes, names and values in turn.
func (s Span) Set(attributes ...string) {
	if !s.Traced() {
		return
	}
	for i := 0; i+1 < len(attributes); i += 2 {
		s.s.SetAttributes(attribute.String(attributes[i], attributes[i+1]))
	}
}

// Name gives the step the name that was not known at its start.
func (s Span) Name(name string) {
	if s.s != nil {
		s.s.SetName(name)
	}
}

// End ends the step; an error says that it failed.
func (s Span) End(err error) {
	if s.s == nil {
		return
	}
	if err != nil && s.Traced() {
		s.s.RecordError(err)
		s.s.SetStatus(codes.Error, err.Error())
	}
	s.s.End()
}

// Headers are what a message takes along, so that whoever gets it goes on with
// the trace of ctx; nil where there is none to go on with.
func (t *Tracer) Headers(ctx context.Context) map[string]string {
	if t == nil || !otel.SpanContextFromContext(ctx).IsSampled() {
		return nil
	}
	h := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, h)
	return h
}

// ID is the trace of ctx in hexadecimal digits, "" if none is written down.
func ID(ctx context.Context) string {
	if sc := otel.SpanContextFromContext(ctx); sc.IsSampled() {
		return sc.TraceID().String()
	}
	return ""
}
