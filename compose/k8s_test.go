package compose_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// manifests is what the files in k8s ask a cluster for.
type manifests struct {
	deployments []*appsv1.Deployment
	services    []*corev1.Service
	configs     []*corev1.ConfigMap
	scalers     []*autoscalingv2.HorizontalPodAutoscaler
	budgets     []*policyv1.PodDisruptionBudget
	jobs        []*batchv1.Job
	wrong       []string
}

// decode reads a file as an API server does that knows no other fields than its
// own.
func (m *manifests) decode(t *testing.T, text string) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, doc := range strings.Split(text, "\n---\n") {
		o, kind, err := decoder.Decode([]byte(doc), nil, nil)
		if err != nil {
			m.wrong = append(m.wrong, err.Error())
			continue
		}
		switch o := o.(type) {
		case *appsv1.Deployment:
			m.deployments = append(m.deployments, o)
		case *corev1.Service:
			m.services = append(m.services, o)
		case *corev1.ConfigMap:
			m.configs = append(m.configs, o)
		case *autoscalingv2.HorizontalPodAutoscaler:
			m.scalers = append(m.scalers, o)
		case *policyv1.PodDisruptionBudget:
			m.budgets = append(m.budgets, o)
		case *batchv1.Job:
			m.jobs = append(m.jobs, o)
		default:
			m.wrong = append(m.wrong, fmt.Sprintf("%v is nothing that is checked here", kind))
		}
	}
}

func (m *manifests) problem(format string, args ...any) {
	m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
}

func (m *manifests) named(name string) {
	for _, why := range validation.IsDNS1123Label(name) {
		m.problem("the name %q: %s", name, why)
	}
}

// check finds what an API server takes and a cluster does not work with.
func (m *manifests) check() []string {
	for _, d := range m.deployments {
		m.named(d.Name)
		s, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if err != nil || s.Empty() || !s.Matches(labels.Set(d.Spec.Template.Labels)) {
			m.problem("%s does not select its own pods", d.Name)
		}
		m.pod(d.Name, d.Spec.Template.Spec, true)
		if port := d.Spec.Template.Annotations["prometheus.io/port"]; !hasNamed(d.Spec.Template.Spec, "ops", port) {
			m.problem("%s has its metrics at port %q, want its port ops", d.Name, port)
		}
		if !slices.ContainsFunc(m.budgets, func(b *policyv1.PodDisruptionBudget) bool { return m.selects(b.Spec.Selector, d) }) {
			m.problem("%s has no disruption budget", d.Name)
		}
		if !slices.ContainsFunc(m.scalers, func(h *autoscalingv2.HorizontalPodAutoscaler) bool { return h.Spec.ScaleTargetRef.Name == d.Name }) {
			m.problem("%s has no autoscaler", d.Name)
		}
		if d.Spec.Replicas != nil {
			m.problem("%s says how many it is, and so does its autoscaler", d.Name)
		}
	}
	for _, s := range m.services {
		m.named(s.Name)
		m.service(s)
	}
	for _, h := range m.scalers {
		if !slices.ContainsFunc(m.deployments, func(d *appsv1.Deployment) bool { return d.Name == h.Spec.ScaleTargetRef.Name }) {
			m.problem("%s scales %s, which is not there", h.Name, h.Spec.ScaleTargetRef.Name)
		}
		if h.Spec.MinReplicas == nil || *h.Spec.MinReplicas < 2 || h.Spec.MaxReplicas < *h.Spec.MinReplicas || len(h.Spec.Metrics) == 0 {
			m.problem("%s does not keep two, or has no metric", h.Name)
		}
	}
	for _, b := range m.budgets {
		if b.Spec.MaxUnavailable == nil || !slices.ContainsFunc(m.deployments, func(d *appsv1.Deployment) bool { return m.selects(b.Spec.Selector, d) }) {
			m.problem("%s protects nothing", b.Name)
		}
	}
	for _, j := range m.jobs {
		m.pod(j.GenerateName, j.Spec.Template.Spec, false)
	}
	return m.wrong
}

