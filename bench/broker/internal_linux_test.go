package broker

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"queuelab/compose"
)

// What the native broker reads is the file that the container mounts, byte for
// byte; places come beside it.
func TestNativeBrokersReadTheVerySettingsFiles(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			if err := k.available(); err != nil {
				if os.Getenv("CI") == "true" {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			name, content, err := k.settingsFile("")
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			conf := filepath.Join(dir, filepath.Base(name))
			if err := os.WriteFile(conf, content, 0o644); err != nil {
				t.Fatal(err)
			}
			p, err := k.plan(layout{dir: dir, data: dir, conf: conf, content: content, ports: []int{1, 2, 3, 4}[:k.ports]})
			if err != nil {
				t.Fatal(err)
			}
			broker := p.serve[len(p.serve)-1]
			read := ""
			switch k.name {
			case "redis":
				read = broker.Argv[1]
			case "postgres":
				for _, a := range broker.Argv {
					if f, ok := strings.CutPrefix(a, "config_file="); ok {
						read = f
					}
				}
			case "rabbitmq":
				for _, e := range broker.Env {
					if f, ok := strings.CutPrefix(e, "RABBITMQ_CONFIG_FILE="); ok {
						read = f + ".conf"
					}
				}
			case "nats":
				read = broker.Argv[slices.Index(broker.Argv, "-c")+1]
			case "kafka":
				read = broker.Argv[len(broker.Argv)-1]
			}
			got, err := os.ReadFile(read)
			if err != nil {
				t.Fatal(err)
			}
			own, found := bytes.CutPrefix(got, content)
			if !found {
				t.Errorf("%s begins otherwise than the settings file %s", read, name)
			}
			for _, line := range strings.Fields(string(own)) {
				key, _, _ := strings.Cut(line, "=")
				if !slices.Contains([]string{"controller.quorum.voters", "listeners", "advertised.listeners", "log.dirs"}, key) {
					t.Errorf("%s says %s beside the settings file", read, line)
				}
			}
		})
	}
}

func TestKafkaIsTheVersionThatSetUpFetches(t *testing.T) {
	file, err := compose.Files.ReadFile("kafka.yml")
	if err != nil {
		t.Fatal(err)
	}
	if want := "image: apache/kafka:" + kafkaVersion + "\n"; !strings.Contains(string(file), want) {
		t.Errorf("kafka.yml does not have %q", want)
	}
}

func TestNATSInAContainerIsTheVersionThatIsPartOfThisProgram(t *testing.T) {
	file, err := compose.Files.ReadFile("nats.yml")
	if err != nil {
		t.Fatal(err)
	}
	if want := "image: nats:" + server.VERSION + "-alpine\n"; !strings.Contains(string(file), want) {
		t.Errorf("nats.yml does not have %q", want)
	}
}

// Kernels may lack the file that lists children: the long way finds the same.
func TestChildrenAreFoundEitherWay(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	for name, got := range map[string][]int{"children": children(), "parents": childrenOf(processes(), os.Getpid())} {
		if !slices.Contains(got, cmd.Process.Pid) {
			t.Errorf("by %s: got %v, want %d among them", name, got, cmd.Process.Pid)
		}
	}
}

func TestPortsAreDifferentFreeAndOutOfTheKernelsWay(t *testing.T) {
	ports, err := freePorts(50)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ports)
	if got := len(slices.Compact(slices.Clone(ports))); got != 50 {
		t.Errorf("got %d different ports, want 50", got)
	}
	if ports[0] < 1024 || ports[49] > 32767 {
		t.Errorf("got ports from %d to %d, want them between 1024 and 32767", ports[0], ports[49])
	}
}
