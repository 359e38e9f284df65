package compare

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Text prints the comparison for people: conditions first, then the cells, then
// the budgets. Colours are for terminals only, so the caller decides.
func Text(w io.Writer, c Comparison, color bool) error {
	var b strings.Builder
	p := pen(color)
	fmt.Fprintf(&b, "%s\n  A: %s\n  B: %s\n", p.bold("Compared"), c.A, c.B)
	c.conditions(&b, p)
	if c.Refused {
		b.WriteString("\nRefused: with conditions that differ like this, the numbers mean different things. --force compares all the same.\n")
	} else {
		c.cells(&b, p)
		c.summary(&b, p)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// String is where a side comes from.
func (s Source) String() string {
	var parts []string
	for _, r := range s.Runs {
		name := r.Path
		if name == "" {
			name = s.Given
		}
		if !r.StartedAt.IsZero() {
			name += r.StartedAt.Format(" (2006-01-02 15:04)")
		}
		parts = append(parts, name)
	}
	out := strings.Join(parts, ", ")
	if s.Setting != "" {
		out += ": " + s.Setting
	}
	return out
}

func (c Comparison) conditions(b *strings.Builder, p pen) {
	for _, group := range []struct {
		title        string
		incomparable bool
	}{{"Differs, and makes the numbers incomparable (A | B)", true}, {"Differs, and is worth knowing (A | B)", false}} {
		titled := false
		for _, d := range c.Differences {
			if d.Incomparable != group.incomparable {
				continue
			}
			if !titled {
				fmt.Fprintf(b, "\n%s\n", p.bold(group.title))
				titled = true
			}
			fmt.Fprintf(b, "  %s\n", d)
		}
	}
	if len(c.Differences) == 0 {
		b.WriteString("\nThe conditions are the same.\n")
	}
	for _, w := range c.Warnings {
		fmt.Fprintf(b, "\n%s %s.\n", p.sgr("33", "Warning:"), w)
	}
}

func (c Comparison) cells(b *strings.Builder, p pen) {
	for _, cell := range c.Cells {
		fmt.Fprintf(b, "\n%s\n", p.bold(cell.Name))
		if len(cell.Rows) > 0 {
			b.WriteString(p.draw(cell.Rows) + "\n")
		} else {
			b.WriteString("  no metric has a usable trial on both sides\n")
		}
		for _, n := range cell.Notes {
			fmt.Fprintf(b, "  %s\n", n)
		}
		noted := map[string]bool{}
		for _, r := range cell.Rows {
			if r.Note != "" && !noted[r.Note] && r.Verdict != Better && r.Verdict != Worse {
				fmt.Fprintf(b, "  %s: %s\n", r.Metric, r.Note)
			}
			noted[r.Note] = true
		}
	}
	for _, only := range []struct {
		side  string
		names []string
	}{{"A", c.OnlyInA}, {"B", c.OnlyInB}} {
		if len(only.names) > 0 {
			fmt.Fprintf(b, "\nOnly in %s, and not compared: %s\n", only.side, some(only.names))
		}
	}
}

func (p pen) draw(rows []Row) string {
	t := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options = table.Options{SeparateHeader: true}
	t.SetStyle(style)
	t.AppendHeader(table.Row{"  metric", "A", "B", "B against A", "95 % interval", "n", p.head(rows), "verdict"})
	var configs []table.ColumnConfig
	for i := 2; i <= 7; i++ {
		configs = append(configs, table.ColumnConfig{Number: i, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(configs)
	for _, r := range rows {
		change, span := r.change()
		n, pValue, verdict := fmt.Sprintf("%d, %d", r.A.N, r.B.N), "-", r.Verdict
		if r.Test == "" {
			n = "-"
		}
		if r.Test == testSignedRank {
			n = fmt.Sprintf("%d pairs", r.A.N)
		}
		if r.P != nil {
			pValue = showP(*r.P)
		}
		if r.Adjusted != nil {
			pValue = showP(*r.Adjusted)
		}
		switch r.Verdict {
		case Better:
			verdict = p.sgr("32", "+ "+verdict)
		case Worse:
			verdict = p.sgr("1;31", "- "+verdict)
		default:
			verdict = p.sgr("2", "  "+verdict)
		}
		if r.Noisy != "" && r.Verdict != TooFew {
			verdict += p.sgr("33", " (noisy)")
		}
		t.AppendRow(table.Row{"  " + r.Metric, show(r.A.Median, r.Unit), show(r.B.Median, r.Unit), change, span, n, pValue, verdict})
	}
	var lines []string
	for l := range strings.Lines(t.Render()) {
		lines = append(lines, strings.TrimRight(l, " \n"))
	}
	return strings.Join(lines, "\n")
}

func (p pen) head(rows []Row) string {
	for _, r := range rows {
		if r.Adjusted != nil {
			return "adjusted p"
		}
	}
	return "p"
}

// change is B against A with its interval, for people.
func (r Row) change() (value, span string) {
	switch {
	case r.Unit == unitShare:
		return fmt.Sprintf("%+.0f points", r.Percent.Value), fmt.Sprintf("%+.0f to %+.0f", r.Percent.Low, r.Percent.High)
	case r.Percent == nil:
		return signed(r.Difference.Value, r.Unit), signed(r.Difference.Low, r.Unit) + " to " + signed(r.Difference.High, r.Unit)
	case r.Test == "":
		return fmt.Sprintf("%+.1f %%", r.Percent.Value), "-"
	}
	return fmt.Sprintf("%+.1f %%", r.Percent.Value), fmt.Sprintf("%+.1f to %+.1f", r.Percent.Low, r.Percent.High)
}

func (c Comparison) summary(b *strings.Builder, p pen) {
	by := "the trials of each side pooled, Mann-Whitney"
	if c.Paired {
		by = "in pairs of the same round, Wilcoxon signed-rank"
	}
	fmt.Fprintf(b, "\n%s\n  %d differences in %d tests at alpha %.3g (%s; Fisher's exact test for shares).\n",
		p.bold("Summary"), c.Found, c.Tested, c.Alpha, by)
	if c.FDR {
		fmt.Fprintf(b, "  Were nothing different, alpha is the chance that any would be found (Benjamini-Hochberg); \"%s\" does not show that there is none.\n", Same)
	} else {
		fmt.Fprintf(b, "  Were nothing different, up to %.1f of them would be found by chance; \"%s\" does not show that there is none.\n", c.Alpha*float64(c.Tested), Same)
	}
	if len(c.Budgets) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", p.bold("Budgets"))
	for _, j := range c.Budgets {
		outcome := p.sgr("32", j.Outcome)
		if j.Outcome != Within {
			outcome = p.sgr("1;31", strings.ToUpper(j.Outcome))
		}
		fmt.Fprintf(b, "  %s: %s %s, at most %g %% worse: %s\n", outcome, j.Cell, j.Metric, *j.WorsePercent, j.Why)
	}
}

// show is a value with three digits and its unit.
func show(v float64, unit string) string {
	switch unit {
	case "µs":
		return showMicros(v)
	case "ms":
		return showMicros(1000 * v)
	case unitShare:
		return fmt.Sprintf("%.0f %%", 100*v)
	case "/s":
		switch {
		case abs(v) >= 1e6:
			return digits(v/1e6) + " M/s"
		case abs(v) >= 1e4:
			return digits(v/1e3) + " k/s"
		}
		return digits(v) + "/s"
	case "CPU s/million":
		return digits(v) + " s"
	}
	return strings.TrimSpace(digits(v) + " " + unit)
}

func showMicros(us float64) string {
	switch a := abs(us); {
	case a < 1000:
		return digits(us) + " µs"
	case a < 1e6:
		return digits(us/1e3) + " ms"
	}
	return digits(us/1e6) + " s"
}

func signed(v float64, unit string) string {
	if v > 0 {
		return "+" + show(v, unit)
	}
	return show(v, unit)
}

// digits are three that matter, and no zeros after them.
func digits(v float64) string {
	a := abs(v)
	places := 0
	for ; a != 0 && a < 99.5 && places < 3; places++ {
		a *= 10
	}
	s := fmt.Sprintf("%.*f", places, v)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

func showP(p float64) string {
	if p < 0.001 {
		return fmt.Sprintf("%.1e", p)
	}
	return fmt.Sprintf("%.3f", math.Min(1, p))
}

// pen writes with colours, or without.
type pen bool

func (p pen) sgr(code, s string) string {
	if !p {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p pen) bold(s string) string { return p.sgr("1", s) }