func (m *manifests) selects(s *metav1.LabelSelector, d *appsv1.Deployment) bool {
	got, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && !got.Empty() && got.Matches(labels.Set(d.Spec.Template.Labels))
}

func (m *manifests) service(s *corev1.Service) {
	found := 0
	for _, d := range m.deployments {
		if len(s.Spec.Selector) == 0 || !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(d.Spec.Template.Labels)) {
			continue
		}
		found++
		for _, p := range s.Spec.Ports {
			if p.TargetPort.StrVal == "ops" || p.TargetPort.IntVal == 9091 {
				m.problem("service %s leads to the metrics", s.Name)
			}
			if !hasPort(d.Spec.Template.Spec, p.TargetPort) {
				m.problem("service %s sends to port %s, which %s does not have", s.Name, p.TargetPort.String(), d.Name)
			}
		}
	}
	if found != 1 {
		m.problem("service %s selects %d deployments, want one", s.Name, found)
	}
}

func hasPort(p corev1.PodSpec, want intstr.IntOrString) bool {
	for _, c := range p.Containers {
		for _, port := range c.Ports {
			if want.StrVal != "" && port.Name == want.StrVal || want.StrVal == "" && port.ContainerPort == want.IntVal {
				return true
			}
		}
	}
	return false
}

func hasNamed(p corev1.PodSpec, name, number string) bool {
	return slices.ContainsFunc(p.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool {
			return port.Name == name && fmt.Sprint(port.ContainerPort) == number
		})
	})
}

func (m *manifests) pod(owner string, p corev1.PodSpec, serves bool) {
	sec := p.SecurityContext
	if sec == nil || sec.RunAsNonRoot == nil || !*sec.RunAsNonRoot || sec.RunAsUser == nil || *sec.RunAsUser == 0 || sec.SeccompProfile == nil {
		m.problem("%s may run as root, or with every system call", owner)
	}
	if p.EnableServiceLinks == nil || *p.EnableServiceLinks {
		m.problem("%s gets a variable for each service of its namespace", owner)
	}
	if p.AutomountServiceAccountToken == nil || *p.AutomountServiceAccountToken {
		m.problem("%s gets a token of the cluster's API", owner)
	}
	for _, c := range p.Containers {
		m.container(owner, c)
		if !serves {
			continue
		}
		for what, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
			if probe == nil || probe.HTTPGet == nil || !hasPort(p, probe.HTTPGet.Port) {
				m.problem("%s has no %s probe, or one of a port that is not there", owner, what)
			}
		}
		for _, v := range c.VolumeMounts {
			if !slices.ContainsFunc(p.Volumes, func(o corev1.Volume) bool { return o.Name == v.Name && m.hasConfig(o) }) {
				m.problem("%s mounts %s, which is not there", owner, v.Name)
			}
		}
	}
}

func (m *manifests) hasConfig(v corev1.Volume) bool {
	return v.ConfigMap != nil && slices.ContainsFunc(m.configs, func(c *corev1.ConfigMap) bool { return c.Name == v.ConfigMap.Name })
}

func (m *manifests) container(owner string, c corev1.Container) {
	m.named(c.Name)
	s := c.SecurityContext
	if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
		s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL") {
		m.problem("%s may write to its image, or become more than it is", owner)
	}
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
		m.problem("%s does not say what it needs", owner)
	}
	if tag := c.Image[strings.LastIndex(c.Image, ":")+1:]; tag == "latest" || tag == c.Image || c.ImagePullPolicy == "" {
		m.problem("%s runs image %q, want a version and a pull policy", owner, c.Image)
	}
	for _, p := range c.Ports {
		if why := validation.IsValidPortNum(int(p.ContainerPort)); len(why) > 0 {
			m.problem("%s: port %d: %v", owner, p.ContainerPort, why)
		}
		for _, why := range validation.IsValidPortName(p.Name) {
			m.problem("%s: port %q: %s", owner, p.Name, why)
		}
	}
	for _, e := range c.Env {
		if secret := strings.HasSuffix(e.Name, "_DB") || strings.HasSuffix(e.Name, "_REDIS") || strings.HasSuffix(e.Name, "_QUEUE") ||
			strings.Contains(e.Name, "TOKEN") || strings.Contains(e.Name, "KEY"); secret && (e.ValueFrom == nil || e.ValueFrom.SecretKeyRef == nil) {
			m.problem("%s has %s in the manifest, want a reference to a secret", owner, e.Name)
		}
	}
}

