package broker

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

// clusterNodes is how many nodes the clusters of Kafka and RabbitMQ have.
const clusterNodes = 3

func kafkaClusterKind() kind {
	k := kafkaKind()
	k.name, k.conf, k.setting, k.patience = "kafka-3", "kafka", "cluster", 3*time.Minute
	k.url = func(port int) string { return "kafka://" + local(port, port+1, port+2) }
	k.ready = func(ctx context.Context, url, identity string) error {
		return anyNode(url, func(one string) error { return kafkaReady(ctx, one, identity) })
	}
	k.settings = func(ctx context.Context, url string) (m map[string]string, err error) {
		err = anyNode(url, func(one string) error { m, err = kafkaSettings(ctx, one); return err })
		return m, err
	}
	k.assemble = assembleKafka
	return k
}

func assembleKafka(ctx context.Context, k kind, setting string) (host, error) {
	name, content, err := k.settingsFile(setting)
	if err != nil {
		return nil, err
	}
	node := kafkaKind()
	if err := node.available(); err != nil {
		return nil, err
	}
	if node.once != nil {
		node.once(ctx, node)
	}
	ports, err := freePorts(2 * clusterNodes)
	if err != nil {
		return nil, err
	}
	clients, controllers := ports[:clusterNodes], ports[clusterNodes:]
	c := &cluster{url: "kafka://" + local(clients...)}
	id := kafkaID()
	var voters []string
	for i, p := range controllers {
		voters = append(voters, fmt.Sprintf("%d@%s", i+1, local(p)))
	}
	members, err := build(clusterNodes, func(i int) (*member, error) {
		own := []int{clients[i], controllers[i]}
		return newMember(ctx, node, place{conf: name, content: content, ports: own, alone: k.network}, func(l layout) (plan, error) {
			return planKafkaNode(l, i+1, id, strings.Join(voters, ","))
		})
	})
	if err != nil {
		return nil, err
	}
	for i, m := range members {
		c.nodes = append(c.nodes, single(node, node.url(clients[i]), m))
	}
	c.host = members[0]
	if k.network {
		served := make([][]int, clusterNodes)
		for i := range served {
			served[i] = []int{clients[i], controllers[i]}
		}
		if c.net, err = connect(members, served, 1); err != nil {
			return nil, errors.Join(err, c.stop())
		}
	}
	c.formed = func(ctx context.Context) error {
		for i, n := range c.nodes {
			m, err := kafkaMetadata(ctx, n.url, "")
			if err != nil {
				return err
			}
			if len(m.Brokers) != clusterNodes {
				return fmt.Errorf("node %d knows %d of %d brokers", i+1, len(m.Brokers), clusterNodes)
			}
		}
		return nil
	}
	c.leads, c.whole = c.kafkaLeader, c.kafkaWhole
	return c, nil
}

// kafkaID is a new cluster's id: 16 bytes, in letters that are no option.
func kafkaID() string {
	var b [16]byte
	rand.Read(b[:])
	id := base64.RawURLEncoding.EncodeToString(b[:])
	if id[0] == '-' {
		id = "A" + id[1:]
	}
	return id
}

// planKafkaNode is the plan of one of several nodes: of one id, and that know
// each other's controllers.
func planKafkaNode(l layout, node int, id, voters string) (plan, error) {
	java, err := lookJava()
	if err != nil {
		return plan{}, err
	}
	jars, err := kafkaJars()
	if err != nil {
		return plan{}, err
	}
	own := fmt.Sprintf(`
node.id=%d
controller.quorum.voters=%s
listeners=PLAINTEXT://%[3]s,CONTROLLER://%[4]s
advertised.listeners=PLAINTEXT://%[3]s
log.dirs=%[5]s
`, node, voters, local(l.ports[0]), local(l.ports[1]), filepath.Join(l.data, "data"))
	properties := filepath.Join(l.dir, "server.properties")
	if err := os.WriteFile(properties, append(bytes.Clone(l.content), own...), 0o644); err != nil {
		return plan{}, err
	}
	run := kafkaCommand(l.dir, java, jars)
	shared := sharedArchive(java, jars)
	return plan{
		identity: id,
		prepare:  []command{run(shared, "kafka.tools.StorageTool", "format", "-t", id, "-c", properties)},
		serve:    []command{run(shared, "kafka.Kafka", properties)},
	}, nil
}

func kafkaMetadata(ctx context.Context, url, topic string) (m *kafka.MetadataResponse, err error) {
	topics := []string{}
	if topic != "" {
		topics = append(topics, topic)
	}
	err = withKafka(ctx, url, func(c *kafka.Client) (err error) {
		m, err = c.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
		return err
	})
	return m, err
}

// kafkaTopic asks the nodes that run, one after the other, about the partitions
// of a queue's topic. Each that answers is given to see.
func (c *cluster) kafkaTopic(ctx context.Context, queueURL string, see func(node int, t kafka.Topic)) error {
	u, err := url.Parse(queueURL)
	if err != nil {
		return err
	}
	topic := strings.TrimPrefix(u.Path, "/")
	last := errors.New("no node runs")
	seen := false
	for i, n := range c.nodes {
		if m, ok := n.host.(*member); ok && !m.alive() {
			continue
		}
		one, cancel := context.WithTimeout(ctx, 2*time.Second) // a node that is cut off or stopped says nothing
		m, err := kafkaMetadata(one, n.url, topic)
		cancel()
		if err == nil && len(m.Topics) == 1 {
			err = m.Topics[0].Error
		}
		if err != nil || len(m.Topics) != 1 {
			last = cmp.Or(err, errors.New("it does not know the topic "+topic))
			continue
		}
		seen = true
		see(i, m.Topics[0])
	}
	if seen {
		return nil
	}
	return last
}

// kafkaLeader goes by what most nodes say: one that is cut off does not know that
// it was replaced.
func (c *cluster) kafkaLeader(ctx context.Context, queueURL string) (int, error) {
	leads := make([]int, clusterNodes+1)
	err := c.kafkaTopic(ctx, queueURL, func(_ int, t kafka.Topic) {
		for _, p := range t.Partitions {
			if p.Error == nil && p.Leader.ID >= 1 && p.Leader.ID <= clusterNodes {
				leads[p.Leader.ID]++
			}
		}
	})
	if err != nil {
		return 0, err
	}
	most := 0
	for id, n := range leads {
		if n > leads[most] {
			most = id
		}
	}
	if most == 0 {
		return 0, errors.New("no partition has a leader")
	}
	return most - 1, nil
}

// kafkaWhole asks all nodes, since one may still tell what was true before.
func (c *cluster) kafkaWhole(ctx context.Context, queueURL string) error {
	asked := 0
	leaders := map[int]int{}
	var missing error
	err := c.kafkaTopic(ctx, queueURL, func(node int, t kafka.Topic) {
		asked++
		for _, p := range t.Partitions {
			if before, ok := leaders[p.ID]; ok && before != p.Leader.ID {
				missing = fmt.Errorf("the nodes do not agree on who leads partition %d", p.ID)
			}
			leaders[p.ID] = p.Leader.ID
			if len(p.Isr) != clusterNodes {
				missing = fmt.Errorf("partition %d has %d of %d replicas in sync, says node %d", p.ID, len(p.Isr), clusterNodes, node+1)
			}
		}
	})
	if err == nil && missing == nil && asked != clusterNodes {
		missing = fmt.Errorf("%d of %d nodes answered", asked, clusterNodes)
	}
	return cmp.Or(err, missing)
}
