package host

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"queuelab/bench/broker"
	"queuelab/bench/trial"
)

const setup = "make setup"

// Examine looks at everything; dir is where brokers will keep their data.
func Examine(ctx context.Context, dir string) Report {
	r := Report{Host: Facts(ctx, dir)}
	r.Checks = append(r.Checks, Check{Name: "Go", State: OK, Found: strings.TrimPrefix(runtime.Version(), "go"), For: "the lab itself"})
	for _, kind := range broker.Kinds() {
		programs, err := broker.Programs(kind)
		if err != nil {
			r.Checks = append(r.Checks, Check{Name: kind, State: Missing, Found: err.Error(), For: needs(kind)})
		}
		for _, p := range programs {
			r.Checks = append(r.Checks, programCheck(ctx, kind, p))
		}
	}
	r.Checks = append(r.Checks, dockerCheck(ctx), fuseCheck())
	r.Checks = append(r.Checks, machineChecks(r.Host, dir)...)
	r.suites(ctx, dir)
	return r
}

// needs says which settings a broker serves.
func needs(kind string) string {
	if kind == "postgres" {
		return "crash and sale, whose effects are rows in it; postgres"
	}
	var backends []string
	for _, s := range trial.Settings() {
		if s.Broker == kind && (len(backends) == 0 || backends[len(backends)-1] != s.Backend) {
			backends = append(backends, s.Backend)
		}
	}
	return strings.Join(backends, ", ")
}

func programCheck(ctx context.Context, kind string, p broker.Program) Check {
	c := Check{Name: p.Name, State: OK, Path: p.Path, For: needs(kind), kind: kind}
	if p.Err != nil {
		c.State, c.Found, c.Get = Missing, "not here", setup
		return c
	}
	c.Found = version(ctx, p)
	if major, ok := javaMajor(c.Found); p.Name == "Java" && ok && major < 17 {
		c.State, c.Found, c.Get = Poor, c.Found+", and Kafka needs 17 or later", setup
	}
	return c
}

var number = regexp.MustCompile(`\d+(\.\d+)+|\d+`)

// version asks a program, or reads it off its path where asking is dear.
func version(ctx context.Context, p broker.Program) string {
	if p.Version != "" {
		return p.Version
	}
	switch p.Name {
	case "rabbitmq-server":
		return number.FindString(regexp.MustCompile(`rabbitmq_server-[\d.]+`).FindString(p.Path))
	case "Kafka jars":
		return kafkaVersion(p.Path)
	case "Erlang":
		return number.FindString(ask(ctx, p.Path, "-noshell", "-eval", `io:format("~s", [erlang:system_info(otp_release)]), halt().`))
	case "Java":
		return number.FindString(ask(ctx, p.Path, "-version"))
	}
	return number.FindString(ask(ctx, p.Path, "--version"))
}

// ask runs a program that only prints, for at most ten seconds.
func ask(ctx context.Context, name string, args ...string) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, _ := exec.CommandContext(ctx, name, args...).CombinedOutput()
	return string(out)
}

func kafkaVersion(dir string) string {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if v, ok := strings.CutPrefix(e.Name(), "kafka_2.13-"); ok {
			return strings.TrimSuffix(v, ".jar")
		}
	}
	return ""
}

// javaMajor knows the old numbers too: 1.8 is 8.
func javaMajor(version string) (int, bool) {
	major, err := strconv.Atoi(number.FindString(strings.Split(strings.TrimPrefix(version, "1."), ".")[0]))
	return major, err == nil
}

func dockerCheck(ctx context.Context) Check {
	c := Check{Name: "Docker Compose", State: OK, For: "brokers that are not installed here"}
	path, err := broker.Engine(ctx)
	if err != nil {
		c.State, c.Found = Note, err.Error()
		if runtime.GOOS != "linux" {
			c.State, c.Get = Missing, "start Docker: brokers run natively on Linux only"
		}
		return c
	}
	c.Path, c.Found = path, number.FindString(ask(ctx, path, "compose", "version", "--short"))
	return c
}

func fuseCheck() Check {
	c := Check{Name: "/dev/fuse", State: Note, Found: "here", For: "power loss, which no suite tests yet"}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		c.Found = "not here"
	}
	return c
}

func machineChecks(h trial.Host, dir string) []Check {
	cores := Check{Name: "cores", State: OK, Found: fmt.Sprintf("%d, %s", h.Cores, h.CPU), For: "load and broker side by side: two or more"}
	if h.Cores < 2 {
		cores.State = Poor
	}
	memory := Check{Name: "memory", State: OK, Found: size(h.MemoryBytes), For: "the largest broker beside the load: 2 GiB"}
	switch {
	case h.MemoryBytes <= 0:
		memory.State, memory.Found = Note, "unknown"
	case h.MemoryBytes < 2<<30:
		memory.State = Poor
	}
	free := freeBytes(dir)
	disk := Check{Name: "free disk", State: OK, Found: size(free), Path: dir, For: "brokers' data: 2 GiB"}
	switch {
	case free < 0:
		disk.State, disk.Found = Note, "unknown"
	case free < 2<<30:
		disk.State = Poor
	}
	fsync := Check{Name: "fsync", State: OK, Path: dir, For: "every durable setting, which waits for it",
		Found: fmt.Sprintf("p50 %d µs, p99 %d µs for 4 KiB", h.FsyncMicros.P50, h.FsyncMicros.P99)}
	switch {
	case h.FsyncMicros.P50 == 0:
		fsync.State, fsync.Found = Missing, "could not write and sync there"
	case h.FsyncMicros.P50 < 20:
		fsync.State, fsync.Found = Poor, fsync.Found+": too fast for a disk, so durable settings look cheaper than they are"
	}
	load := Check{Name: "load", State: OK, Found: fmt.Sprintf("%.2f over one minute", h.Load1), For: "latency, which measures the neighbours when this is above half the cores"}
	if h.Load1 > float64(h.Cores)/2 {
		load.State = Poor
	}
	return append([]Check{cores, memory, disk, fsync, load}, quietChecks(h, swapUsed())...)
}

// suites decides what can run: smoke needs Go and a directory to write to, the
// others every broker, and skip the rows of one that cannot be had.
func (r *Report) suites(ctx context.Context, dir string) {
	writable := r.Host.FsyncMicros.P50 > 0
	smoke := Suite{Name: "smoke", Runs: writable, Note: "needs nothing but Go"}
	if !writable {
		smoke.Note = dir + " cannot be written to"
	}
	r.OK = smoke.Runs
	var lacks []string
	here := 0
	for _, kind := range broker.Kinds() {
		if how, err := broker.Available(ctx, kind); err != nil || how == "native" && r.tooOld(kind) {
			lacks = append(lacks, kind)
		} else if kind != "postgres" {
			here++
		}
	}
	note := "every broker can be had"
	if len(lacks) > 0 {
		note = "rows that need " + strings.Join(lacks, ", ") + " would be skipped; get them: " + setup + ", or start Docker"
	}
	for _, name := range []string{"quick", "full"} {
		r.Suites = append(r.Suites, Suite{Name: name, Runs: writable && here > 0, Note: note})
	}
	r.Suites = append([]Suite{smoke}, r.Suites...)
}

// tooOld reports whether what a broker would run on is here, and of no use.
func (r *Report) tooOld(kind string) bool {
	for _, c := range r.Checks {
		if c.kind == kind && c.State == Poor {
			return true
		}
	}
	return false
}

func size(n int64) string {
	if n < 0 {
		return "unknown"
	}
	if n < 1<<30 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
