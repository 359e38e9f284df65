package trace

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	otel "go.opentelemetry.io/otel/trace"
)

// Batch is a step that works on many messages at once. The zero value is one
// that nobody traces.
type Batch struct {
	batch Span
	each  []Span
}

// Carrier is a message that was received: its id, and what Headers gave it.
type Carrier struct {
	ID      string
	Headers map[string]string
}

// Batch begins a step that works on messages, of which n there are; at returns
// the i-th. It belongs to the trace of the first that has one and is linked with
// those of the others; each of these has a step of its own in its own trace, that
// is linked with the batch. So every order's trace leads to its commit, and the
// work is told once.
func (t *Tracer) Batch(ctx context.Context, name string, n int, at func(i int) Carrier) (context.Context, Batch) {
	if t == nil {
		return ctx, Batch{}
	}
	var parents []context.Context
	var ids []string
	for i := range n {
		c := at(i)
		if c.Headers["traceparent"] == "" {
			continue
		}
		parent := propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier(c.Headers))
		if otel.SpanContextFromContext(parent).IsSampled() {
			parents, ids = append(parents, parent), append(ids, c.ID)
		}
	}
	if len(parents) == 0 {
		return ctx, Batch{}
	}
	links := make([]otel.Link, len(parents))
	for i, p := range parents {
		links[i] = otel.Link{SpanContext: otel.SpanContextFromContext(p)}
	}
	ctx, s := t.tracer.Start(parents[0], name, otel.WithSpanKind(Consumer), otel.WithLinks(links...),
		otel.WithAttributes(attribute.Int("messaging.batch.message_count", n), attribute.String("messaging.message.id", ids[0])))
	b := Batch{batch: Span{s}}
	for i, p := range parents[1:] {
		_, e := t.tracer.Start(p, name, otel.WithSpanKind(Consumer), otel.WithLinks(otel.Link{SpanContext: s.SpanContext()}),
			otel.WithAttributes(attribute.String("messaging.message.id", ids[i+1])))
		b.each = append(b.each, Span{e})
	}
	return ctx, b
}

// End ends the step for all.
func (b Batch) End(err error) {
	for _, s := range b.each {
		s.End(err)
	}
	b.batch.End(err)
}
