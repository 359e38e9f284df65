package report

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

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
	b.WriteString(p.bold(wrap(v.headline(), width)) + "\n" + wrap(v.machine(), width) + "\n\n")
	summary := v.summaryGrid()
	if one := p.draw(summary, width); widest(one) <= width {
		b.WriteString(p.bold(wrap(summary.Title, width)) + "\n" + one + "\n\n")
	} else {
		for _, g := range []grid{v.costsGrid(), v.crashGrid(), v.saleGrid()} {
			if len(g.Lines) > 0 {
				b.WriteString(p.bold(wrap(g.Title, width)) + "\n" + p.fit(g, width) + "\n\n")
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
func (p pen) fit(g grid, width int) string {
	s := p.draw(g, width)
	for _, spare := range []string{"publish p99", "max", "confirmed by", "offered", "guarantee"} {
		if widest(s) <= width {
			break
		}
		g = g.without(spare)
		s = p.draw(g, width)
	}
	return s
}

// draw renders a grid; width bounds its last column where that is a note.
func (p pen) draw(g grid, width int) string {
	t := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options = table.Options{SeparateHeader: true}
	t.SetStyle(style)
	var head table.Row
	var configs []table.ColumnConfig
	used := 0
	for i, c := range g.Columns {
		if c.Title == "note" && width-used-2 < 24 {
			continue // the remarks below say it too
		}
		title := narrow(c.Title)
		head = append(head, p.bold(title))
		align := text.AlignLeft
		if c.Num {
			align = text.AlignRight
		}
		config := table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align, VAlignHeader: text.VAlignBottom}
		if c.Title == "note" {
			config.WidthMax, config.WidthMaxEnforcer = width-used-2, text.WrapSoft
		}
		configs = append(configs, config)
		column := widest(title)
		for _, l := range g.Lines {
			column = max(column, text.StringWidth(plain(l.Fields[i].Text)))
		}
		used += column + 2
	}
	t.AppendHeader(head)
	t.SetColumnConfigs(configs)
	for _, l := range g.Lines {
		var fields table.Row
		for i, f := range l.Fields[:len(head)] {
			s := p.mark(f.Mark, plain(f.Text))
			if i == 0 && l.Row.Unranked() {
				s = p.sgr("2", strings.Replace(s, "(harness floor)", "(floor)", 1))
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
	lines := strings.Split(text.WrapSoft(s, width), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func widest(s string) int {
	w := 0
	for _, l := range strings.Split(s, "\n") {
		w = max(w, text.StringWidthWithoutEscSequences(l))
	}
	return w
}

func (v *view) headline() string {
	s := fmt.Sprintf("queuelab %s, %s, %s, %s", orDash(v.run.Suite), v.run.StartedAt.UTC().Format("2006-01-02 15:04 UTC"),
		plural(int64(len(v.rows)), "setting", "settings"), plural(int64(len(v.cells)), "cell", "cells"))
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

// remarks are the lines under the tables: problems, what was skipped, how much
// these trials can show, and the symbols that appear.
func (v *view) remarks(b *strings.Builder, p pen, width int) {
	say := func(s string) { b.WriteString(wrap(s, width) + "\n") }
	for _, c := range v.problems() {
		m := markOf(c.Verdict)
		say(p.mark(&m, m.Symbol+" "+plain(c.Title())) + ": " + plain(trouble(c)))
	}
	for _, s := range v.skips() {
		say(plain("- skipped " + strings.Join(s.Settings, ", ") + ": " + s.Reason))
	}
	for _, s := range v.fewest() {
		say(s)
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
	say(legend)
}

// fewest says what the smallest number of trials among the crash cells bounds.
func (v *view) fewest() []string {
	least := 0
	for _, c := range v.cells {
		if c.Test == trial.TestCrash && measured(c.Cell) && c.Valid > 0 && (least == 0 || c.Valid < least) {
			least = c.Valid
		}
	}
	if least == 0 {
		return nil
	}
	return []string{fmt.Sprintf("A crash cell with n=%d and nothing lost excludes, at 95 %%, a loss probability above %s %% per crash, and no more; a loss seen once is proof.", least, brief(excluded(least)))}
}
