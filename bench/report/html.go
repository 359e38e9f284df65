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
	Title      text
	Complete   bool
	Overhead   text
	Answers    []answer
	PowerCut   text
	Conditions []meaning
	Problems   []*viewCell
	Noisy      []noisyCells
	Skips      []skip
	Emulated   []*row
	Tallies    []tally
	Backends   []string
	Ranking    []section
	Latency    []section
	Stages     []section
	Throughput []section
	Rates      []section
	Scaling    []section
	Crash      []section
	Faults     grid
	Frontier   []plot
	Cost       []section
	Sale       []section
	Clicks     []section
	All        grid
	Cells      []*viewCell
	Marks      []mark
	Meanings   []meaning
	Bound      text
	Fewest     []text
	CSS        template.CSS
	JS         template.JS
	Data       template.JS
}

// noisyCells are the cells that are not ranked for one reason.
type noisyCells struct {
	Why   string
	Cells []*viewCell
}

// tally counts the cells of one verdict.
type tally struct {
	Mark mark
	N    int
}

// HTML writes report.html: one file, in English and Chinese, that asks the
// network for nothing. Foreign strings go through html/template or its escaper
// (text.go); what is marked as safe is the page's own style and script, and
// JSON whose angle brackets are escaped.
func HTML(w io.Writer, result trial.Result) error {
	v := newView(result)
	page, err := v.page(result)
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	t, err := template.New("page.tmpl").Funcs(v.functions()).ParseFS(assets, "assets/*.tmpl")
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

func (v *view) functions() template.FuncMap {
	return template.FuncMap{
		"say": say, "switchName": switchName, "colon": colon, "t": text.html, "st": text.svg, "attr": attr, "swap": swap, "term": term, "quote": quote, "harness": harness, "group": func(p string) group { return group{Profile: p} },
		"mark": func(c *viewCell) mark { return cellMark(c.Cell) }, "trouble": trouble, "bound": bound, "expectation": expectation, "basis": basis, "reasons": reasons,
		"rowOf": v.rowOf, "facts": facts, "runs": runsGrid, "search": search, "join": strings.Join, "orDash": orDash, "settings": settings,
	}
}

func (v *view) page(result trial.Result) (page, error) {
	css, js, err := look("assets/look.js", "assets/report.js", "assets/save.js")
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
		Title: say("Queue report: {0}, {1}", orDash(v.run.Suite), day(v.run.StartedAt)), Complete: v.run.Complete, Overhead: v.overhead(),
		Answers: v.answers(), PowerCut: v.powerCut(), Conditions: v.conditions(), Problems: v.problems(), Skips: v.skips(), Ranking: v.rankingSections(),
		Latency: v.sections(v.latencyGrid()), Stages: v.sections(v.stagesGrid()), Throughput: v.sections(v.throughputGrid()), Rates: v.folded(v.promiseGrid(), v.ratesGrid()),
		Scaling: v.folded(grid{}, v.scalingGrid()), Crash: v.sections(v.crashGrid()), Faults: v.faultsGrid(), Cost: v.sections(v.resourcesGrid()), Sale: v.sections(v.saleGrid()), Clicks: v.sections(v.clicksGrid()),
		All: v.cellsGrid(), Cells: v.worstFirst(), Marks: append(marks(), knownLoss()), Meanings: meanings(), Bound: boundText(), Fewest: v.fewest(),
		CSS: css, JS: js, Data: template.JS(data),
	}
	p.draw(v)
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
		if c.Noisy != "" && measured(c.Cell) {
			at := slices.IndexFunc(p.Noisy, func(n noisyCells) bool { return n.Why == c.Noisy })
			if at < 0 {
				p.Noisy, at = append(p.Noisy, noisyCells{Why: c.Noisy}), len(p.Noisy)
			}
			p.Noisy[at].Cells = append(p.Noisy[at].Cells, c)
		}
	}
	return p, nil
}

func switchName() text { return pair("中文", "English") }

// look is the style of every page, and the scripts of one.
func look(scripts ...string) (template.CSS, template.JS, error) {
	css, err := assets.ReadFile("assets/report.css")
	if err != nil {
		return "", "", err
	}
	var js []byte
	for _, name := range scripts {
		data, err := assets.ReadFile(name)
		if err != nil {
			return "", "", err
		}
		js = append(js, data...)
	}
	return template.CSS(css), template.JS(js), nil
}

// draw adds the pictures to the sections that have them.
func (p *page) draw(v *view) {
	chartOf := func(s *section, c chart) { s.Chart = &c }
	plotOf := func(s *section, q plot) {
		if len(q.Series) > 0 {
			s.Plots = append(s.Plots, q)
		}
	}
	if q := v.frontierPlot(); len(q.Series) > 0 {
		p.Frontier = append(p.Frontier, q)
	}
	for i := range p.Latency {
		plotOf(&p.Latency[i], p.Latency[i].Group.curvesPlot())
		chartOf(&p.Latency[i], p.Latency[i].Group.latencyChart())
	}
	for i := range p.Throughput {
		chartOf(&p.Throughput[i], p.Throughput[i].Group.throughputChart())
	}
	for i := range p.Sale {
		chartOf(&p.Sale[i], p.Sale[i].Group.saleChart())
	}
	for i := range p.Rates {
		plotOf(&p.Rates[i], p.Rates[i].Group.ratesPlot())
	}
	for i := range p.Scaling {
		for _, d := range dimensions() {
			plotOf(&p.Scaling[i], p.Scaling[i].Group.scalingPlot(d))
		}
	}
}

// search is what the page's filter looks through.
func search(r *row, c *viewCell) string {
	parts := []string{r.Label().String(), r.Profile, r.Broker.Name, r.Broker.Version, r.Guarantee, r.Confirm}
	if c != nil {
		fault, test := faultTitle(c.Fault), term(c.Test)
		parts = append(parts, c.Test, test.Chinese(), c.Fault, fault.String(), fault.Chinese(), c.Verdict, term(c.Verdict).Chinese(), c.Note, reasons(c.Cell))
	}
	return strings.ToLower(strings.Join(parts, " "))
}
