package export

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// giveUp is how long a stop waits for a collector that does not answer: less
	// than stopWait, so that there is time left to say what has become of the spans.
	giveUp = 2 * time.Second
	// warnEvery bounds the warnings about a collector that comes and goes.
	warnEvery = time.Minute
	// maxReason bounds, in bytes, what a collector's answer may put into the log.
	maxReason = 300
)

// Check says what is wrong with a place for Open, without its secrets; nil
// promises that Open understands it, not that anybody is there.
func Check(to string) error {
	if to == "" {
		return errors.New("it is empty: want off, stdout, a file, or a collector such as http://127.0.0.1:4318")
	}
	if !isURL(to) {
		return nil
	}
	_, _, err := endpoint(to)
	return err
}

func isURL(to string) bool { return strings.Contains(to, "://") }

// endpoint is where a collector's URL has it take spans, and the headers that the
// URL asks for; no headers leave those of the environment in force. Its errors do
// not quote the URL, which may hold a password.
func endpoint(to string) (string, map[string]string, error) {
	u, err := url.Parse(to)
	switch {
	case err != nil:
		return "", nil, errors.New("that is no URL: want a collector such as http://127.0.0.1:4318")
	case u.Scheme != "http" && u.Scheme != "https":
		return "", nil, fmt.Errorf("nothing speaks %s:// here: want a collector that takes OTLP over HTTP, such as http://127.0.0.1:4318", u.Scheme)
	case u.Hostname() == "":
		return "", nil, errors.New("the URL has no host: want a collector such as http://127.0.0.1:4318")
	case u.RawQuery != "" || u.Fragment != "":
		return "", nil, errors.New("a collector's URL ends with its path: leave out what follows ? or #; keys go into OTEL_EXPORTER_OTLP_HEADERS")
	}
	var headers map[string]string
	if u.User != nil {
		password, has := u.User.Password()
		switch {
		case !has:
			return "", nil, errors.New("the URL has a user without a password: want USER:PASSWORD@, or put a token into OTEL_EXPORTER_OTLP_HEADERS")
		case os.Getenv("OTEL_EXPORTER_OTLP_HEADERS")+os.Getenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS") != "":
			return "", nil, errors.New("the URL has a password and OTEL_EXPORTER_OTLP_HEADERS is set: put the password there as well, as authorization=Basic%20…")
		}
		headers = map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))}
		u.User = nil
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), headers, nil
}

// collector is another process that takes spans. One that is away costs the
// spans and a line of the log, and nobody waits for it but a stop.
type collector struct {
	sdk.SpanExporter
	log              *slog.Logger
	ended, confirmed atomic.Int64
	told             bool      // that it takes no spans; with warned, ExportSpans alone looks at it, and runs once at a time
	warned           time.Time // when
}

func openCollector(to string, log *slog.Logger) (*collector, error) {
	at, headers, err := endpoint(to)
	if err != nil {
		return nil, err
	}
	options := []otlptracehttp.Option{otlptracehttp.WithEndpointURL(at)}
	if headers != nil {
		options = append(options, otlptracehttp.WithHeaders(headers))
	}
	e, err := otlptracehttp.New(context.Background(), options...)
	if err != nil {
		return nil, err
	}
	return &collector{SpanExporter: e, log: log}, nil
}

// processor queues spans for the collector, and drops them while too many wait.
func (c *collector) processor() sdk.SpanProcessor {
	return counted{sdk.NewBatchSpanProcessor(c), &c.ended}
}

type counted struct {
	sdk.SpanProcessor
	ended *atomic.Int64
}

// OnEnd implements sdk.SpanProcessor.
func (p counted) OnEnd(s sdk.ReadOnlySpan) {
	p.ended.Add(1)
	p.SpanProcessor.OnEnd(s)
}

// ExportSpans implements sdk.SpanExporter. It always returns nil, because the
// processor would have a line written about every batch.
func (c *collector) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err == nil:
		c.confirmed.Add(int64(len(spans)))
		if c.told {
			c.log.Info("the collector of traces takes spans again")
		}
		c.told = false
	case !c.told && time.Since(c.warned) >= warnEvery:
		c.told, c.warned = true, time.Now()
		c.log.Warn("the collector of traces does not take spans: they are dropped until it does", "error", reason(err))
	}
	return nil
}

// interrupt ends what is being sent, and has the rest fail at once.
func (c *collector) interrupt() { _ = c.SpanExporter.Shutdown(context.Background()) }

// account says, at the end, how many spans may be missing at the collector:
// those that found the queue full, and those of batches that it did not confirm.
func (c *collector) account() {
	if ended, confirmed := c.ended.Load(), c.confirmed.Load(); confirmed < ended {
		c.log.Warn("the collector of traces has not confirmed every span", "spans", ended, "unconfirmed", ended-confirmed)
	}
}

func reason(err error) string {
	s := strings.Join(strings.Fields(err.Error()), " ")
	if len(s) > maxReason {
		s = strings.ToValidUTF8(s[:maxReason], "") + "…"
	}
	return s
}
