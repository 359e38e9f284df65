package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
)

const childEnv = "QUEUELAB_SECKILL_CHILD"

// TestMain lets the test binary be the service, so that tests can kill it.
func TestMain(m *testing.M) {
	broker.Init()
	if os.Getenv(childEnv) != "" {
		main()
		os.Exit(0)
	}
	brokertest.Main(m,
		goleak.IgnoreAnyFunction("gorm.io/gorm/internal/lru.NewLRU[...].func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// process is a seckill that runs.
type process struct {
	cmd    *exec.Cmd
	base   string
	out    string // its start-up lines
	stderr *lockedBuffer
	done   chan struct{} // closed once it is gone
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

const operatorToken = "the-operator-of-these-tests"

// start runs the service in dir and returns once it is ready.
func start(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	return startWith(t, dir, append([]string{"--operator-token", operatorToken, "--trust-user-header", "--rescan", "1s"}, args...)...)
}

// startWith is start with no more flags than these.
func startWith(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	args = append([]string{"--listen", "127.0.0.1:0"}, args...)
	p := &process{cmd: exec.Command(os.Args[0], args...), stderr: &lockedBuffer{}, done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stderr = dir, p.stderr
	p.cmd.Env = append(os.Environ(), childEnv+"=1")
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.kill() })
	lines := bufio.NewScanner(stdout)
	for p.base == "" && lines.Scan() {
		p.out += lines.Text() + "\n"
		if _, addr, ok := strings.Cut(lines.Text(), "listening on "); ok {
			p.base = addr
		}
	}
	if p.base == "" {
		_ = p.cmd.Wait()
		close(p.done)
		t.Fatalf("the service did not start: %s", p.stderr)
	}
	go func() {
		_, _ = io.Copy(io.Discard, stdout)
		_ = p.cmd.Wait()
		close(p.done)
	}()
	waitFor(t, "the service is ready", func() bool {
		status, _, err := call(p.base, "GET", "/readyz", "", "")
		return err == nil && status == 200
	})
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop asks it to stop and wants an exit in order.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-p.done
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("got exit %d after SIGTERM, want 0: %s", code, p.stderr)
	}
}

func waitFor(t *testing.T, what string, yes func() bool) {
	t.Helper()
	deadline := time.Now().Add(40 * time.Second)
	for !yes() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 40 s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestWhatIsWrongIsOneSentence(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	db := "--db=sqlite:" + filepath.Join(dir, "x.db")
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"an unknown flag", []string{"--queu", "kafka"}, `did you mean "--queue"`},
		{"an unknown queue", []string{"--queue", "nope"}, "redis-streams"},
		{"an unknown scheme", []string{"--queue", "nope://x"}, "redis+streams"},
		{"an unknown parameter", []string{"--queue", "memory://orders?capacty=3", "--allow-lossy"}, "capacity"},
		{"a queue that is down", []string{"--queue", "redis+list://:secret@127.0.0.1:1/0?queue=q", "--allow-lossy"}, "refused; start its broker there, or give the address of one that runs with --queue"},
		{"a lossy queue", []string{"--queue", "memory"}, "--allow-lossy"},
		{"an unknown database", []string{"--db", "mysql://x"}, "postgres://"},
		{"a database that is down", []string{"--db", "postgres://u:secret@127.0.0.1:1/x"}, "refused; start the database there, or give the address of one that runs with --db"},
		{"a database file that cannot be", []string{"--db", "sqlite:/nowhere/x.db"}, "/nowhere/x.db: there is no folder /nowhere: make it"},
		{"a Redis that is down", []string{db, "--redis", "redis://:secret@127.0.0.1:1/0"}, "refused; start a Redis there, or give the address of one that runs with --redis"},
		{"a Redis URL that is none", []string{db, "--redis", "localhost"}, "redis://"},
		{"a port that is taken", []string{"--listen", taken.Addr().String()}, "address already in use"},
		{"an address that is none", []string{"--listen", "8080"}, "HOST:PORT"},
		{"user headers for everybody", []string{"--listen", "0.0.0.0:0", "--trust-user-header"}, "loopback"},
		{"user headers on every address", []string{"--listen", ":0", "--trust-user-header"}, "loopback"},
		{"a short key", []string{"--token-key", "short"}, "32"},
		{"a short key of before", []string{"--token-key", strings.Repeat("k", 32), "--token-key-old", "short"}, "32"},
		{"a key of before without one of now", []string{"--token-key-old", strings.Repeat("k", 32)}, "--token-key"},
		{"an open login for everybody", []string{"--listen", "0.0.0.0:0", "--login", "open"}, "loopback"},
		{"an unknown login", []string{"--login", "magic"}, "password"},
		{"a rate that is none", []string{"--limit-user", "10"}, "10/s"},
		{"a rate of logins that is none", []string{"--limit-login", "fast"}, "--limit-login"},
		{"a proxy that is none", []string{"--trusted-proxies", "10.0.0.0/8,proxy"}, `"proxy"`},
		{"a captcha before nothing", []string{"--captcha", "on", "--purchase-token", "off"}, "--purchase-token=on"},
		{"a captcha before nothing, by itself", []string{"--captcha", "auto", "--trust-user-header"}, "--purchase-token=on"},
		{"a captcha above nothing", []string{"--captcha", "auto", "--captcha-above", "0"}, "--captcha-above"},
		{"a worker number too high", []string{"--worker-id", "1024"}, "1023"},
		{"a rescan too often", []string{"--rescan", "1ms"}, "100ms"},
		{"an unknown way to enqueue", []string{"--enqueue", "magic"}, "publish"},
		{"a script without a Redis", []string{db, "--enqueue", "script"}, "--redis"},
		{"ids of a Redis that is not there", []string{db, "--ids", "redis"}, "--redis"},
		{"a name alone for start signals", []string{db, "--start-queue", "kafka"}, "URL"},
		{"orders and start signals in one queue", []string{db, "--queue", "redis+streams://127.0.0.1:1/0?queue=q", "--start-queue", "redis+streams://127.0.0.1:1/0?queue=q"}, "another name"},
		{"start signals that one instance gets", []string{db, "--start-queue", "memory://start"}, "every instance"},
		{"an argument too many", []string{"sell"}, "sell"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := append([]string{"--listen", "127.0.0.1:0"}, tc.args...)
			err := run(t.Context(), args, io.Discard, io.Discard)
			if err == nil {
				t.Fatal("got no error")
			}
			got := oneLine(err)
			if !strings.Contains(got, tc.want) || strings.Contains(got, "secret") || strings.Contains(got, "\n") {
				t.Errorf("got %q, want a sentence with %q and without the password", got, tc.want)
			}
		})
	}
}

