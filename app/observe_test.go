package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// exposed is what /metrics has: the labels of each metric, by its name in
// queries.
func exposed(t *testing.T, base string) map[string][]string {
	t.Helper()
	status, b, err := call(base, "GET", "/metrics", "", "")
	if err != nil || status != 200 {
		t.Fatalf("got %d, %v, want the metrics", status, err)
	}
	series := regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})? `)
	label := regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="`)
	// Prometheus' own, and the label of the pods where their annotations are scraped.
	got := map[string][]string{"up": {"job", "instance", "app_kubernetes_io_name"}}
	for line := range strings.Lines(string(b)) {
		m := series.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		labels := []string{"job", "instance"} // Prometheus' own
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			labels = append(labels, l[1])
		}
		got[m[1]] = labels
	}
	return got
}

var (
	quoted    = regexp.MustCompile(`"[^"]*"`)
	selector  = regexp.MustCompile(`([a-z_:][a-zA-Z0-9_:]*)?\{([^}]*)\}`)
	grouping  = regexp.MustCompile(`\b(by|without|on|ignoring) *\(([^)]*)\)`)
	window    = regexp.MustCompile(`\[[^\]]*\]`)
	word      = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
	promWords = []string{"sum", "max", "min", "avg", "count", "rate", "increase", "histogram_quantile", "time", "and", "or", "unless"}
)

// unknown lists what a query names that is not there.
func unknown(query string, metrics map[string][]string) (wrong []string) {
	q := quoted.ReplaceAllString(query, "V")
	used := 0
	for _, s := range selector.FindAllStringSubmatch(q, -1) {
		for _, l := range word.FindAllString(strings.ReplaceAll(s[2], "V", ""), -1) {
			if !slices.Contains(metrics[s[1]], l) {
				wrong = append(wrong, s[1]+" has no label "+l)
			}
		}
	}
	all := map[string]bool{}
	for _, ls := range metrics {
		for _, l := range ls {
			all[l] = true
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(q, -1) {
		for _, l := range word.FindAllString(g[2], -1) {
			if !all[l] {
				wrong = append(wrong, "no metric has a label "+l)
			}
		}
	}
	q = selector.ReplaceAllString(grouping.ReplaceAllString(window.ReplaceAllString(q, ""), ""), "$1 ")
	for _, w := range word.FindAllString(q, -1) {
		switch _, ok := metrics[w]; {
		case ok:
			used++
		case !slices.Contains(promWords, w):
			wrong = append(wrong, "there is no metric "+w)
		}
	}
	if used == 0 {
		wrong = append(wrong, "it asks for no metric")
	}
	return wrong
}

// dashboardQueries are those of compose/grafana, by panel.
func dashboardQueries(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile("../compose/grafana/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			ID            int
			Title, Type   string
			GridPos       struct{ X, Y, W, H int }
			Targets       []struct{ Expr, RefID string }
			PanelsInGroup []any `json:"panels"`
		}
	}
	if err := json.Unmarshal(b, &board); err != nil {
		t.Fatal(err)
	}
	queries := map[string]string{}
	ids := map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q has a number twice, no title, or is wider than the page", p.ID, p.Title)
		}
		ids[p.ID] = true
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q asks for nothing", p.Title)
		}
		for _, target := range p.Targets {
			queries[fmt.Sprintf("panel %d %s, query %s", p.ID, p.Title, target.RefID)] = target.Expr
		}
	}
	return queries
}

// alertQueries are those of compose/prometheus, by alert.
func alertQueries(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile("../compose/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert       string
				Expr        string
				For         string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	d := yaml.NewDecoder(strings.NewReader(string(b)))
	d.KnownFields(true)
	if err := d.Decode(&rules); err != nil {
		t.Fatal(err)
	}
	queries := map[string]string{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || r.For == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["action"] == "" {
				t.Errorf("got alert %+v, want what it is, how bad, and what to do", r)
			}
			queries["alert "+r.Alert] = r.Expr
		}
	}
	return queries
}

func TestDashboardAndAlertsAskForWhatIsExposed(t *testing.T) {
	p := start(t, t.TempDir(), "--reconcile", "1s")
	d := newDoor(t, p.base, 1)
	d.rush(2)
	wantConfirmed(t, d.results(), 1)
	var metrics map[string][]string
	waitFor(t, "the first reconciliation", func() bool {
		metrics = exposed(t, p.base)
		return len(metrics["seckill_drift"]) > 0
	})
	queries := dashboardQueries(t)
	alerts := alertQueries(t)
	if len(queries) < 20 || len(alerts) < 5 {
		t.Errorf("got %d queries and %d alerts, want all", len(queries), len(alerts))
	}
	shown := ""
	for _, m := range []map[string]string{queries, alerts} {
		for where, q := range m {
			shown += q + "\n"
			for _, w := range unknown(q, metrics) {
				t.Errorf("%s: %s: %s", where, q, w)
			}
		}
	}
	for name := range metrics {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if strings.HasPrefix(name, "seckill_") && !strings.Contains(shown, base) {
			t.Errorf("%s is on no dashboard and in no alert", name)
		}
	}
	p.stop(t)
}

// What finds mistakes in queries finds some.
func TestAWrongQueryIsFound(t *testing.T) {
	metrics := map[string][]string{"seckill_a_total": {"code", "job"}, "seckill_b_bucket": {"le"}}
	for q, want := range map[string]int{
		`sum by (code) (rate(seckill_a_total{job="seckill"}[5m]))`:                         0,
		`histogram_quantile(0.99, sum by (le) (rate(seckill_b_bucket[$__rate_interval])))`: 0,
		`sum(rate(seckill_a_totals[5m]))`:                                                  2,
		`sum(rate(seckill_a_total{kode="x"}[5m]))`:                                         1,
		`sum by (kode) (seckill_a_total)`:                                                  1,
		`seckill_a_total > bool_of`:                                                        1,
		`time()`:                                                                           1,
	} {
		if got := unknown(q, metrics); len(got) != want {
			t.Errorf("%s: got %q, want %d mistakes", q, got, want)
		}
	}
}
