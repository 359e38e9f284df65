package broker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// logName is the file in a broker's directory that its output goes to.
const logName = "broker.log"

// host is where the processes of one broker run: under a supervisor on this
// machine, or in a container. A launch after a kill finds the same data and
// gets the same port.
type host interface {
	port() int
	identity() string // what the broker calls itself; "": cannot be told
	launch(ctx context.Context) error
	kill(ctx context.Context) error
	terminate(ctx context.Context) error
	pause(ctx context.Context) error
	resume(ctx context.Context) error
	died() <-chan string // says how, once, when the broker ended unasked
	log(ctx context.Context) string
	usage() (Usage, error)
	// settings are those in force that only the broker's own tools tell; none is
	// no error.
	settings(ctx context.Context) map[string]string
	stop() error
}

// layout is what a native broker is to be started with.
type layout struct {
	dir     string // its own, empty but for what this package puts there
	data    string // what the broker keeps is to be in here; dir, unless that is on a file system of its own
	conf    string // the settings file, unchanged from package compose
	content []byte // of conf
	ports   []int  // the first is for clients
}

// plan is how a native broker is started.
type plan struct {
	identity string
	prepare  []command      // run to their ends, before the first start only
	serve    []command      // started one after the other, the last is the broker
	owner    *account       // of the directory; nil: this process's user
	proxied  proxied        // see Broker.ProxyAddrs; zero: it does not care
	ends     syscall.Signal // what ends it in order; 0: SIGTERM

	settings   func(ctx context.Context) map[string]string                  // see host; may be nil
	watermark  func(ctx context.Context, to string) (was string, err error) // see Broker.SetMemoryWatermark; nil: it has none
	ackTimeout func(ctx context.Context, within time.Duration) error        // see Broker.SetAckTimeout; nil: it has none
}

// lastLines returns the end of a log, indented to stand below an error.
func lastLines(log string, n int) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	if len(lines) == 1 && lines[0] == "" {
		return "  (it logged nothing)"
	}
	lines = lines[max(0, len(lines)-n):]
	for i, l := range lines {
		if len(l) > 300 {
			l = l[:300] + "…"
		}
		lines[i] = "  " + l
	}
	return strings.Join(lines, "\n")
}

// readLogs returns the log of a native broker and of its preparation.
func readLogs(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, logName))
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	return string(b)
}
