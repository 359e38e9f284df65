package report

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	terminal "github.com/jedib0t/go-pretty/v6/text"

	"queuelab/bench/trial"
)

// Table prints the result for people: one table where width columns hold it,
// else three (costs, crashes, sales), then what nobody should overlook. Colours
// are for terminals only, so the caller decides. A width of 0 or less is 120.
func Table(w io.Writer, result trial.Result, color bool, width int) error {
	if width <= 0 {
		width = 120
	}
	v, p := newView(result), pen(color)
	var b strings.Builder
	b.WriteString(p.bold(wrap(v.headline(), width)) + "\n" + wrap(v.machine(), width) + "\n")
	if t := v.overhead(); !t.Empty() {
		b.WriteString(wrap(plain("harness floor: "+t.String()), width) + "\n")
	}
	b.WriteString("\n")
	summary := v.summaryGrid()
	if faults := v.faultsGrid(); len(faults.Lines) > 0 {
		b.WriteString(p.bold(wrap(faults.Title.String(), width)) + "\n" + p.fit(v, faults, width))
	} else if one := p.profiles(v, summary, width); widest(one) <= width {
		b.WriteString(p.bold(wrap(summary.Title.String(), width)) + "\n" + one)
	} else {
		for _, g := range []grid{v.costsGrid(), v.crashGrid(), v.saleGrid()} {
			if len(g.Lines) > 0 {
				b.WriteString(p.bold(wrap(g.Title.String(), width)) + "\n" + p.fit(v, g, width))
			}
		}
	}
	v.remarks(&b, p, width)
	_, err := io.WriteString(w, b.String())
	return err
}

// pen writes with colours, or without.
type pen bool

func (p pen) sgr(code, s string) string {
	if !p || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p pen) bold(s string) string { return p.sgr("1", s) }

func (p pen) mark(m *mark, s string) string {
	if m == nil {
		return s
	}
	switch m.Class {
	case "good":
		return p.sgr("32", s)
	case "bad":
		return p.sgr("1;31", s)
	case "invalid":
		return p.sgr("35", s)
	case "warn", "known":
		return p.sgr("33", s)
	case "soft":
		return p.sgr("36", s)
	}
	return p.sgr("2", s)
}

// fit draws a grid, without the columns that people miss least where width
// does not hold them all.
func (p pen) fit(v *view, g grid, width int) string {
	g = g.trimmed()
	s := p.profiles(v, g, width)
	for _, spare := range []string{"response p99", "max", "confirmed by", "offered", "guarantee", "from send", "95 % interval"} {
		if widest(s) <= width {
			break
		}
		g = g.without(spare)
		s = p.profiles(v, g, width)
	}
	return s
}

// profiles draws a grid as one table for each profile, with columns of the same
// widths.
func (p pen) profiles(v *view, g grid, width int) string {
	widths := make([]int, len(g.Columns))
	for i, c := range g.Columns {
		widths[i] = widest(narrow(c.Title.String()))
		for _, l := range g.Lines {
			if c.Key != note {
				widths[i] = max(widths[i], terminal.StringWidth(plain(fieldText(l.Fields[i]))))
			}
		}
	}
	var b strings.Builder
	for _, part := range v.sections(g) {
		b.WriteString(p.bold(plain(part.Group.Title().String())) + "\n" + p.draw(part.Grid, widths, width) + "\n\n")
	}
	return b.String()
}

func fieldText(f field) string {
	s := f.Text.String()
	return strings.Replace(s, "(harness floor)", "(floor)", 1)
}

// draw renders a grid; width bounds its last column where that is a note.
func (p pen) draw(g grid, widths []int, width int) string {
	t := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = terminal.FormatDefault
	style.Options = table.Options{SeparateHeader: true}
	t.SetStyle(style)
	var head table.Row
	var configs []table.ColumnConfig
	used := 0
	for i, c := range g.Columns {
		if c.Key == note && width-used-2 < 24 {
			continue // the remarks below say it too
		}
		head = append(head, p.bold(narrow(c.Title.String())))
		align := terminal.AlignLeft
		if c.Num {
			align = terminal.AlignRight
		}
		config := table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align, VAlignHeader: terminal.VAlignBottom, WidthMin: widths[i]}
		if c.Key == note {
			config.WidthMin, config.WidthMax, config.WidthMaxEnforcer = 0, width-used-2, terminal.WrapSoft
		}
		configs = append(configs, config)
		used += widths[i] + 2
	}
	t.AppendHeader(head)
	t.SetColumnConfigs(configs)
	for _, l := range g.Lines {
		var fields table.Row
		for i, f := range l.Fields[:len(head)] {
			s := p.mark(f.Mark, plain(fieldText(f)))
			if i == 0 && l.Row.Unranked() || g.Columns[i].Grey {
				s = p.sgr("2", plain(fieldText(f)))
			}
			fields = append(fields, s)
		}
		t.AppendRow(fields)
	}
	lines := strings.Split(t.Render(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// narrow breaks a column's title, so that titles do not set the width.
func narrow(title string) string {
	parts := strings.Fields(plain(title))
	lines := []string{""}
	for _, w := range parts {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = w
		case len(*last)+1+len(w) <= 12:
			*last += " " + w
		default:
			lines = append(lines, w)
		}
	}
	return strings.Join(lines, "\n")
}

// plain keeps a foreign string from moving the cursor or breaking a line.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r' || r == '\u2028' || r == '\u2029':
			return ' '
		case unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control):
			return -1
		}
		return r
	}, s)
}

