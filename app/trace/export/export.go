// Package export brings spans to a file, the standard output or a collector. It is
// apart from package trace so that who is traced does not depend on how.
package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"queuelab/app/trace"
)

// Where spans go besides a collector's URL and a file of that name.
const (
	Off    = "off"
	Stdout = "stdout"
)

// stopWait bounds how long the last spans may take to be written or sent.
const stopWait = 3 * time.Second

// sink is where a tracer's spans go.
type sink struct {
	provider  *sdk.TracerProvider
	file      io.Closer  // nil: not ours
	collector *collector // nil: none
}

// Open writes the spans of that share of the traces, 0 to 1, to "stdout" or to
// the end of a file, one JSON object per line, or sends them to the collector that
// takes OTLP over HTTP at a URL; "off" or a share of 0 is nil. Whether a trace is
// sampled is decided where it begins, and holds for all of it, in other instances
// as well. Nil does not promise that a collector is there: log is told when it
// takes nothing. To close the tracer takes no longer than 3 s.
func Open(to string, share float64, instance string, stdout io.Writer, log *slog.Logger) (*trace.Tracer, error) {
	if to == Off || to == "" || share <= 0 {
		return nil, nil
	}
	s := &sink{}
	if isURL(to) {
		c, err := openCollector(to, log)
		if err != nil {
			return nil, fmt.Errorf("the collector of traces: %w", err)
		}
		s.collector = c
		return s.tracer(c.processor(), share, instance), nil
	}
	w := stdout
	if to != Stdout {
		// It names who bought what.
		f, err := os.OpenFile(to, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, fmt.Errorf("the file of traces: %w", err)
		}
		s.file, w = f, f
	}
	exporter, err := stdouttrace.New(stdouttrace.WithWriter(w))
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	return s.tracer(sdk.NewBatchSpanProcessor(exporter), share, instance), nil
}

func (s *sink) tracer(p sdk.SpanProcessor, share float64, instance string) *trace.Tracer {
	s.provider = sdk.NewTracerProvider(sdk.WithSpanProcessor(p),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(share))),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "seckill"), attribute.String("service.instance.id", instance))))
	return trace.New(s.provider.Tracer("queuelab/app"), s.close)
}

// close writes or sends what is not yet.
func (s *sink) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopWait)
	defer cancel()
	if s.collector != nil {
		defer time.AfterFunc(giveUp, s.collector.interrupt).Stop()
		defer s.collector.account()
	}
	err := s.provider.Shutdown(ctx)
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	if err != nil {
		return fmt.Errorf("traces: %w", err)
	}
	return nil
}
