package broker

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

func redisKind() kind {
	return kind{
		name: "redis", setting: "aof-everysec", ports: 1, patience: 30 * time.Second,
		url:       func(port int) string { return fmt.Sprintf("redis://127.0.0.1:%d/0", port) },
		available: func() error { _, err := lookProgram("redis-server"); return err },
		plan:      planRedis,
		ready:     redisReady,
		version:   redisVersion,
		settings:  redisSettings,
	}
}

func planRedis(l layout) (plan, error) {
	program, err := lookProgram("redis-server")
	if err != nil {
		return plan{}, err
	}
	return plan{
		identity: l.data,
		serve: []command{{Argv: []string{program, l.conf,
			"--port", strconv.Itoa(l.ports[0]), "--bind", "127.0.0.1", "--dir", l.data, "--daemonize", "no"}}},
	}, nil
}

// withRedis lends a connection that neither retries nor outlives the call.
func withRedis(ctx context.Context, url string, do func(*redis.Client) error) error {
	// Where there are Sentinels they tell the master, which is no option of the library's.
	addr, err := masterAddr(ctx, url)
	if err != nil {
		return err
	}
	o, err := redis.ParseURL(withoutSentinels(url))
	if err != nil {
		return err
	}
	o.Addr = addr
	// Dialled here, since the library writes every refused connection to stderr.
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", o.Addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	o.Dialer = func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	o.ContextTimeoutEnabled = true
	o.MaxRetries, o.PoolSize, o.DialerRetries = -1, 1, 1
	c := redis.NewClient(o)
	defer c.Close()
	return do(c)
}

func redisReady(ctx context.Context, url, identity string) error {
	return withRedis(ctx, url, func(c *redis.Client) error {
		// While it still loads its data the answer is the error LOADING.
		if err := c.Ping(ctx).Err(); err != nil {
			return err
		}
		if identity == "" {
			return nil
		}
		dir, err := c.ConfigGet(ctx, "dir").Result()
		if err != nil {
			return err
		}
		if dir["dir"] != identity {
			return errStranger
		}
		return nil
	})
}

func redisVersion(ctx context.Context, url, _ string) (version string, err error) {
	err = withRedis(ctx, url, func(c *redis.Client) error {
		info, err := c.Info(ctx, "server").Result()
		if err != nil {
			return err
		}
		for _, line := range strings.Split(info, "\r\n") {
			if v, ok := strings.CutPrefix(line, "redis_version:"); ok {
				version = v
			}
		}
		return nil
	})
	return version, err
}

func redisSettings(ctx context.Context, url string) (got map[string]string, err error) {
	err = withRedis(ctx, url, func(c *redis.Client) error {
		got = map[string]string{}
		for _, name := range []string{"appendonly", "appendfsync", "no-appendfsync-on-rewrite", "save", "maxmemory", "maxmemory-policy", "min-replicas-to-write", "min-replicas-max-lag"} {
			m, err := c.ConfigGet(ctx, name).Result()
			if err != nil {
				return err
			}
			if v, ok := m[name]; ok {
				got[name] = v
			}
		}
		return nil
	})
	return got, err
}
