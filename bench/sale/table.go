package sale

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"queuelab/bench/trial"
)

// Table prints the result for people.
func Table(w io.Writer, r Result, color bool, width int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d buyers for %d units, %.0f clicks a second at moments by chance, %s\n", r.Load.Buyers, r.Load.Stock, r.Load.Rate, r.Load.Database)
	fmt.Fprintf(&b, "%s, %d cores, fsync p50 %d µs, p99 %d µs; seed %d, %s, commit %s\n\n", r.Host.CPU, r.Host.Cores, r.Host.FsyncMicros.P50, r.Host.FsyncMicros.P99,
		r.Load.Seed, trials(r.Load.Trials), r.Commit)
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	head := table.Row{"way", "queue", "valid", "sold", "over-\nsold", "under-\nsold", "double"}
	aligned := []table.ColumnConfig{}
	fs := figures()
	for _, f := range fs {
		head = append(head, f.Head)
	}
	for i := 4; i <= len(head); i++ {
		aligned = append(aligned, table.ColumnConfig{Number: i, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(aligned)
	t.AppendHeader(head)
	var remarks []string
	for _, l := range Lines(r.Rows) {
		if l.Skipped {
			remarks = append(remarks, fmt.Sprintf("%s %s was left out: %s", l.Way, l.Setting, l.Why))
			continue
		}
		if l.Why != "" {
			remarks = append(remarks, fmt.Sprintf("%s %s is not valid: %s", l.Way, l.Setting, l.Why))
		}
		row := table.Row{l.Way, orDash(l.Setting), verdict(l, color), l.Sold, l.Oversold, l.Undersold, l.Double}
		for _, f := range fs {
			row = append(row, number(l.Figures[f.Name]))
		}
		t.AppendRow(row)
	}
	b.WriteString(t.Render() + "\n\n")
	b.WriteString(text.WrapSoft(notes(r), width) + "\n")
	for _, x := range remarks {
		b.WriteString(text.WrapSoft(x, width) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func trials(n int) string {
	if n == 1 {
		return "1 trial: no claim of a difference rests on that"
	}
	return fmt.Sprintf("medians of %d trials in turns", n)
}

func verdict(l Line, color bool) string {
	word := "yes"
	switch {
	case l.Valid < l.Trials && l.Trials > 1:
		word = fmt.Sprintf("%d of %d", l.Valid, l.Trials)
	case l.Valid < l.Trials:
		word = "no"
	}
	if color && word != "yes" {
		return text.FgRed.Sprint(word)
	}
	return word
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// number shows three digits that count; a dash is what is not known.
func number(v *float64) string {
	switch {
	case v == nil:
		return "-"
	case *v >= 100:
		return fmt.Sprintf("%.0f", *v)
	case *v >= 10:
		return fmt.Sprintf("%.1f", *v)
	}
	return fmt.Sprintf("%.2f", *v)
}

// notes says what the columns are, and what the ways are that were run.
func notes(r Result) string {
	ran := map[string]bool{}
	for _, x := range r.Rows {
		ran[x.Way] = true
	}
	var b strings.Builder
	for _, w := range trial.Ways() {
		if ran[w.Name] {
			fmt.Fprintf(&b, "%s: %s.\n", w.Name, w.What)
		}
	}
	b.WriteString("Times count from the moment at which a buyer was due to click: until the first answer, and until the order was committed. " +
		"Behind is how late the last of the first answers came; beyond a second the service cannot take so many clicks. " +
		"The database's work is what PostgreSQL counted, buyers who ask for the final answer included; its CPU is of all its processes.")
	return b.String()
}
