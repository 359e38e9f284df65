package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

type probe struct {
	HTTPGet struct{ Path string } `yaml:"httpGet"`
}

// manifest is the part of a Kubernetes object that has to do with our command
// line and our routes. compose/k8s_test.go reads the whole.
type manifest struct {
	Kind string
	Data map[string]string
	Spec struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Args []string
					Env  []struct{ Name string }

					Startup   *probe `yaml:"startupProbe"`
					Liveness  *probe `yaml:"livenessProbe"`
					Readiness *probe `yaml:"readinessProbe"`
				}
			}
		}
	}
}

func readManifests(t *testing.T) (ms []manifest) {
	t.Helper()
	names, err := filepath.Glob("../compose/k8s/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		d := yaml.NewDecoder(strings.NewReader(string(b)))
		for {
			var m manifest
			err := d.Decode(&m)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", n, err)
			}
			ms = append(ms, m)
		}
	}
	return ms
}

// The arguments, the variables and the file of the manifests are read by the
// program itself, which knows what there is.
func TestKubernetesManifestsStartWhatThereIs(t *testing.T) {
	ms := readManifests(t)
	config := ""
	for _, m := range ms {
		if text, ok := m.Data["seckill.yaml"]; ok {
			config = write(t, text)
		}
	}
	if config == "" {
		t.Fatal("got no configuration file")
	}
	sample := map[string]string{"SECKILL_DB": "postgres://u:p@h/x", "SECKILL_REDIS": "redis://h:6379/0", "SECKILL_QUEUE": "redis+streams://h/0?queue=q",
		"SECKILL_TOKEN_KEY": strings.Repeat("k", 32), "SECKILL_OPERATOR_TOKEN": strings.Repeat("o", 16), "SECKILL_INSTANCE": "pod"}
	var roles []string
	probes := map[string]bool{}
	for _, m := range ms {
		for _, c := range m.Spec.Template.Spec.Containers {
			t.Run(strings.Join(c.Args, " "), func(t *testing.T) {
				for _, e := range c.Env {
					v, ok := sample[e.Name]
					if !ok {
						t.Fatalf("got variable %s, which no flag reads", e.Name)
					}
					t.Setenv(e.Name, v)
				}
				args := slices.Clone(c.Args)
				for i, a := range args {
					if strings.HasPrefix(a, "--config=") {
						args[i] = "--config=" + config
					}
				}
				got, command, err := parse(args, io.Discard, io.Discard)
				if err != nil {
					t.Fatal(err)
				}
				roles = append(roles, command+" "+got.Role)
				for _, p := range []*probe{c.Startup, c.Liveness, c.Readiness} {
					if p != nil {
						probes[p.HTTPGet.Path] = true
					}
				}
			})
		}
	}
	slices.Sort(roles)
	if got := strings.Join(roles, ", "); got != "migrate up all, serve web, serve worker" {
		t.Errorf("got commands and roles %q, want the migration, web and worker", got)
	}
	p := start(t, t.TempDir())
	for path := range probes {
		if status, b, err := call(p.base, "GET", path, "", ""); err != nil || status != 200 {
			t.Errorf("probe %s: got %d %s, %v, want 200", path, status, b, err)
		}
	}
	if len(probes) < 2 {
		t.Errorf("got probes %v, want the life of the process and that of its parts", probes)
	}
	p.stop(t)
}

// wantLinkedVersion wants that the image is told its version, as it has no repository to
// take one from.
func wantLinkedVersion(t *testing.T, dockerfile string) {
	t.Helper()
	m := regexp.MustCompile(`-ldflags="([^"]*)"`).FindStringSubmatch(dockerfile)
	if m == nil || !strings.Contains(dockerfile, "ARG VERSION") {
		t.Fatal("got no flags of the linker, or no VERSION in the Dockerfile")
	}
	name := ""
	for _, set := range regexp.MustCompile(`-X main\.(\w+)=\$\{VERSION\}`).FindAllStringSubmatch(m[1], -1) {
		name = set[1]
	}
	source, err := os.ReadFile("main.go")
	if err != nil || name == "" || !regexp.MustCompile(`(?m)^var `+name+` string$`).Match(source) {
		t.Errorf("got %q, %v, want a variable of the program that takes the version", m[1], err)
	}
}

func TestTheImageHasAllThatTheServiceIsBuiltOf(t *testing.T) {
	b, err := os.ReadFile("../compose/seckill/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, want := range []string{"FROM scratch\n", "USER 65532", "CGO_ENABLED=0"} {
		if !strings.Contains(text, want) {
			t.Errorf("got no %q in the Dockerfile", want)
		}
	}
	wantLinkedVersion(t, text)
	copied := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^COPY (\w+) \w+$`).FindAllStringSubmatch(text, -1) {
		copied[m[1]] = true
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	var missing *exec.Error
	if errors.As(err, &missing) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, pkg := range strings.Fields(string(out)) {
		if rest, ok := strings.CutPrefix(pkg, "queuelab/"); ok {
			dir, _, _ := strings.Cut(rest, "/")
			if !copied[dir] {
				t.Errorf("%s is not copied into the image", pkg)
			}
		}
	}
}

func TestWebAndWorkerAreTwoProcesses(t *testing.T) {
	db, args := streams(t)
	web := start(t, t.TempDir(), append(args, "--role", "web")...)
	worker := start(t, t.TempDir(), append(args, "--role", "worker")...)
	d := newDoor(t, web.base, 20)
	d.rush(60)
	wantConfirmed(t, d.results(), 20)
	if status, _, err := call(worker.base, "GET", "/api/vouchers", "", ""); err != nil || status != 404 {
		t.Errorf("got %d, %v from the worker's API, want none", status, err)
	}
	for p, want := range map[*process]bool{web: false, worker: true} {
		_, b, err := call(p.base, "GET", "/metrics", "", "")
		if decided := strings.Contains(string(b), `seckill_orders_total{reason="",status="confirmed"} 20`); err != nil || decided != want {
			t.Errorf("%s: got that it decided the orders: %v, %v, want %v", p.base, decided, err, want)
		}
	}
	worker.stop(t)
	web.stop(t)
	d.audit(db, 20)
}

func TestARoleNeedsWhatIsShared(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--role", "web", "--queue", "redis-streams"}, "--redis"},
		{[]string{"--role", "worker", "--redis", "redis://127.0.0.1:1/0"}, "memory queue"},
		{[]string{"--role", "worker", "--redis", "redis://127.0.0.1:1/0", "--queue", "memory://q"}, "memory queue"},
		{[]string{"--trace-ratio", "2"}, "0 to 1"},
		{[]string{"--trace", "grpc://127.0.0.1:4317"}, "--trace: nothing speaks grpc://"},
		{[]string{"--log-level", "loud"}, "debug"},
	} {
		if got := refusal(t, tc.args...); !strings.Contains(got, tc.want) {
			t.Errorf("%v: got %q, want %q in it", tc.args, got, tc.want)
		}
	}
}
