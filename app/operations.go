package main

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"queuelab/app/trace"
	"queuelab/app/trace/export"
)

// What an instance does; see operations.Role.
const (
	roleAll    = "all"
	roleWeb    = "web"
	roleWorker = "worker"
)

// operations are the flags of whoever runs the service.
type operations struct {
	Config      configFile `placeholder:"FILE" help:"YAML file with flags, one NAME: VALUE on a line. The command line comes before the environment, and that before the file."`
	PrintConfig bool       `env:"-" help:"Print what each flag is and where it is from, as such a file, without secrets, and exit."`
	AllowUnsafe []string   `placeholder:"NAME" help:"Start in spite of a setting that can lose orders, by the name that the refusal says. Several by commas."`
	Role        string     `enum:"all,web,worker" default:"all" placeholder:"ROLE" help:"What this instance does: web (take clicks), worker (decide orders; it serves only /healthz, /readyz and /metrics) or all."`
	Migrate     string     `enum:"auto,off" default:"auto" placeholder:"WHEN" help:"Whether to bring the database's schema up to date at the start; off refuses to start before seckill migrate has."`
	Instance    string     `placeholder:"NAME" help:"Name of this instance in logs and traces. Default: the host's name and the process's number."`
	OpsListen   string     `placeholder:"HOST:PORT" help:"Another address, for /metrics, /healthz and /readyz without credentials: one that buyers cannot reach. At --listen, /metrics is for operators and programs of this machine."`
	LogFormat   string     `enum:"auto,text,json" default:"auto" placeholder:"FORMAT" help:"text, json, or auto: text on a terminal, otherwise json."`
	LogLevel    string     `enum:"debug,info,warn,error" default:"info" placeholder:"LEVEL" help:"The least that is logged; debug has each step of each order."`
	Trace       string     `default:"off" placeholder:"WHERE" help:"Where OpenTelemetry spans go: off, stdout or the end of a file, one JSON object per line, or a collector that takes OTLP over HTTP, such as http://127.0.0.1:4318; its headers are those of OTEL_EXPORTER_OTLP_HEADERS."`
	TraceRatio  float64    `default:"1" placeholder:"SHARE" help:"The share of requests that are traced, 0 to 1."`
}

func (o *operations) validate(queue, redis string) error {
	for _, name := range o.AllowUnsafe {
		if !slices.Contains(unsafeNames(), name) {
			return fmt.Errorf("--allow-unsafe=%s: there is no check of that name; there are %s", name, strings.Join(unsafeNames(), ", "))
		}
	}
	switch {
	case o.Role != roleAll && redis == "":
		return fmt.Errorf("--role=%s: admission in this process is not shared with the other roles: use --redis", o.Role)
	case o.TraceRatio < 0 || o.TraceRatio > 1 || math.IsNaN(o.TraceRatio):
		return fmt.Errorf("--trace-ratio=%v: want 0 to 1", o.TraceRatio)
	case o.Role != roleAll && inProcess(queue):
		return fmt.Errorf("--role=%s: the memory queue lives in one process, so that process must do all; choose a queue that is shared, such as --queue redis-streams", o.Role)
	}
	if _, _, err := net.SplitHostPort(o.OpsListen); o.OpsListen != "" && err != nil {
		return fmt.Errorf("--ops-listen=%q: want HOST:PORT, such as 127.0.0.1:9091", o.OpsListen)
	}
	if err := export.Check(o.Trace); err != nil {
		return fmt.Errorf("--trace: %w", err)
	}
	return nil
}

// inProcess reports whether a queue lives and dies with its process.
func inProcess(queue string) bool {
	return queue == "" || queue == "memory" || strings.HasPrefix(queue, "memory:")
}

// instance names this process among the others.
func (o *operations) instance() string {
	if o.Instance != "" {
		return o.Instance
	}
	host, err := os.Hostname()
	if err != nil {
		host = "seckill"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// logger writes lines that say which instance they are from, and which trace.
func (o *operations) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.LogLevel)); err != nil {
		level = slog.LevelInfo // kong has checked it
	}
	options := &slog.HandlerOptions{Level: level}
	var h slog.Handler = slog.NewJSONHandler(w, options)
	if o.forPeople(w) {
		h = slog.NewTextHandler(w, options)
	}
	return slog.New(trace.Handler{Handler: h}).With("instance", o.instance())
}

// forPeople reports whether a person reads what is written to w.
func (o *operations) forPeople(w io.Writer) bool {
	return o.LogFormat == "text" || o.LogFormat != "json" && onTerminal(w)
}

func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
