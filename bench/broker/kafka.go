package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

// kafkaVersion is the one that set-up fetches and the compose file pins.
const kafkaVersion = "4.3.1"

func kafkaKind() kind {
	return kind{
		name: "kafka", setting: "default", ports: 4, patience: 2 * time.Minute,
		url: func(port int) string { return fmt.Sprintf("kafka://127.0.0.1:%d", port) },
		available: func() error {
			if _, err := lookJava(); err != nil {
				return err
			}
			_, err := kafkaJars()
			return err
		},
		once:     makeKafkaArchive,
		plan:     planKafka,
		ready:    kafkaReady,
		version:  kafkaVersionOf,
		settings: kafkaSettings,
	}
}

func lookJava() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		p := filepath.Join(home, "bin", "java")
		if _, err := exec.LookPath(p); err == nil {
			return p, nil
		}
	}
	p, err := exec.LookPath("java")
	if err != nil {
		return "", unavailable("java is not on the PATH; Kafka "+kafkaVersion+" needs Java 17 or later", makeSetup)
	}
	return p, nil
}

// kafkaLibs are the directories that may hold Kafka's jars, the first one with
// some wins.
func kafkaLibs() []string {
	if set := os.Getenv("QUEUELAB_KAFKA_LIBS"); set != "" {
		return []string{set}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil
	}
	return []string{filepath.Join(cache, "queuelab", "kafka-"+kafkaVersion, "libs")}
}

// kafkaJars returns the class path, in an order of its own: a class-data archive
// is valid for one order only.
func kafkaJars() ([]string, error) {
	for _, dir := range kafkaLibs() {
		jars, _ := filepath.Glob(filepath.Join(dir, "*.jar"))
		if slices.ContainsFunc(jars, func(j string) bool { return strings.HasPrefix(filepath.Base(j), "kafka_2.13-") }) {
			slices.Sort(jars)
			return jars, nil
		}
	}
	return nil, unavailable("Kafka's jars are not in "+strings.Join(kafkaLibs(), ", "), makeSetup)
}

func planKafka(l layout) (plan, error) {
	java, err := lookJava()
	if err != nil {
		return plan{}, err
	}
	jars, err := kafkaJars()
	if err != nil {
		return plan{}, err
	}
	return planKafkaWith(l, java, jars, sharedArchive(java, jars))
}

func planKafkaWith(l layout, java string, jars, jvm []string) (plan, error) {
	cluster := kafkaID()

	// Kafka reads one file and knows no include, so that what belongs to this
	// start is appended to a copy.
	//
	// Whoever comes to the listener PROXIED is sent back to the address that it
	// advertises: a proxy's, which leads to the listener.
	own := fmt.Sprintf(`
controller.quorum.voters=1@127.0.0.1:%[2]d
listeners=PLAINTEXT://127.0.0.1:%[1]d,CONTROLLER://127.0.0.1:%[2]d,PROXIED://127.0.0.1:%[3]d
advertised.listeners=PLAINTEXT://127.0.0.1:%[1]d,PROXIED://127.0.0.1:%[4]d
log.dirs=%[5]s
`, l.ports[0], l.ports[1], l.ports[2], l.ports[3], filepath.Join(l.data, "data"))
	properties := filepath.Join(l.dir, "server.properties")
	if err := os.WriteFile(properties, append(bytes.Clone(l.content), own...), 0o644); err != nil {
		return plan{}, err
	}

	run := kafkaCommand(l.dir, java, jars)
	var shared []string // only what reads an archive, not what writes one
	for _, o := range jvm {
		if strings.HasPrefix(o, "-XX:SharedArchiveFile=") {
			shared = append(shared, o)
		}
	}
	return plan{
		identity: cluster,
		proxied:  proxied{listen: l.ports[3], target: l.ports[2]},
		prepare:  []command{run(shared, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", properties)},
		serve:    []command{run(jvm, "kafka.Kafka", properties)},
	}, nil
}

// kafkaCommand makes the commands of a Kafka whose directory is dir.
func kafkaCommand(dir, java string, jars []string) func(jvm []string, main string, args ...string) command {
	return func(jvm []string, main string, args ...string) command {
		argv := []string{java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
			"-XX:-UsePerfData", // its file in the system's temporary directory would stay after a kill
			"-Djava.io.tmpdir=" + dir, "-Djava.awt.headless=true",
			"-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS"}
		argv = append(append(argv, jvm...), "-cp", strings.Join(jars, ":"), main)
		return command{Argv: append(argv, args...), Env: []string{"CLASSPATH=", "JAVA_TOOL_OPTIONS="}}
	}
}

// sharedArchive is the option that reads the class-data archive, where there is
// one.
func sharedArchive(java string, jars []string) []string {
	archive, err := archivePath(java, jars)
	if err != nil {
		return nil
	}
	if _, err := os.Stat(archive); err != nil {
		return nil
	}
	return []string{"-XX:SharedArchiveFile=" + archive}
}

// withKafka lends a client whose connections do not outlive the call.
func withKafka(ctx context.Context, rawURL string, do func(*kafka.Client) error) error {
	u, err := url.Parse(rawURL)
	if err != nil {
		return err
	}
	// A refused connection shall say so, where the library's client would wait.
	var d net.Dialer
	probe, err := d.DialContext(ctx, "tcp", strings.Split(u.Host, ",")[0])
	if err != nil {
		return err
	}
	probe.Close()
	t := &kafka.Transport{Dial: d.DialContext, MetadataTTL: time.Minute}
	defer t.CloseIdleConnections()
	return do(&kafka.Client{Addr: kafka.TCP(strings.Split(u.Host, ",")...), Transport: t})
}

func kafkaReady(ctx context.Context, url, identity string) error {
	return withKafka(ctx, url, func(c *kafka.Client) error {
		m, err := c.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{}})
		switch {
		case err != nil:
			return err
		case identity != "" && m.ClusterID != identity:
			return errStranger
		case len(m.Brokers) == 0 || m.Controller.Host == "":
			return errors.New("it knows no controller yet")
		}
		return nil
	})
}

func kafkaSettings(ctx context.Context, url string) (got map[string]string, err error) {
	err = withKafka(ctx, url, func(c *kafka.Client) error {
		m, err := c.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{}})
		if err != nil {
			return err
		}
		if len(m.Brokers) == 0 {
			return errors.New("it knows no broker")
		}
		r, err := c.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{{
			ResourceType: kafka.ResourceTypeBroker,
			ResourceName: strconv.Itoa(m.Brokers[0].ID),
			ConfigNames: []string{
				"log.flush.interval.messages", "log.flush.interval.ms", "min.insync.replicas", "default.replication.factor",
				"unclean.leader.election.enable", "auto.create.topics.enable", "offsets.topic.replication.factor",
				"group.min.session.timeout.ms", "group.initial.rebalance.delay.ms", "log.retention.ms", "log.retention.hours",
				"broker.session.timeout.ms", "broker.heartbeat.interval.ms",
			},
		}}})
		if err != nil {
			return err
		}
		got = map[string]string{"brokers": strconv.Itoa(len(m.Brokers))}
		for _, res := range r.Resources {
			if res.Error != nil {
				return res.Error
			}
			for _, e := range res.ConfigEntries {
				got[e.ConfigName] = e.ConfigValue
			}
		}
		return nil
	})
	return got, err
}
