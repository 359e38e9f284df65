package broker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func rabbitKind() kind {
	return kind{
		name: "rabbitmq", setting: "default", ports: 3, patience: 2 * time.Minute,
		url:       func(port int) string { return fmt.Sprintf("amqp://guest:guest@127.0.0.1:%d/", port) },
		available: func() error { _, _, err := rabbitPrograms(); return err },
		plan:      planRabbit,
		ready:     rabbitReady,
		version: func(ctx context.Context, url, _ string) (string, error) {
			m, err := rabbitSettings(ctx, url)
			return m["version"], err
		},
		settings: rabbitSettings,
	}
}

// rabbitPrograms finds the server's own script, since the wrapper on the PATH
// switches to another user, and epmd.
func rabbitPrograms() (server, epmd string, err error) {
	for _, glob := range []string{"/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server", "/opt/rabbitmq/sbin/rabbitmq-server"} {
		if found, _ := filepath.Glob(glob); len(found) > 0 {
			server = found[len(found)-1]
			break
		}
	}
	if server == "" {
		return "", "", unavailable("rabbitmq-server is not installed", makeSetup)
	}
	if _, err := exec.LookPath("erl"); err != nil {
		return "", "", unavailable("Erlang's erl, which RabbitMQ runs on, is not on the PATH", makeSetup)
	}
	epmd, err = lookProgram("epmd", "/usr/lib/erlang/bin/epmd", "/usr/lib/erlang/erts-*/bin/epmd")
	return server, epmd, err
}

func planRabbit(l layout) (plan, error) {
	// The name of the moment, so that no other node answers to it.
	return planRabbitNode(l, fmt.Sprintf("lab%08x@localhost", rand.Uint32()))
}

func planRabbitNode(l layout, name string) (plan, error) {
	server, epmd, err := rabbitPrograms()
	if err != nil {
		return plan{}, err
	}
	amqpPort, distPort, epmdPort := l.ports[0], l.ports[1], l.ports[2]
	in := func(name string) string { return filepath.Join(l.dir, name) }
	// Without these two files those of the system would be read.
	if err := os.WriteFile(in("enabled_plugins"), []byte("[].\n"), 0o644); err != nil {
		return plan{}, err
	}
	if err := os.WriteFile(in("rabbitmq-env.conf"), nil, 0o644); err != nil {
		return plan{}, err
	}
	env := []string{
		"HOME=" + l.dir, // the Erlang cookie
		"RABBITMQ_NODENAME=" + name,
		"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		"RABBITMQ_NODE_PORT=" + strconv.Itoa(amqpPort),
		"RABBITMQ_DIST_PORT=" + strconv.Itoa(distPort),
		"RABBITMQ_CONFIG_FILE=" + l.conf[:len(l.conf)-len(filepath.Ext(l.conf))],
		"RABBITMQ_CONF_ENV_FILE=" + in("rabbitmq-env.conf"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + in("enabled_plugins"),
		"RABBITMQ_MNESIA_BASE=" + filepath.Join(l.data, "mnesia"),
		"RABBITMQ_LOG_BASE=" + in("log"),
		"RABBITMQ_LOGS=-", // to the console, and so into our log
		"RABBITMQ_PID_FILE=" + in("rabbit.pid"),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
		// The script then becomes the Erlang machine instead of waiting for it,
		// so that the kernel's parent-death signal reaches it.
		"RUNNING_UNDER_SYSTEMD=true",
		"ERL_EPMD_PORT=" + strconv.Itoa(epmdPort),
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"ERL_CRASH_DUMP=/dev/null",
		"LANG=C.UTF-8",
	}
	return plan{
		identity: strings.TrimSuffix(name, "@localhost"),
		settings: func(ctx context.Context) map[string]string { return rabbitLimits(ctx, name, l.dir, env) },
		watermark: func(ctx context.Context, to string) (string, error) {
			return rabbitWatermark(ctx, name, l.dir, env, to)
		},
		ackTimeout: func(ctx context.Context, within time.Duration) error {
			return rabbitAckTimeout(ctx, name, l.dir, env, within)
		},
		serve: []command{
			// In the foreground and before the node, which would start one that
			// leaves its family.
			epmdCommand(epmd, epmdPort, env),
			{Argv: []string{server}, Env: env},
		},
	}, nil
}

func epmdCommand(epmd string, port int, env []string) command {
	return command{Argv: []string{epmd, "-port", strconv.Itoa(port), "-address", "127.0.0.1"}, Env: env}
}

// withRabbit lends an open connection: the handshake is complete, the user is
// let in and the virtual host is there.
func withRabbit(ctx context.Context, url string, do func(*amqp.Connection) error) error {
	stop := func() bool { return true } // the library's handshake knows no context
	c, err := amqp.DialConfig(url, amqp.Config{
		Heartbeat: 10 * time.Second,
		Dial: func(network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			// One that starts may accept and stay silent. The library takes the
			// deadline away once the connection is open.
			if d, ok := ctx.Deadline(); ok {
				err = conn.SetDeadline(d)
			}
			stop = context.AfterFunc(ctx, func() { conn.Close() })
			return conn, err
		},
	})
	defer func() { stop() }()
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

func rabbitReady(ctx context.Context, url, identity string) error {
	return withRabbit(ctx, url, func(c *amqp.Connection) error {
		// The cluster's name is the first node's, with the host's real name.
		name, _ := c.Properties["cluster_name"].(string)
		if identity != "" && !strings.HasPrefix(name, identity+"@") {
			return errStranger
		}
		// A node that boots opens connections a moment before it opens channels.
		ch, err := c.Channel()
		if err != nil {
			return err
		}
		return ch.Close()
	})
}

func rabbitSettings(ctx context.Context, url string) (got map[string]string, err error) {
	err = withRabbit(ctx, url, func(c *amqp.Connection) error {
		got = map[string]string{
			"frame_max":   strconv.Itoa(c.Config.FrameSize),
			"channel_max": strconv.Itoa(int(c.Config.ChannelMax)),
		}
		for _, name := range []string{"product", "version", "platform", "cluster_name"} {
			if v, ok := c.Properties[name].(string); ok {
				got[name] = v
			}
		}
		return nil
	})
	return got, err
}