func wrap(s string, width int) string {
	lines := strings.Split(terminal.WrapSoft(s, width), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func widest(s string) int {
	w := 0
	for _, l := range strings.Split(s, "\n") {
		w = max(w, terminal.StringWidthWithoutEscSequences(l))
	}
	return w
}

func (v *view) headline() string {
	s := fmt.Sprintf("queuelab %s, %s, %s, %s", orDash(v.run.Suite), v.run.StartedAt.UTC().Format("2006-01-02 15:04 UTC"),
		v.settingsNumber(), v.cellsNumber())
	if !v.run.Complete {
		s += ", INTERRUPTED: only what was finished"
	}
	return plain(s)
}

func (v *view) machine() string {
	h := v.run.Host
	return plain(fmt.Sprintf("%s, %s, %s memory, kernel %s, fsync p50 %s p99 %s, load %s", orDash(h.CPU), plural(int64(h.Cores), "core", "cores"),
		bytesSize(h.MemoryBytes), orDash(h.Kernel), fsyncText(h.FsyncMicros.P50), fsyncText(h.FsyncMicros.P99), brief(h.Load1)))
}

func fsyncText(us int64) string {
	if us <= 0 {
		return "unknown"
	}
	return micros(us)
}

// remarks are the lines under the tables: the verdict, problems, what was skipped, how much
// these trials can show, and the symbols that appear.
func (v *view) remarks(b *strings.Builder, p pen, width int) {
	put := func(s string) { b.WriteString(wrap(s, width) + "\n") }
	for _, a := range v.answers() {
		state := a.State
		put(p.mark(&state, state.Symbol+" "+a.Need.String()) + ": " + plain(or(a.Choice, a.Text).String()))
	}
	b.WriteString("\n")
	for _, c := range v.problems() {
		m := markOf(c.Verdict)
		put(p.mark(&m, m.Symbol+" "+plain(c.Title().String())) + ": " + plain(trouble(c).String()))
	}
	// One reason is often that of many cells: too few trials.
	noisy := map[string][]string{}
	var order []string
	for _, c := range v.cells {
		if c.Noisy == "" || !measured(c.Cell) {
			continue
		}
		if noisy[c.Noisy] == nil {
			order = append(order, c.Noisy)
		}
		noisy[c.Noisy] = append(noisy[c.Noisy], c.Title().String())
	}
	for _, why := range order {
		if cells := noisy[why]; len(cells) > 4 {
			put(plain(fmt.Sprintf("NOISY, not ranked: %d cells: %s", len(cells), why)))
		} else {
			put(plain("NOISY, not ranked: " + strings.Join(cells, "; ") + ": " + why))
		}
	}
	for _, s := range v.skips() {
		put(plain("- skipped " + strings.Join(s.Settings, ", ") + ": " + s.Reason.String()))
	}
	for _, t := range v.fewest() {
		put(t.String())
	}
	var seen []string
	for _, m := range marks() {
		for _, c := range v.cells {
			if c.Verdict == m.Verdict {
				seen = append(seen, p.mark(&m, m.Symbol)+" "+m.Verdict)
				break
			}
		}
	}
	legend := "lost / again: messages without effect / deliveries beyond the first, n valid trials."
	if len(seen) > 0 {
		legend += " " + strings.Join(seen, ", ") + "."
	}
	put(legend)
}

// fewest says what the smallest number of trials among the crash cells bounds.
func (v *view) fewest() []text {
	var least *viewCell
	for _, c := range v.cells {
		if c.Test == trial.TestCrash && measured(c.Cell) && c.Valid > 0 && (least == nil || c.Valid < least.Valid) {
			least = c
		}
	}
	if least == nil {
		return nil
	}
	return []text{say("A crash cell with n={0} and nothing lost excludes, at 95 %, a loss probability above {1} per crash, and no more; a loss seen once is proof.",
		least.count("valid", int64(least.Valid)), calc(asPercent, excluded(least.Valid), "excluded("+least.path("valid")+")"))}
}
