package report

import (
	"fmt"
	"io"
	"strings"

	"queuelab/bench/trial"
)

// Markdown writes the whole report: the verdict, the conditions, what must be
// read before any number, the tables, every cell with what was expected of it, and what the
// words mean.
func Markdown(w io.Writer, result trial.Result) error {
	v := newView(result)
	var b strings.Builder
	fmt.Fprintf(&b, "# Queue report: %s, %s\n\n", md(orDash(v.run.Suite)), day(v.run.StartedAt))
	v.markdownAnswers(&b)
	b.WriteString("\n## Conditions\n\n")
	for _, f := range v.conditions() {
		fmt.Fprintf(&b, "- **%s**: %s\n", md(f.Term.String()), md(f.Text.String()))
	}
	v.markdownFirst(&b)
	b.WriteString("\n## Ranking, within one profile only\n")
	for _, s := range v.rankingSections() {
		fmt.Fprintf(&b, "\n### %s\n\n%s", md(s.Group.Title().String()), markdownTable(s.Grid, true))
	}
	for _, g := range []grid{v.latencyGrid(), v.stagesGrid(), v.throughputGrid(), v.promiseGrid(), v.ratesGrid(), v.scalingGrid(), v.crashGrid(), v.faultsGrid(), v.resourcesGrid(), v.saleGrid(), v.clicksGrid()} {
		if len(g.Lines) > 0 {
			fmt.Fprintf(&b, "\n## %s\n", md(g.Title.String()))
			for _, s := range v.sections(g) {
				fmt.Fprintf(&b, "\n### %s\n\n%s", md(s.Group.Title().String()), markdownTable(s.Grid, true))
			}
		}
	}
	g := v.cellsGrid()
	fmt.Fprintf(&b, "\n## %s\n\n%s", md(g.Title.String()), markdownTable(g, false))
	v.markdownFacts(&b)
	b.WriteString("\n## Verdicts\n\n| symbol | verdict | meaning |\n| --- | --- | --- |\n")
	for _, m := range append(marks(), knownLoss()) {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", md(m.Symbol), md(m.Verdict), md(m.Meaning.String()))
	}
	b.WriteString("\n## What these trials can bound\n\n" + md(boundText().String()) + "\n\n")
	for _, s := range v.fewest() {
		b.WriteString(md(s.String()) + "\n\n")
	}
	b.WriteString("## What each number means\n\n")
	for _, m := range meanings() {
		fmt.Fprintf(&b, "- **%s**: %s\n", md(m.Term.String()), md(m.Text.String()))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// markdownAnswers is the verdict, by the same rules as the page's.
func (v *view) markdownAnswers(b *strings.Builder) {
	b.WriteString("## The verdict\n\n")
	for _, a := range v.answers() {
		choice := ""
		if !a.Choice.Empty() {
			choice = " **" + md(a.Choice.String()) + "**:"
		}
		fmt.Fprintf(b, "- %s %s (%s):%s %s\n", md(a.State.Symbol), md(a.Need.String()), md(a.Group.Short().String()), choice, md(a.Text.String()))
		for _, t := range a.Out {
			fmt.Fprintf(b, "  - %s\n", md(t.String()))
		}
	}
	fmt.Fprintf(b, "\n%s\n", md(v.powerCut().String()))
}

func noisyText(c *viewCell) string {
	if c.Noisy == "" {
		return ""
	}
	return "NOISY, not ranked: " + c.Noisy
}

// markdownFirst lists what nobody should quote a number without.
func (v *view) markdownFirst(b *strings.Builder) {
	b.WriteString("\n## Read this first\n\n")
	n := 0
	for _, c := range v.problems() {
		fmt.Fprintf(b, "- %s **%s**: %s\n", md(markOf(c.Verdict).Symbol), md(c.Title().String()), md(trouble(c).String()))
		n++
	}
	for _, s := range v.skips() {
		fmt.Fprintf(b, "- %s **skipped** %s: %s\n", md("-"), md(strings.Join(s.Settings, ", ")), md(s.Reason.String()))
		n++
	}
	for _, r := range v.rows {
		if r.Broker.Emulated {
			fmt.Fprintf(b, "- **%s** is emulated by %s: it is not ranked, and not the real broker\n", md(r.Setting()), md(orDash(r.Broker.Name)))
			n++
		}
	}
	if n == 0 {
		b.WriteString("No contradiction, nothing invalid, nothing skipped, nothing emulated.\n")
	}
}

// markdownFacts gives every cell its bound, its notes and its settings.
func (v *view) markdownFacts(b *strings.Builder) {
	b.WriteString("\n## The facts of each cell\n\n")
	for _, c := range v.worstFirst() {
		var parts []string
		for _, s := range []string{reasons(c.Cell), c.Note, noisyText(c), bound(c).String()} {
			if s != "" {
				parts = append(parts, s)
			}
		}
		if measured(c.Cell) {
			parts = append(parts, fmt.Sprintf("seed %d, %s, %s each with %s, prefetch %d, payload %d B, sent %s, accepted %s, unknown %s, backlog at the fault %s",
				c.Seed, plural(int64(c.Trials), "trial", "trials"), plural(int64(c.Consumers), "consumer", "consumers"), plural(int64(c.Concurrency), "handler", "handlers"),
				c.Prefetch, c.PayloadBytes, count(c.Sent), count(c.Accepted), count(c.Unknown), count(c.BacklogAtFault)))
			if s := settingsText(c.EffectiveSettings); s != "" {
				parts = append(parts, "settings: "+s)
			}
		}
		fmt.Fprintf(b, "- %s **%s**: %s. %s\n", md(markOf(c.Verdict).Symbol), md(c.Title().String()), md(orDash(c.Verdict)), md(strings.Join(parts, ". ")))
	}
}

// markdownTable draws a grid; a field's second lines come after a line break.
func markdownTable(g grid, sub bool) string {
	var b strings.Builder
	b.WriteString("|")
	for _, c := range g.Columns {
		b.WriteString(" " + md(c.Title.String()) + " |")
	}
	b.WriteString("\n|")
	for _, c := range g.Columns {
		if c.Num {
			b.WriteString(" ---: |")
		} else {
			b.WriteString(" --- |")
		}
	}
	b.WriteString("\n")
	for _, l := range g.Lines {
		b.WriteString("|")
		for _, f := range l.Fields {
			s := md(f.Text.String())
			if !f.Grey.Empty() {
				s += " <sub>" + md(f.Grey.String()) + "</sub>"
			}
			if sub && len(f.Sub) > 0 {
				for _, t := range f.Sub {
					s += "<br>" + md(t.String())
				}
			}
			b.WriteString(" " + s + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// md makes any text harmless in Markdown, in a table too.
func md(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, `\`, `\\`, "~", `\~`, "#", `\#`).Replace(plain(s))
}
