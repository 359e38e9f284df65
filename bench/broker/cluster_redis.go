package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/compose"
)

// masterName is what the Sentinels of the lab call the master.
const masterName = "lab"

func redisClusterKind() kind {
	k := redisKind()
	k.name, k.conf, k.patience = "redis-sentinel", "redis", 2*time.Minute
	k.url = func(port int) string { return sentinelURL(local(port), masterName, local(port+1, port+2, port+3)) }
	k.given = func(u *url.URL) error {
		if q := u.Query(); q.Get("sentinel") == "" || q.Get("master") == "" {
			return errors.New("it names no Sentinel, or not what they call the master")
		}
		return nil
	}
	k.ready = func(ctx context.Context, url, _ string) error { return redisReady(ctx, url, "") }
	k.assemble = assembleRedis
	return k
}

func sentinelURL(host, master, sentinels string) string {
	return fmt.Sprintf("redis://%s/0?master=%s&sentinel=%s", host, master, sentinels)
}

// assembleRedis makes a master and a replica, by their first roles, and three
// Sentinels, which outlive both.
func assembleRedis(ctx context.Context, k kind, setting string) (host, error) {
	name, content, err := k.settingsFile(setting)
	if err != nil {
		return nil, err
	}
	node := redisKind()
	if err := node.available(); err != nil {
		return nil, err
	}
	ports, err := freePorts(2 + clusterNodes)
	if err != nil {
		return nil, err
	}
	data, watch := ports[:2], ports[2:]
	c := &cluster{url: sentinelURL(local(data[0]), masterName, local(watch...))}
	members, err := build(2, func(i int) (*member, error) {
		return newMember(ctx, node, place{conf: name, content: content, ports: data[i : i+1]}, func(l layout) (plan, error) {
			// In the file, where the Sentinels can make a change of roles last.
			own := fmt.Sprintf("\nport %d\nbind 127.0.0.1\ndir %s\ndaemonize no\nrepl-diskless-sync-delay 0\n", data[i], l.data)
			if i > 0 {
				own += fmt.Sprintf("replicaof 127.0.0.1 %d\n", data[0])
			}
			program, err := lookProgram("redis-server")
			if err != nil {
				return plan{}, err
			}
			return plan{identity: l.data, serve: []command{{Argv: []string{program, l.conf}}}}, os.WriteFile(l.conf, append(bytes.Clone(l.content), own...), 0o644)
		})
	})
	if err != nil {
		return nil, err
	}
	for i, m := range members {
		m.before = func(ctx context.Context) error {
			return c.takeRole(ctx, filepath.Join(m.dir, filepath.Base(name)), data, i)
		}
		c.nodes = append(c.nodes, single(node, node.url(data[i]), m))
	}
	c.host = members[0]
	sentinels, err := newMember(ctx, kind{name: "sentinel"}, place{conf: name, ports: watch}, func(l layout) (plan, error) { return planSentinels(l, data[0]) })
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	c.last = []*member{sentinels}
	c.formed = func(ctx context.Context) error {
		for i, p := range watch {
			m, err := askSentinel(ctx, local(p), func(s *redis.SentinelClient) (map[string]string, error) { return s.Master(ctx, masterName).Result() })
			if err != nil {
				return err
			}
			if m["num-slaves"] != "1" || m["num-other-sentinels"] != "2" {
				return fmt.Errorf("sentinel %d knows %s replicas and %s other sentinels", i+1, m["num-slaves"], m["num-other-sentinels"])
			}
		}
		return nil
	}
	c.leads = func(ctx context.Context, _ string) (int, error) { return c.master(ctx, data) }
	c.whole = func(ctx context.Context, _ string) error {
		i, err := c.master(ctx, data)
		if err != nil {
			return err
		}
		return withRedis(ctx, c.nodes[i].url, func(r *redis.Client) error {
			info, err := r.Info(ctx, "replication").Result()
			if err == nil && !strings.Contains(info, "role:master") {
				err = errors.New("the master does not know yet that it is one")
			}
			if err == nil && !strings.Contains(info, "state=online") {
				err = errors.New("the master has no replica that is online")
			}
			return err
		})
	}
	return c, nil
}

