package compose_test

import (
	"context"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"

	"queuelab/compose"
)

// load reads a compose file as Docker Compose does, which refuses what the
// specification does not know.
func load(t *testing.T, file string, env ...string) *types.Project {
	t.Helper()
	o, err := cli.NewProjectOptions([]string{file}, cli.WithName("lab"), cli.WithEnv(env))
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// pinned is the end of an image's name that always is the same image.
var pinned = regexp.MustCompile(`:\d+\.\d+(\.\d+)?(-alpine)?$`)

var brokers = []string{"kafka", "nats", "postgres", "rabbitmq", "redis"}

func TestComposeFilesAreSafeAndRepeatable(t *testing.T) {
	files, err := filepath.Glob("*.yml")
	if err != nil || len(files) != len(brokers)+1+len(clusters()) {
		t.Fatalf("got files %v, %v, want one for each of %v, of %v, and all.yml", files, err, brokers, clusters())
	}
	for _, file := range files {
		if _, ok := clusters()[strings.TrimSuffix(file, ".yml")]; ok {
			continue // they have a test of their own
		}
		t.Run(file, func(t *testing.T) {
			p := load(t, file)
			want := []string{strings.TrimSuffix(file, ".yml")}
			if file == "all.yml" {
				want = brokers
			}
			if diff := cmp.Diff(want, p.ServiceNames()); diff != "" {
				t.Fatalf("services (-want +got):\n%s", diff)
			}
			for name, s := range p.Services {
				if !pinned.MatchString(s.Image) {
					t.Errorf("%s: got image %q, want a pinned version", name, s.Image)
				}
				if s.HealthCheck == nil || len(s.HealthCheck.Test) == 0 || s.HealthCheck.Disable {
					t.Errorf("%s has no health check", name)
				}
				if s.Restart != "" && s.Restart != "no" {
					t.Errorf("%s: got restart policy %q, want none: it would race a fault's restart", name, s.Restart)
				}
				want := 1
				if name == "kafka" {
					want = 2 // one for clients that come through a proxy
				}
				if len(s.Ports) != want {
					t.Errorf("%s: got %d published ports, want %d", name, len(s.Ports), want)
				}
				for _, port := range s.Ports {
					if ip := net.ParseIP(port.HostIP); ip == nil || !ip.IsLoopback() {
						t.Errorf("%s publishes port %s on %q, want loopback only", name, port.Published, port.HostIP)
					}
				}
				volumes := 0
				for _, v := range s.Volumes {
					if v.Type == types.VolumeTypeVolume {
						volumes++
					}
				}
				if volumes != 1 {
					t.Errorf("%s: got %d named volumes, want 1 that outlives a kill", name, volumes)
				}
			}
		})
	}
}

func TestContainersMountTheVerySettingsFiles(t *testing.T) {
	for _, broker := range brokers {
		entries, err := fs.ReadDir(compose.Files, broker)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, e := range entries {
			setting := strings.TrimSuffix(e.Name(), path.Ext(e.Name()))
			all = append(all, setting)
			t.Run(broker+"/"+setting, func(t *testing.T) {
				name, native, err := compose.SettingsFile(broker, setting)
				if err != nil {
					t.Fatal(err)
				}
				p := load(t, broker+".yml", "QUEUELAB_"+strings.ToUpper(broker)+"_SETTING="+setting)
				var mounted []string
				for _, v := range p.Services[broker].Volumes {
					if v.Type != types.VolumeTypeBind {
						continue
					}
					here, err := filepath.Abs(filepath.FromSlash(name))
					if err != nil {
						t.Fatal(err)
					}
					if v.Source != here || !v.ReadOnly {
						t.Errorf("got mount of %s, read only %v, want %s, read only", v.Source, v.ReadOnly, here)
					}
					content, err := os.ReadFile(v.Source)
					if err != nil {
						t.Fatal(err)
					}
					if string(content) != string(native) {
						t.Errorf("%s differs from what the native broker reads", v.Source)
					}
					mounted = append(mounted, v.Target)
				}
				if len(mounted) != 1 {
					t.Errorf("got mounts %v, want the settings file alone", mounted)
				}
			})
		}
		if len(all) == 0 {
			t.Errorf("%s has no settings", broker)
		}
	}
}

func TestUnnamedSettingIsOneThatExists(t *testing.T) {
	p := load(t, "all.yml")
	for _, broker := range brokers {
		for _, v := range p.Services[broker].Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("%s mounts what is not there: %v", broker, err)
			}
		}
	}
}

// The containers' own arguments and variables may say where things are, and
// nothing of what a setting says.
func TestSettingsAreInTheFilesOnly(t *testing.T) {
	place := map[string][]string{
		"redis":    {"--dir", "--bind", "--protected-mode"},
		"postgres": {"config_file", "listen_addresses", "POSTGRES_USER", "POSTGRES_DB", "POSTGRES_HOST_AUTH_METHOD", "POSTGRES_INITDB_ARGS"},
		"rabbitmq": nil,
		"nats":     {"--store_dir", "--http_port"},
		"kafka":    {"CLUSTER_ID", "KAFKA_CONTROLLER_QUORUM_VOTERS", "KAFKA_LISTENERS", "KAFKA_ADVERTISED_LISTENERS", "KAFKA_LOG_DIRS", "KAFKA_HEAP_OPTS"},
	}
	p := load(t, "all.yml")
	for _, broker := range brokers {
		var got []string
		for _, arg := range p.Services[broker].Command {
			if name, _, ok := strings.Cut(arg, "="); ok || strings.HasPrefix(arg, "--") {
				got = append(got, name)
			}
		}
		for name := range p.Services[broker].Environment {
			got = append(got, name)
		}
		for _, name := range got {
			if !slices.Contains(place[broker], name) {
				t.Errorf("%s gets %s beside its settings file", broker, name)
			}
		}
	}
}

func TestUnknownSettingNamesTheKnownOnes(t *testing.T) {
	_, _, err := compose.SettingsFile("redis", "aof")
	if err == nil || !strings.Contains(err.Error(), "aof-always, aof-everysec, aof-no, cluster, no-persistence, rdb") {
		t.Errorf("got %v, want an error with the six settings", err)
	}
	if _, _, err := compose.SettingsFile("redis/..", "default"); err == nil {
		t.Error("got nil for a broker that does not exist, want an error")
	}
}

// What set-up fetches, what the native start asks for and what the compose file
// pins are one version.
func TestSetUpFetchesThePinnedKafka(t *testing.T) {
	script, err := compose.Files.ReadFile("setup.sh")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^kafka_version=(.+)$`).FindSubmatch(script)
	if m == nil {
		t.Fatal("setup.sh sets no kafka_version")
	}
	if got, want := load(t, "kafka.yml").Services["kafka"].Image, "apache/kafka:"+string(m[1]); got != want {
		t.Errorf("got image %s, want %s as in setup.sh", got, want)
	}
}
