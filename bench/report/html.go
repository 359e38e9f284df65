package report

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"queuelab/bench/trial"
)

//go:embed assets
var assets embed.FS

// page is what the template sees.
type page struct {
	Title      string
	Complete   bool
	Conditions []meaning
	Problems   []*viewCell
	Skips      []skip
	Emulated   []*row
	Tallies    []tally
	Backends   []string
	Latency    grid
	Throughput grid
	Crash      grid
	Sale       grid
	All        grid
	Charts     map[string]chart
	Cells      []*viewCell
	Marks      []mark
	Meanings   []meaning
	Bound      string
	Fewest     []string
	CSS        template.CSS
	JS         template.JS
	Data       template.JS
}

// tally counts the cells of one verdict.
type tally struct {
	Mark mark
	N    int
}

// HTML writes report.html: one file that asks the network for nothing. Every
// foreign string goes through html/template; what is marked as safe is the
// page's own style and script, and JSON whose angle brackets are escaped.
func HTML(w io.Writer, result trial.Result) error {
	v := newView(result)
	page, err := v.page(result)
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	t, err := template.New("report.html.tmpl").Funcs(template.FuncMap{
		"mark": func(c *viewCell) mark { return cellMark(c.Cell) }, "trouble": trouble, "bound": bound, "expectation": expectation, "basis": basis, "reasons": reasons, "measured": measured,
		"count": count, "faultTitle": faultTitle, "rowOf": v.rowOf, "facts": facts, "json": indented, "search": search, "join": strings.Join, "percentiles": percentiles,
		"confirm": confirmText, "millis": millis, "orDash": orDash,
	}).ParseFS(assets, "assets/report.html.tmpl")
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, page); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

func (v *view) page(result trial.Result) (page, error) {
	css, err := assets.ReadFile("assets/report.css")
	if err != nil {
		return page{}, err
	}
	js, err := assets.ReadFile("assets/report.js")
	if err != nil {
		return page{}, err
	}
	var csv bytes.Buffer
	if err := CSV(&csv, result); err != nil {
		return page{}, err
	}
	data, err := json.Marshal(struct {
		Result trial.Result `json:"result"`
		CSV    string       `json:"csv"`
	}{normal(result), csv.String()})
	if err != nil {
		return page{}, err
	}
	p := page{
		Title: "Queue report: " + orDash(v.run.Suite) + ", " + day(v.run.StartedAt), Complete: v.run.Complete, Conditions: v.conditions(),
		Problems: v.problems(), Skips: v.skips(), Latency: v.latencyGrid(), Throughput: v.throughputGrid(), Crash: v.crashGrid(), Sale: v.saleGrid(), All: v.cellsGrid(),
		Charts: map[string]chart{"latency": v.latencyChart(), "throughput": v.throughputChart(), "sale": v.saleChart()},
		Cells:  v.worstFirst(), Marks: append(marks(), knownLoss()), Meanings: meanings(), Bound: boundText(), Fewest: v.fewest(),
		CSS: template.CSS(css), JS: template.JS(js), Data: template.JS(data),
	}
	for _, r := range v.rows {
		if !slices.Contains(p.Backends, r.Backend) {
			p.Backends = append(p.Backends, r.Backend)
		}
		if r.Broker.Emulated {
			p.Emulated = append(p.Emulated, r)
		}
	}
	for _, c := range v.worstFirst() {
		if n := len(p.Tallies); n > 0 && p.Tallies[n-1].Mark.Verdict == c.Verdict {
			p.Tallies[n-1].N++
		} else {
			p.Tallies = append(p.Tallies, tally{markOf(c.Verdict), 1})
		}
	}
	return p, nil
}

// facts are a cell's numbers in words, for people who do not read JSON.
func facts(c *viewCell) []meaning {
	out := []meaning{
		{"trials", fmt.Sprintf("%d valid of %d, seed %d", c.Valid, c.Trials, c.Seed)},
		{"messages", fmt.Sprintf("sent %s, accepted %s, rejected %s, unknown %s, unconfirmed %s", count(c.Sent), count(c.Accepted), count(c.Rejected), count(c.Unknown), count(c.Unconfirmed))},
		{"outcome", fmt.Sprintf("lost %s, recovered %s, again %s, effect duplicates %s, producer duplicates %s, reordered %s, stranded %s, dead-lettered %s, dropped by a limit %s, phantom %s, rejected yet delivered %s",
			count(c.Lost), count(c.Recovered), count(c.Redelivered), count(c.EffectDuplicates), count(c.ProducerDuplicates), count(c.Reordered), count(c.Stranded), count(c.DeadLettered), count(c.PolicyDropped), count(c.Phantom), count(c.RejectedDelivered))},
		{"shape", fmt.Sprintf("%s, %s each, prefetch %d, payload %d B, backlog at the fault %s", plural(int64(c.Consumers), "consumer process", "consumer processes"), plural(int64(c.Concurrency), "handler", "handlers"), c.Prefetch, c.PayloadBytes, count(c.BacklogAtFault))},
	}
	if c.RecoveryMillis != nil {
		out = append(out, meaning{"without service", "p50 " + millis(c.RecoveryMillis.P50) + ", longest " + millis(c.RecoveryMillis.Max)})
	}
	if c.LatencyMicros != nil {
		out = append(out, meaning{"publish", latencyText(c.LatencyMicros.Publish)}, meaning{"end to end", latencyText(c.LatencyMicros.EndToEnd)})
	}
	if c.RatePerSecond > 0 {
		out = append(out, meaning{"rate", rate(c.RatePerSecond) + ", " + orDash(c.LoopModel) + " loop"})
	}
	if s := c.Sale; s != nil {
		out = append(out, meaning{"sale", fmt.Sprintf("%s buyers for %s units: sold %s, oversold %d, undersold %d, double %d, waiting %d, lost orders %d",
			count(int64(s.Buyers)), count(int64(s.Stock)), count(int64(s.Sold)), s.Oversold, s.Undersold, s.Double, s.Waiting, s.LostOrders)})
	}
	return append(out, meaning{"settings", orDash(settingsText(c.EffectiveSettings))}, meaning{"took", millis(c.WallMillis)})
}

func latencyText(p trial.Percentiles) string {
	var parts []string
	for _, q := range percentiles(p) {
		parts = append(parts, q.Name+" "+q.String())
	}
	return strings.Join(parts, ", ") + ", n " + count(p.N)
}

func indented(c *viewCell) (string, error) {
	data, err := json.MarshalIndent(c.Cell, "", "  ")
	return string(data), err
}

// search is what the page's filter looks through.
func search(r *row, c *viewCell) string {
	parts := []string{r.Label(), r.Broker.Name, r.Broker.Version, r.Guarantee, r.Confirm}
	if c != nil {
		parts = append(parts, c.Test, c.Fault, faultTitle(c.Fault), c.Verdict, c.Note, reasons(c.Cell))
	}
	return strings.ToLower(strings.Join(parts, " "))
}