func planSentinels(l layout, master int) (plan, error) {
	program, err := lookProgram("redis-server")
	if err != nil {
		return plan{}, err
	}
	_, content, err := compose.SettingsFile("redis", "sentinel")
	if err != nil {
		return plan{}, err
	}
	p := plan{identity: l.dir}
	for i, port := range l.ports {
		dir := filepath.Join(l.dir, fmt.Sprintf("sentinel-%d", i+1))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return plan{}, err
		}
		own := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\ndaemonize no\nsentinel monitor %s 127.0.0.1 %d 2\n", port, dir, masterName, master)
		file := filepath.Join(dir, "sentinel.conf")
		if err := os.WriteFile(file, append([]byte(own), content...), 0o644); err != nil {
			return plan{}, err
		}
		p.serve = append(p.serve, command{Argv: []string{program, file, "--sentinel"}})
	}
	return p, nil
}

// takeRole makes a dead node's file say the role that the Sentinels see it in. A
// master that was replaced while it was dead would else come back as one, and
// lose what it takes until it is demoted.
func (c *cluster) takeRole(ctx context.Context, file string, ports []int, node int) error {
	if !c.last[0].alive() { // the first start
		return nil
	}
	i, err := c.master(ctx, ports)
	if err != nil {
		return fmt.Errorf("role of node %d: %w", node+1, err)
	}
	if i == node {
		return nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	lines := slices.DeleteFunc(strings.Split(string(content), "\n"), func(l string) bool { return strings.HasPrefix(l, "replicaof ") })
	lines = append(lines, fmt.Sprintf("replicaof 127.0.0.1 %d", ports[i]), "")
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644)
}

// master is the index of the node that the Sentinels call the master.
func (c *cluster) master(ctx context.Context, ports []int) (int, error) {
	addr, err := masterAddr(ctx, c.url)
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(ports, func(p int) bool { return local(p) == addr })
	if i < 0 {
		return 0, fmt.Errorf("the Sentinels name %s as the master, which is none of the nodes", addr)
	}
	return i, nil
}

// masterAddr is where the Redis of a URL is: its host, or the one that the first
// of its Sentinels to answer names.
func masterAddr(ctx context.Context, rawURL string) (string, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "", err
	}
	sentinels := u.Query().Get("sentinel")
	if sentinels == "" {
		return u.Host, nil
	}
	var errs []error
	for _, s := range strings.Split(sentinels, ",") {
		at, err := askSentinel(ctx, s, func(c *redis.SentinelClient) ([]string, error) {
			return c.GetMasterAddrByName(ctx, u.Query().Get("master")).Result()
		})
		if err == nil && len(at) == 2 {
			return net.JoinHostPort(at[0], at[1]), nil
		}
		errs = append(errs, fmt.Errorf("sentinel at %s: %w", s, err))
	}
	return "", errors.Join(errs...)
}

// withoutSentinels is a URL that the client library can parse.
func withoutSentinels(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return rawURL // and so is the library's error
	}
	q := u.Query()
	if q.Get("sentinel") == "" {
		return rawURL
	}
	q.Del("sentinel")
	q.Del("master")
	u.RawQuery = q.Encode()
	return u.String()
}

func askSentinel[T any](ctx context.Context, addr string, ask func(*redis.SentinelClient) (T, error)) (T, error) {
	var none T
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return none, err
	}
	defer conn.Close()
	c := redis.NewSentinelClient(&redis.Options{
		Addr: addr, Dialer: func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		MaxRetries: -1, PoolSize: 1, DialerRetries: 1, ContextTimeoutEnabled: true,
	})
	defer c.Close()
	return ask(c)
}
