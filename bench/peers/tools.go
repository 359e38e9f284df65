package peers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"queuelab/bench/broker"
)

// perfTestVersion is the one that set-up fetches.
const perfTestVersion = "2.22.1"

// tools are the load tools of this machine. A field is empty where its tool is
// missing; why is in missing, by the tool's name.
type tools struct {
	redisBenchmark      string
	java                string
	kafkaLibs, perfLibs string // directories of jars
	missing             map[string]string
}

// The tools' names in rows.
const (
	redisBenchmark = "redis-benchmark"
	kafkaProducer  = "ProducerPerformance"
	kafkaConsumer  = "ConsumerPerformance"
	perfTest       = "PerfTest"
)

// findTools looks where set-up puts them.
func findTools() tools {
	t := tools{missing: map[string]string{}}
	lack := func(reason string, names ...string) {
		for _, n := range names {
			if t.missing[n] == "" {
				t.missing[n] = reason
			}
		}
	}
	var err error
	if t.redisBenchmark, err = exec.LookPath(redisBenchmark); err != nil {
		lack("redis-benchmark is not on the PATH; `make setup` installs it with redis-server", redisBenchmark)
	}
	programs, err := broker.Programs("kafka")
	if err != nil {
		lack(err.Error(), kafkaProducer, kafkaConsumer, perfTest)
		return t
	}
	for _, p := range programs {
		switch {
		case p.Name == "Java" && p.Err == nil:
			t.java = p.Path
		case p.Name == "Java":
			lack(p.Err.Error(), kafkaProducer, kafkaConsumer, perfTest)
		case p.Err == nil:
			t.kafkaLibs = p.Path
		default:
			lack(p.Err.Error(), kafkaProducer, kafkaConsumer)
		}
	}
	if t.perfLibs, err = lookPerfTest(); err != nil {
		lack(err.Error(), perfTest)
	}
	return t
}

func lookPerfTest() (string, error) {
	dir := os.Getenv("QUEUELAB_PERFTEST_LIBS")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("PerfTest's jars: %w", err)
		}
		dir = filepath.Join(cache, "queuelab", "perf-test-"+perfTestVersion, "libs")
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "perf-test-*.jar")); len(found) == 0 {
		return "", fmt.Errorf("PerfTest's jars are not in %s; `compose/setup.sh --peers` fetches them", dir)
	}
	return dir, nil
}

// jvm runs a main class as the brokers' own scripts do. Whatever a library logs
// below an error would stand between the lines of the result.
func (t tools) jvm(libs, main string, args ...string) process {
	argv := []string{t.java, "-Xmx512m", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:-UsePerfData",
		"-Djava.awt.headless=true", "-Duser.language=en", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
		"-cp", filepath.Join(libs, "*"), main}
	return process{argv: append(argv, args...), omit: []string{"CLASSPATH", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"}}
}

// redis is redis-benchmark with one command of its own.
func (t tools) redis(w where, clients, pipeline int, requests int64, perRequest int, command ...string) process {
	host, port, _ := strings.Cut(w.host, ":")
	argv := []string{t.redisBenchmark, "-h", host, "-p", port, "-c", strconv.Itoa(clients), "-P", strconv.Itoa(pipeline),
		"-n", strconv.FormatInt(requests, 10), "--csv"}
	return process{argv: append(argv, command...), rate: func(out string) (float64, error) {
		rate, err := parseRedisBenchmark(out)
		return rate * float64(perRequest), err
	}}
}

func (t tools) kafkaProduce(w where, records, warmup int64, properties ...string) process {
	p := t.jvm(t.kafkaLibs, "org.apache.kafka.tools.ProducerPerformance", append([]string{
		"--bootstrap-server", w.host, "--topic", w.queue, "--throughput", "-1", "--record-size", strconv.Itoa(payload),
		"--num-records", strconv.FormatInt(records, 10), "--warmup-records", strconv.FormatInt(warmup, 10), "--command-property"}, properties...)...)
	p.rate = func(out string) (float64, error) { return parseProducerPerformance(out, records, warmup) }
	return p
}

func (t tools) kafkaConsume(w where, messages int64, properties ...string) process {
	args := []string{"--bootstrap-server", w.host, "--topic", w.queue, "--group", w.group,
		"--num-records", strconv.FormatInt(messages, 10), "--timeout", "30000"}
	for _, p := range properties {
		args = append(args, "--command-property", p)
	}
	p := t.jvm(t.kafkaLibs, "org.apache.kafka.tools.ConsumerPerformance", args...)
	p.rate = func(out string) (float64, error) { return parseConsumerPerformance(out, messages) }
	return p
}

// rabbit is PerfTest on the exchange and queue that our backend declared.
func (t tools) rabbit(w where, what string, args ...string) process {
	u := *w.url
	u.RawQuery = ""
	if u.Path == "/" {
		u.Path = "" // which is the virtual host "/" to Java, and "/" is one without a name
	}
	p := t.jvm(t.perfLibs, "com.rabbitmq.perf.PerfTest", append([]string{"--uri", u.String(), "--predeclared",
		"--queue", w.queue + "." + w.group, "--size", strconv.Itoa(payload)}, args...)...)
	p.rate = func(out string) (float64, error) { return parsePerfTest(out, what) }
	return p
}

var versionNumber = regexp.MustCompile(`[0-9]+\.[0-9]+[0-9.]*`)

// versions are those of the tools and of the client libraries.
func (t tools) versions(ctx context.Context) map[string]string {
	v := map[string]string{}
	if t.redisBenchmark != "" {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		out, err := exec.CommandContext(ctx, t.redisBenchmark, "--version").Output()
		if err == nil {
			v[redisBenchmark] = versionNumber.FindString(string(out))
		}
	}
	jar := func(libs, glob string) string {
		found, _ := filepath.Glob(filepath.Join(libs, glob))
		if libs == "" || len(found) == 0 {
			return ""
		}
		return versionNumber.FindString(filepath.Base(found[0]))
	}
	if s := jar(t.kafkaLibs, "kafka-tools-[0-9]*.jar"); s != "" {
		v[kafkaProducer] = strings.TrimRight(s, ".")
		v[kafkaConsumer] = v[kafkaProducer]
	}
	if s := jar(t.perfLibs, "perf-test-[0-9]*.jar"); s != "" {
		v[perfTest] = strings.TrimRight(s, ".")
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			switch d.Path {
			case "github.com/redis/go-redis/v9", "github.com/rabbitmq/amqp091-go", "github.com/segmentio/kafka-go", "github.com/twmb/franz-go":
				v[d.Path] = d.Version
			}
		}
	}
	return v
}
