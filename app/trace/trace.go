// Package trace follows an order's way over HTTP, the gate, the queue and the
// database as spans of OpenTelemetry; export says where they go.
//
// A nil *Tracer is the one that is off: it makes nothing, and each call of it is
// a comparison. So nobody who is traced needs to ask whether he is.
package trace

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	otel "go.opentelemetry.io/otel/trace"
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

// Tracer makes spans until Close. Nil makes none.
type Tracer struct {
	tracer otel.Tracer
	end    func() error
}

// New makes a Tracer whose spans are t's; end, called by Close, brings the last of
// them to where they go.
func New(t otel.Tracer, end func() error) *Tracer { return &Tracer{t, end} }

// Close ends the tracer; see export.Open for how long it takes.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	return t.end()
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