func TestHelpAndVersionAreAnswers(t *testing.T) {
	for _, tc := range []struct{ arg, want string }{{"--help", "SECKILL_QUEUE"}, {"--help", "Examples:"}, {"--version", "seckill "}} {
		var out bytes.Buffer
		if err := run(t.Context(), []string{tc.arg}, &out, io.Discard); err != nil || !strings.Contains(out.String(), tc.want) {
			t.Errorf("%s: got %v and %q, want %q in it", tc.arg, err, out.String(), tc.want)
		}
	}
}

func TestFlagsAreAlsoEnvironmentVariables(t *testing.T) {
	t.Setenv("SECKILL_QUEUE", "nope")
	if err := run(t.Context(), nil, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), `"nope"`) {
		t.Errorf("got %v, want one about the queue of the environment", err)
	}
}

func TestZeroInstallSaysWhatItIs(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, w := io.Pipe()
	ended := make(chan error, 1)
	var log lockedBuffer
	go func() {
		ended <- run(ctx, []string{"--listen", "127.0.0.1:0", "--log-format", "text", "--db", "sqlite:" + filepath.Join(t.TempDir(), "x.db")}, w, &log)
		w.Close()
	}()
	lines := bufio.NewScanner(out)
	var text string
	for lines.Scan() {
		text += lines.Text() + "\n"
		if strings.HasPrefix(lines.Text(), "operator's console: ") {
			break // the last line
		}
	}
	waitFor(t, "the token is told", func() bool { return strings.Contains(log.String(), "operator token: ") })
	for _, want := range []string{"listening on http://127.0.0.1:", "queue memory", "admission in this process", "can lose orders"} {
		if !strings.Contains(text, want) {
			t.Errorf("got %q, want %q in it", text, want)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("got %v, want a stop in order", err)
	}
}
