package compose_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Grafana and Prometheus show what only this machine may see.
func TestTheMetricsContainersListenOnLoopback(t *testing.T) {
	p := load(t, "grafana/compose.yml")
	version := regexp.MustCompile(`:v?\d+\.\d+\.\d+$`)
	for name, s := range p.Services {
		if !version.MatchString(s.Image) {
			t.Errorf("%s: got image %q, want a pinned version", name, s.Image)
		}
		if s.HealthCheck == nil || len(s.Ports) != 0 || s.NetworkMode != "host" {
			t.Errorf("%s: got ports %v and network %q, want a health check and the host's network", name, s.Ports, s.NetworkMode)
		}
		for _, v := range s.Volumes {
			if v.Type != "bind" {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly {
				t.Errorf("%s mounts %s: %v, want what is there, read only", name, v.Source, err)
			}
		}
	}
	addr := p.Services["grafana"].Environment["GF_SERVER_HTTP_ADDR"]
	if addr == nil || *addr != "127.0.0.1" || !strings.Contains(strings.Join(p.Services["prometheus"].Command, " "), "--web.listen-address=127.0.0.1:") {
		t.Errorf("got Grafana on %v and Prometheus as %v, want both on loopback", addr, p.Services["prometheus"].Command)
	}
}

func TestPrometheusAsksSeckillAndReadsTheAlerts(t *testing.T) {
	var c struct {
		Global        map[string]string
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			JobName       string                       `yaml:"job_name"`
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	strictly(t, "prometheus/prometheus.yml", &c)
	// The alerts and the dashboard know the job by its name.
	if len(c.ScrapeConfigs) != 1 || c.ScrapeConfigs[0].JobName != "seckill" || c.ScrapeConfigs[0].StaticConfigs[0].Targets[0] != "127.0.0.1:8080" {
		t.Errorf("got %+v, want the job seckill at its default address", c.ScrapeConfigs)
	}
	for _, f := range c.RuleFiles {
		if _, err := os.Stat("prometheus/" + f); err != nil {
			t.Error(err)
		}
	}
	var sources struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name, UID, Type, Access, URL string
			IsDefault                    bool           `yaml:"isDefault"`
			JSONData                     map[string]any `yaml:"jsonData"`
		}
	}
	strictly(t, "grafana/provisioning/datasources/prometheus.yml", &sources)
	if len(sources.Datasources) != 1 || sources.Datasources[0].Type != "prometheus" || !sources.Datasources[0].IsDefault {
		t.Errorf("got %+v, want Prometheus", sources.Datasources)
	}
	var boards struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Type     string
			AllowUIUpdates bool `yaml:"allowUiUpdates"`
			Options        struct{ Path string }
		}
	}
	strictly(t, "grafana/provisioning/dashboards/seckill.yml", &boards)
	target := ""
	for _, v := range load(t, "grafana/compose.yml").Services["grafana"].Volumes {
		if strings.HasSuffix(v.Source, "/dashboard.json") {
			target = v.Target
		}
	}
	if len(boards.Providers) != 1 || !strings.HasPrefix(target, boards.Providers[0].Options.Path+"/") {
		t.Errorf("got %+v and the dashboard at %q, want it where Grafana looks", boards.Providers, target)
	}
}

func strictly(t *testing.T, path string, into any) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
