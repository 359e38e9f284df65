package broker_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
)

// onPath puts a program of that name in front of the real one.
func onPath(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestBrokerThatEndsAtOnceIsReportedWithItsLog(t *testing.T) {
	onPath(t, "redis-server", "#!/bin/sh\necho the disk is full\nexit 7\n")
	_, err := broker.Start(within(t, time.Minute), broker.Options{Kind: "redis"})
	if err == nil {
		t.Fatal("got nil, want an error")
	}
	for _, want := range []string{"start redis", "exit status 7", "the disk is full", "on port "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want it to say %q", err, want)
		}
	}
}

// The first time the stand-in says that the port is taken, as redis-server does
// when another process was faster; the second time it is redis-server.
func TestPortThatWasTakenMeanwhileIsReplaced(t *testing.T) {
	brokertest.Start(t, "redis", "")
	realServer, err := exec.LookPath("redis-server")
	if err != nil {
		brokertest.Lacks(t, err)
	}
	mark := filepath.Join(t.TempDir(), "mark")
	onPath(t, "redis-server", `#!/bin/sh
if [ ! -e `+mark+` ]; then
  : > `+mark+`
  echo "Could not create server TCP listening socket 127.0.0.1:1: bind: Address already in use"
  exit 1
fi
exec `+realServer+` "$@"
`)
	var log strings.Builder
	b, err := broker.Start(within(t, time.Minute), broker.Options{Kind: "redis", Log: &log})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "trying another") {
		t.Errorf("got progress %q, want it to tell of the second try", log.String())
	}
}
