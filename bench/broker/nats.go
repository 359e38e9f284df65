package broker

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func natsKind() kind {
	return kind{
		name: "nats", setting: "default", ports: 1, patience: 30 * time.Second,
		url:       func(port int) string { return fmt.Sprintf("nats://127.0.0.1:%d", port) },
		available: func() error { return nil }, // it is part of this program
		plan:      planNATS,
		ready:     natsReady,
		version: func(ctx context.Context, url, _ string) (version string, err error) {
			err = withNATS(ctx, url, func(c *nats.Conn) error {
				version = c.ConnectedServerVersion()
				return nil
			})
			return version, err
		},
		settings: natsSettings,
	}
}

// planNATS starts this very program as a NATS server; see Init.
func planNATS(l layout) (plan, error) {
	self, err := selfPath()
	if err != nil {
		return plan{}, err
	}
	name := filepath.Base(l.dir)
	return plan{
		identity: name,
		serve: []command{{Argv: []string{self, natsWord, "-c", l.conf, "--server_name", name,
			"--addr", "127.0.0.1", "--port", strconv.Itoa(l.ports[0]), "--store_dir", filepath.Join(l.data, "data")}}},
	}, nil
}

// selfPath is this program's path, not /proc/self/exe: the list of processes
// shall show a name that tells people what this is.
func selfPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(self); err != nil {
		self = "/proc/self/exe" // replaced or removed since we were started
	}
	return self, nil
}

// serveNATS is what the program nats-server does with these arguments.
func serveNATS(args []string) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, "nats-server:", err)
		return 1
	}
	usage := func() { fmt.Fprintln(os.Stderr, "nats-server: no such argument") }
	o, err := server.ConfigureOptions(flag.NewFlagSet("nats-server", flag.ContinueOnError), args, server.PrintServerAndExit, usage, usage)
	if err != nil {
		return fail(err)
	}
	s, err := server.NewServer(o)
	if err != nil {
		return fail(err)
	}
	s.ConfigureLogger()
	if err := server.Run(s); err != nil {
		return fail(err)
	}
	s.WaitForShutdown()
	return 0
}

// withNATS lends a connection that neither comes back nor outlives the call.
func withNATS(ctx context.Context, url string, do func(*nats.Conn) error) error {
	o := nats.GetDefaultOptions()
	o.Url, o.AllowReconnect = url, false
	o.AsyncErrorCB = func(*nats.Conn, *nats.Subscription, error) {} // the library's own prints to stderr
	if deadline, ok := ctx.Deadline(); ok {
		o.Timeout = max(time.Until(deadline), time.Millisecond)
	}
	c, err := o.Connect()
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

// natsReady asks JetStream, which is there a little later than the server.
func natsReady(ctx context.Context, url, identity string) error {
	return withNATS(ctx, url, func(c *nats.Conn) error {
		if identity != "" && c.ConnectedServerName() != identity {
			return errStranger
		}
		js, err := jetstream.New(c)
		if err != nil {
			return err
		}
		_, err = js.AccountInfo(ctx)
		return err
	})
}

// natsSettings are told by a server that exports its state to the account, as
// those of our settings files do; by another, only what it tells every client.
func natsSettings(ctx context.Context, url string) (got map[string]string, err error) {
	err = withNATS(ctx, url, func(c *nats.Conn) error {
		got = map[string]string{"max_payload": strconv.FormatInt(c.MaxPayload(), 10)}
		m, err := c.RequestWithContext(ctx, "$SYS.REQ.SERVER.PING.VARZ", nil)
		if errors.Is(err, nats.ErrNoResponders) {
			return nil
		}
		if err != nil {
			return err
		}
		var said struct {
			Data server.Varz `json:"data"`
		}
		if err := json.Unmarshal(m.Data, &said); err != nil {
			return fmt.Errorf("read the server's state: %w", err)
		}
		if js := said.Data.JetStream.Config; js != nil {
			got["sync_interval"], got["sync_always"] = js.SyncInterval.String(), strconv.FormatBool(js.SyncAlways)
		}
		return nil
	})
	return got, err
}
