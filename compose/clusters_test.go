package compose_test

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"

	"queuelab/bench/broker"
	"queuelab/compose"
)

// clusterFile is what a cluster's compose file must be made of.
type clusterFile struct {
	single string            // whose image and folder of settings it has
	nodes  int               // as many as the native cluster's
	others map[string]string // what else runs: its settings file
	own    []string          // variables and lines that say where a node is, and nothing of a setting
	choice string            // the variable that names the nodes' settings file
}

func clusters() map[string]clusterFile {
	watched := map[string]string{}
	for i := range 3 {
		watched[fmt.Sprintf("sentinel-%d", i+1)] = "redis/sentinel.conf"
	}
	return map[string]clusterFile{
		"kafka-3": {"kafka", 3, nil, []string{
			"CLUSTER_ID", "KAFKA_NODE_ID", "KAFKA_CONTROLLER_QUORUM_VOTERS", "KAFKA_LISTENERS", "KAFKA_ADVERTISED_LISTENERS", "KAFKA_LOG_DIRS", "KAFKA_HEAP_OPTS",
		}, "QUEUELAB_KAFKA_3_SETTING"},
		"rabbitmq-3": {"rabbitmq", 3, nil, []string{
			"RABBITMQ_NODENAME", "RABBITMQ_NODE_PORT", "RABBITMQ_DIST_PORT", "RABBITMQ_ERLANG_COOKIE", "cluster_formation.classic_config.nodes",
		}, "QUEUELAB_RABBITMQ_3_SETTING"},
		"redis-sentinel": {"redis", 2, watched, []string{
			"PORT", "port", "bind", "protected-mode", "dir", "replicaof", "repl-diskless-sync-delay", "sentinel monitor",
		}, "QUEUELAB_REDIS_SENTINEL_SETTING"},
	}
}

func TestEachClusterHasItsFile(t *testing.T) {
	for _, kind := range broker.Clusters() {
		if _, ok := clusters()[kind]; !ok {
			t.Errorf("no compose file for %s", kind)
		}
	}
}

func TestClustersAreSafeAndOfTheNativeOnesSettings(t *testing.T) {
	for kind, want := range clusters() {
		t.Run(kind, func(t *testing.T) {
			entries, err := fs.ReadDir(compose.Files, want.single)
			if err != nil {
				t.Fatal(err)
			}
			image := load(t, want.single+".yml").Services[want.single].Image
			for _, e := range entries {
				setting := strings.TrimSuffix(e.Name(), path.Ext(e.Name()))
				p := load(t, kind+".yml", want.choice+"="+setting)
				nodes := 0
				for name, s := range p.Services {
					if s.Image != image || !pinned.MatchString(s.Image) {
						t.Errorf("%s: got image %q, want %q as with one node", name, s.Image, image)
					}
					if s.Restart != "" && s.Restart != "no" {
						t.Errorf("%s: got restart policy %q, want none: it would race a fault's restart", name, s.Restart)
					}
					if name == "place" { // what holds the network
						checkPlace(t, s)
						continue
					}
					file, other := want.others[name]
					if !other {
						nodes++
						file = want.single + "/" + e.Name()
					}
					checkNode(t, name, s, file)
				}
				if nodes != want.nodes || len(p.Services) != want.nodes+len(want.others)+1 {
					t.Errorf("got services %v, want %d nodes, %d others and the place", p.ServiceNames(), want.nodes, len(want.others))
				}
			}
		})
	}
}

func checkPlace(t *testing.T, s types.ServiceConfig) {
	t.Helper()
	if len(s.Ports) == 0 || len(s.Volumes) > 0 {
		t.Errorf("place: got %d ports and %d volumes, want the ports of all nodes, and no data", len(s.Ports), len(s.Volumes))
	}
	for _, port := range s.Ports {
		if ip := net.ParseIP(port.HostIP); ip == nil || !ip.IsLoopback() || port.Published != fmt.Sprint(port.Target) {
			t.Errorf("place publishes %d as %s:%s, want loopback, and the same number: nodes tell it to clients", port.Target, port.HostIP, port.Published)
		}
	}
}

func checkNode(t *testing.T, name string, s types.ServiceConfig, file string) {
	t.Helper()
	if s.NetworkMode != "service:place" || len(s.Ports) > 0 {
		t.Errorf("%s: got network %q and %d ports, want those of the place", name, s.NetworkMode, len(s.Ports))
	}
	if s.HealthCheck == nil || len(s.HealthCheck.Test) == 0 || s.HealthCheck.Disable {
		t.Errorf("%s has no health check", name)
	}
	volumes, mounted := 0, []string{}
	for _, v := range s.Volumes {
		if v.Type == types.VolumeTypeVolume {
			volumes++
			continue
		}
		mounted = append(mounted, v.Source)
		if !v.ReadOnly {
			t.Errorf("%s can write to %s", name, v.Source)
		}
	}
	here, err := filepath.Abs(filepath.FromSlash(file))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{here}, mounted); diff != "" || volumes != 1 {
		t.Errorf("%s: got %d named volumes, want 1, and mounts (-want +got):\n%s", name, volumes, diff)
	}
	native, err := compose.Files.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(here); err != nil || string(content) != string(native) {
		t.Errorf("%s differs from what the native node reads, or is not there: %v", here, err)
	}
}

// What the compose files say beside the settings files is where a node is.
func TestClustersSaySettingsInTheFilesOnly(t *testing.T) {
	written := regexp.MustCompile(`printf '([^']*)'`)
	digits := regexp.MustCompile(`\.\d+$`)
	for kind, want := range clusters() {
		p := load(t, kind+".yml")
		var said []string
		for _, s := range p.Services {
			for name := range s.Environment {
				said = append(said, name)
			}
			for _, m := range written.FindAllStringSubmatch(strings.Join(s.Command, "\n"), -1) {
				said = append(said, strings.Split(m[1], `\n`)...)
			}
		}
		for _, c := range p.Configs {
			for line := range strings.Lines(c.Content) {
				name, _, _ := strings.Cut(line, " = ")
				said = append(said, digits.ReplaceAllString(name, ""))
			}
		}
		for _, line := range said {
			if line != "" && !slices.ContainsFunc(want.own, func(o string) bool { return line == o || strings.HasPrefix(line, o+" ") }) {
				t.Errorf("%s says %q beside its settings files", kind, line)
			}
		}
		if len(said) == 0 {
			t.Errorf("%s says nothing of where its nodes are", kind)
		}
	}
}

// Without a choice a cluster is the one that starts natively.
func TestAClusterUnaskedIsTheNativeOne(t *testing.T) {
	for kind, file := range map[string]string{"kafka-3": "cluster.properties", "rabbitmq-3": "cluster.conf", "redis-sentinel": "aof-everysec.conf"} {
		for _, v := range load(t, kind+".yml").Services["node-1"].Volumes {
			if v.Type == types.VolumeTypeBind && filepath.Base(v.Source) != file {
				t.Errorf("%s: got %s, want %s", kind, v.Source, file)
			}
		}
	}
}