func k8sFiles(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("k8s/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("got manifests %v, %v, want some", names, err)
	}
	files := map[string]string{}
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		files[n] = string(b)
	}
	return files
}

func TestKubernetesManifestsAreWhatAClusterCanRun(t *testing.T) {
	var m manifests
	for name, text := range k8sFiles(t) {
		m.decode(t, text)
		for _, word := range []string{"password", "guest:guest"} {
			if strings.Contains(text, word) {
				t.Errorf("%s has %q in it", name, word)
			}
		}
	}
	for _, p := range m.check() {
		t.Error(p)
	}
	if len(m.deployments) != 2 || len(m.services) != 1 || len(m.jobs) != 1 || len(m.configs) != 1 {
		t.Errorf("got %d deployments, %d services, %d jobs, %d configurations, want 2, 1, 1, 1", len(m.deployments), len(m.services), len(m.jobs), len(m.configs))
	}
}

// A check that finds nothing wrong is worth what it finds in wrong ones.
func TestAWrongManifestIsFound(t *testing.T) {
	for _, tc := range []struct{ name, old, wrong, want string }{
		{"an unknown field", "terminationGracePeriodSeconds:", "terminationGracePeriodSecond:", "unknown field"},
		{"a quantity that is none", "memory: 512Mi", "memory: 512Mib", "quantit"},
		{"a field twice", "revisionHistoryLimit: 3", "revisionHistoryLimit: 3\n  revisionHistoryLimit: 4", "already set"},
		{"a selector of others", "selector:\n    matchLabels: {app.kubernetes.io/name: seckill,", "selector:\n    matchLabels: {app.kubernetes.io/name: seckil,", "does not select"},
		{"a service of nobody", "selector: {app.kubernetes.io/name: seckill,", "selector: {app.kubernetes.io/name: shop,", "selects 0"},
		{"a port that is not there", "targetPort: http", "targetPort: web", "sends to port"},
		{"a probe of another port", "httpGet: {path: /readyz, port: http}", "httpGet: {path: /readyz, port: 80}", "probe"},
		{"metrics at the port of the sale", "prometheus.io/port: \"9091\"", "prometheus.io/port: \"8080\"", "want its port ops"},
		{"metrics for everybody", "targetPort: http", "targetPort: ops", "leads to the metrics"},
		{"variables of others", "enableServiceLinks: false", "enableServiceLinks: true", "variable for each service"},
		{"root", "runAsUser: 65532", "runAsUser: 0", "root"},
		{"an image that can be written", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "write"},
		{"an image of today", "image: seckill:1.0.0", "image: seckill:latest", "version"},
		{"a name in capitals", "- name: seckill\n", "- name: Seckill\n", "the name"},
		{"a budget for nobody", "maxUnavailable: 1\n  selector:\n    matchLabels: {app", "maxUnavailable: 1\n  selector:\n    matchLabels: {ap", "protects nothing"},
		{"a secret in the manifest", "valueFrom: {secretKeyRef: {name: seckill, key: db}}", "value: postgres://a:b@c/d", "reference to a secret"},
		{"a configuration that is not there", "configMap: {name: seckill}", "configMap: {name: shop}", "mounts"},
		{"one of each", "minReplicas: 3", "minReplicas: 1", "keep two"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var m manifests
			done := false
			for name, text := range k8sFiles(t) {
				if strings.HasSuffix(name, "web.yaml") {
					done = strings.Contains(text, tc.old)
					text = strings.ReplaceAll(text, tc.old, tc.wrong)
				}
				m.decode(t, text)
			}
			got := strings.Join(m.check(), "; ")
			if !done || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q in it (changed: %v)", got, tc.want, done)
			}
		})
	}
}
