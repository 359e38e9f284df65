package peers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// File is the name of the result in its directory.
const File = "peers.json"

// ErrExists is the answer to a directory that holds a result already.
var ErrExists = errors.New("there is a result already")

// Claim makes dir ready for a result, and refuses one that holds a result
// unless force is set.
func Claim(dir string, force bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory %s: %w", dir, err)
	}
	_, err := os.Lstat(filepath.Join(dir, File))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look into the directory %s: %w", dir, err)
	case !force:
		return fmt.Errorf("%s: %w: choose another directory with --out, or replace it with --force", filepath.Join(dir, File), ErrExists)
	}
	return nil
}

// Write writes peers.json into dir, whole or not at all.
func Write(dir string, r Result) (err error) {
	data, err := Encode(r)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+File+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", File, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", File, errors.Join(err, os.Remove(f.Name())))
		}
	}()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(dir, File))
}

// Encode is the result as peers.json has it.
func Encode(r Result) ([]byte, error) {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	return append(data, '\n'), nil
}

// Table prints the result for people. What is below its target says so, also
// without colours.
func Table(w io.Writer, r Result, color bool, width int) error {
	if width <= 0 {
		width = 120
	}
	var b strings.Builder
	wrap := func(s string) {
		first, _, _ := strings.Cut(s, "\n") // the rest is in the file, and was said
		b.WriteString(trimmed(text.WrapSoft(first, width)) + "\n")
	}
	if len(r.Rows) > 0 {
		var rows []table.Row
		for _, x := range r.Rows {
			rows = append(rows, table.Row{x.Backend, x.Client, x.Direction, x.Tool, thousands(x.ToolRate), thousands(x.OursRate),
				fmt.Sprintf("%.2f", x.Ratio), ratios(x.Pairs, func(p Pair) float64 { return p.Ratio }),
				fmt.Sprintf("≥ %.2f", x.Target), mark(x.Reached, color), x.Guarantee + depth(x)})
		}
		b.WriteString(draw(color, width, []string{"backend", "client", "direction", "tool", "tool /s", "ours /s", "ratio", "pairs", "target", "", "guarantee"}, rows) + "\n\n")
	}
	if len(r.Latency) > 0 {
		var rows []table.Row
		for _, x := range r.Latency {
			rows = append(rows, table.Row{x.Backend, x.Client, fmt.Sprintf("%.0f", x.RawP50Micros), fmt.Sprintf("%.0f", x.OursP50Micros),
				fmt.Sprintf("%.2f", x.Ratio), ratios(x.Pairs, func(p LatencyPair) float64 { return p.Ratio }),
				fmt.Sprintf("≤ %.2f", x.Target), latencyMark(x, color), x.Guarantee})
		}
		wrap(fmt.Sprintf("End to end over a bare loop, %d messages a second, open loop:", latencyRate))
		b.WriteString(draw(color, width, []string{"backend", "client", "bare p50 µs", "ours p50 µs", "ratio", "pairs", "target", "", "guarantee"}, rows) + "\n\n")
	}
	for _, s := range r.Failed {
		wrap(fmt.Sprintf("✗ failed %s %s %s, %s: %s", s.Backend, s.Client, s.Direction, s.Tool, s.Reason))
	}
	for _, s := range r.Skipped {
		wrap(fmt.Sprintf("- skipped %s %s %s, %s: %s", s.Backend, s.Client, s.Direction, s.Tool, s.Reason))
	}
	if !r.Complete {
		wrap("INTERRUPTED: only what was finished.")
	}
	wrap(r.Note)
	if h := r.Host; h.Cores > 0 {
		wrap(fmt.Sprintf("Load %.1f on %s before the run.", h.Load1, plural(h.Cores, "core")))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// depth tells rows apart that differ in how much shares a round trip alone.
func depth(r Row) string {
	for _, p := range []string{"-P 16", "-P 1"} {
		if strings.Contains(r.ToolSettings, "-c 100 "+p+":") {
			return ", " + p
		}
	}
	return ""
}

// draw renders a table whose last column is broken where width does not hold it.
func draw(color bool, width int, columns []string, rows []table.Row) string {
	t := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options = table.Options{SeparateHeader: true}
	t.SetStyle(style)
	var head table.Row
	var configs []table.ColumnConfig
	for i, c := range columns {
		align := text.AlignLeft
		if strings.ContainsAny(c, "/µ") || c == "ratio" || c == "target" {
			align = text.AlignRight
		}
		configs = append(configs, table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align})
		if color {
			c = text.Bold.Sprint(c)
		}
		head = append(head, c)
	}
	t.AppendHeader(head)
	t.AppendRows(rows)
	last := &configs[len(configs)-1]
	last.WidthMaxEnforcer = text.WrapSoft
	for last.WidthMax = 100; ; last.WidthMax -= 4 {
		t.SetColumnConfigs(configs)
		s := trimmed(t.Render())
		if widest(s) <= width || last.WidthMax <= 24 {
			return s
		}
	}
}

func widest(s string) int {
	w := 0
	for l := range strings.SplitSeq(s, "\n") {
		w = max(w, text.StringWidthWithoutEscSequences(l))
	}
	return w
}

func mark(reached, color bool) string {
	s, c := "✓ reached", text.FgGreen
	if !reached {
		s, c = "✗ missed", text.FgRed
	}
	if color {
		return c.Sprint(s)
	}
	return s
}

func latencyMark(x LatencyRow, color bool) string {
	if x.Saturated {
		return "? bare loop saturated"
	}
	return mark(x.Reached, color)
}

// ratios shows how far the pairs differ.
func ratios[T any](pairs []T, of func(T) float64) string {
	lo, hi := of(pairs[0]), of(pairs[0])
	for _, p := range pairs {
		lo, hi = min(lo, of(p)), max(hi, of(p))
	}
	return fmt.Sprintf("%d: %.2f–%.2f", len(pairs), lo, hi)
}

// thousands is a rate for people: 12,345.
func thousands(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func trimmed(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
