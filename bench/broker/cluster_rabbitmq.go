package broker

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func rabbitClusterKind() kind {
	k := rabbitKind()
	k.name, k.conf, k.setting, k.patience = "rabbitmq-3", "rabbitmq", "cluster", 4*time.Minute
	k.url = func(port int) string { return "amqp://guest:guest@" + local(port, port+1, port+2) + "/" }
	k.given = func(u *url.URL) error { // which tells its clients nothing of its other nodes
		if n := strings.Count(u.Host, ",") + 1; n < clusterNodes {
			return fmt.Errorf("it names %d of %d nodes", n, clusterNodes)
		}
		return nil
	}
	k.ready = func(ctx context.Context, url, identity string) error {
		return anyNode(url, func(one string) error { return rabbitMemberReady(ctx, one, identity) })
	}
	k.settings = func(ctx context.Context, url string) (m map[string]string, err error) {
		err = anyNode(url, func(one string) error { m, err = rabbitSettings(ctx, one); return err })
		return m, err
	}
	k.version = func(ctx context.Context, url, _ string) (string, error) {
		m, err := k.settings(ctx, url)
		return m["version"], err
	}
	k.assemble = assembleRabbit
	return k
}

// rabbitMemberReady is rabbitReady for a node of a cluster: each node gives the
// cluster the name of one of them, all of which begin with the identity.
func rabbitMemberReady(ctx context.Context, url, identity string) error {
	return withRabbit(ctx, url, func(c *amqp.Connection) error {
		if name, _ := c.Properties["cluster_name"].(string); !strings.HasPrefix(name, identity) {
			return errStranger
		}
		ch, err := c.Channel()
		if err != nil {
			return err
		}
		return ch.Close()
	})
}

func assembleRabbit(ctx context.Context, k kind, setting string) (host, error) {
	name, content, err := k.settingsFile(setting)
	if err != nil {
		return nil, err
	}
	_, epmd, err := rabbitPrograms()
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(2*clusterNodes + 1)
	if err != nil {
		return nil, err
	}
	clients, dist, names := ports[:clusterNodes], ports[clusterNodes:2*clusterNodes], ports[2*clusterNodes]
	tag, cookie := "lab"+strings.ToLower(rand.Text()[:8]), rand.Text()
	nodeName := func(i int) string { return fmt.Sprintf("%sn%d@localhost", tag, i+1) }

	// One epmd knows all nodes, and must not die with one of them.
	mapper, err := newMember(ctx, kind{name: "epmd"}, place{conf: name, ports: []int{names}}, func(l layout) (plan, error) {
		return plan{identity: tag, serve: []command{epmdCommand(epmd, names, nil)}}, nil
	})
	if err != nil {
		return nil, err
	}
	var peers strings.Builder
	for i := range clusterNodes {
		fmt.Fprintf(&peers, "cluster_formation.classic_config.nodes.%d = %s\n", i+1, nodeName(i))
	}
	node := rabbitKind()
	node.ready = rabbitMemberReady
	node.patience = k.patience // three boot at once, and wait for each other
	if k.network {
		// The lab's, and no advice: nodes give up one that they do not hear after 6 to
		// 10 s instead of 45 to 75 s, so that a partition can be longer than that.
		peers.WriteString("net_ticktime = 8\n")
	}
	conf := append(append(bytes.Clone(content), '\n'), peers.String()...)
	members, err := build(clusterNodes, func(i int) (*member, error) {
		own := []int{clients[i], dist[i], names}
		return newMember(ctx, node, place{conf: name, content: conf, ports: own, alone: k.network}, func(l layout) (plan, error) {
			if err := os.WriteFile(filepath.Join(l.dir, ".erlang.cookie"), []byte(cookie), 0o400); err != nil {
				return plan{}, err
			}
			p, err := planRabbitNode(l, nodeName(i))
			p.serve = p.serve[1:] // all have one epmd
			p.identity = tag
			return p, err
		})
	})
	if err != nil {
		return nil, errors.Join(err, mapper.stop())
	}
	c := &cluster{url: "amqp://guest:guest@" + local(clients...) + "/", host: members[0], first: []*member{mapper}}
	for i, m := range members {
		c.nodes = append(c.nodes, single(node, node.url(clients[i]), m))
	}
	if k.network {
		served := make([][]int, clusterNodes)
		for i := range served {
			served[i] = []int{clients[i], dist[i]}
		}
		if c.net, err = connect(members, served, 2, names); err != nil {
			return nil, errors.Join(err, c.stop())
		}
	}
	ask := func(ctx context.Context, script string) (map[string]string, error) {
		var errs []error
		for i, m := range members {
			if !m.alive() || c.net.isCut(i) { // which would not know that it was replaced
				continue
			}
			got, err := askErlang(ctx, m.dir, m.env, nodeName(i), script)
			if err == nil {
				return got, nil
			}
			errs = append(errs, err)
		}
		return nil, cmp.Or(errors.Join(errs...), errors.New("no node runs"))
	}
	c.formed = func(ctx context.Context) error {
		got, err := ask(ctx, `Say("running", erlang, length, [rpc:call(N, rabbit_nodes, all_running, [])])`)
		if err == nil && got["running"] != strconv.Itoa(clusterNodes) {
			err = fmt.Errorf("%q of %d nodes run", got["running"], clusterNodes)
		}
		return err
	}
	quorum := func(ctx context.Context, queueURL string) (map[string]string, error) {
		script, err := rabbitQueueScript(queueURL)
		if err != nil {
			return nil, err
		}
		return ask(ctx, script)
	}
	c.leads = func(ctx context.Context, queueURL string) (int, error) {
		got, err := quorum(ctx, queueURL)
		if err != nil {
			return 0, err
		}
		for i := range clusterNodes {
			if got["leader"] == nodeName(i) && members[i].alive() {
				return i, nil
			}
		}
		return 0, fmt.Errorf("it has no leader: %v", got)
	}
	c.whole = func(ctx context.Context, queueURL string) error {
		got, err := quorum(ctx, queueURL)
		if err == nil && (got["members"] != strconv.Itoa(clusterNodes) || got["online"] != got["members"]) {
			err = fmt.Errorf("%q of %q members are online", got["online"], got["members"])
		}
		return err
	}
	return c, nil
}

// rabbitQueueScript asks for the leader of a quorum queue, and for how many
// members it has and how many of them are online.
func rabbitQueueScript(queueURL string) (string, error) {
	u, err := url.Parse(queueURL)
	if err != nil {
		return "", err
	}
	q := u.Query()
	name := cmp.Or(q.Get("queue"), "orders") + "." + cmp.Or(q.Get("group"), "workers")
	vhost := cmp.Or(strings.TrimPrefix(u.Path, "/"), "/")
	if strings.ContainsAny(name+vhost, `"\`) {
		return "", fmt.Errorf("queue %q of virtual host %q: its name cannot be asked for", name, vhost)
	}
	return fmt.Sprintf(`
{ok, Q} = rpc:call(N, rabbit_amqqueue, lookup, [{resource, <<"%s">>, queue, <<"%s">>}]),
I = rpc:call(N, rabbit_quorum_queue, info, [Q, [leader, members, online]]),
io:format("leader=~s~nmembers=~b~nonline=~b~n", [proplists:get_value(leader, I),
  length(proplists:get_value(members, I)), length(proplists:get_value(online, I))])`, vhost, name), nil
}
