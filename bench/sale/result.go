// Package sale compares ways of selling: the same buyers, at the same moments,
// before each architecture of the service and each of its queues.
package sale

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"queuelab/bench/trial"
)

// Schema is the version of Result's JSON form. Fields are added, never renamed.
const Schema = 1

// Result is one comparison.
type Result struct {
	Schema     int        `json:"schema"`
	StartedAt  time.Time  `json:"startedAt"`
	FinishedAt time.Time  `json:"finishedAt"`
	Complete   bool       `json:"complete"` // false: interrupted, what was finished is here
	Commit     string     `json:"commit"`
	Host       trial.Host `json:"host"`
	Load       Load       `json:"load"`
	Rows       []Row      `json:"rows"` // one for each sale
}

// Load is what all the sales have in common.
type Load struct {
	Buyers      int     `json:"buyers"`
	Stock       int     `json:"stock"`
	Rate        float64 `json:"rate"` // clicks a second, at moments by chance
	Connections int     `json:"connections"`
	Seed        uint64  `json:"seed"` // of the first trial; each has the next one
	Trials      int     `json:"trials"`
	Database    string  `json:"database"`
}

// Row is one sale.
type Row struct {
	Trial int `json:"trial"` // from 1
	trial.SaleRow
	Error string `json:"error,omitempty"` // why it could not be held
}

// Line is what the trials of one way and queue have in common: medians over the
// valid ones, or over all where none is.
type Line struct {
	Way, Setting string
	Trials       int
	Valid        int
	Why          string // what the first that is not valid has; or why it was skipped
	Skipped      bool

	Sold, Oversold, Undersold, Double, Failed int // of the worst trial
	Figures                                   map[string]*float64
}

// figure is a column of numbers; nil: the sale does not tell.
type figure struct {
	Name, Head string
	of         func(r Row) *float64
}

func figures() []figure {
	micros := func(p *trial.Percentiles, of func(*trial.Percentiles) int64) *float64 {
		if p == nil {
			return nil
		}
		ms := float64(of(p)) / 1000
		return &ms
	}
	p50 := func(p *trial.Percentiles) int64 { return p.P50 }
	p99 := func(p *trial.Percentiles) int64 { return p.P99 }
	database := func(of func(*trial.DatabaseLoad) float64) func(Row) *float64 {
		return func(r Row) *float64 {
			if r.Database == nil {
				return nil
			}
			n := of(r.Database)
			return &n
		}
	}
	return []figure{
		{"answer_p50_ms", "answer\np50 ms", func(r Row) *float64 { return micros(r.AnswerMicros, p50) }},
		{"answer_p99_ms", "\np99 ms", func(r Row) *float64 { return micros(r.AnswerMicros, p99) }},
		{"committed_p50_ms", "committed\np50 ms", func(r Row) *float64 { return micros(r.CommittedMicros, p50) }},
		{"committed_p99_ms", "\np99 ms", func(r Row) *float64 { return micros(r.CommittedMicros, p99) }},
		{"orders_per_second", "orders\na second", func(r Row) *float64 { return known(r.OrdersPerSecond) }},
		{"behind_ms", "behind\nms", func(r Row) *float64 { n := float64(r.BehindMillis); return &n }},
		{"transactions", "database\ncommits", database(func(d *trial.DatabaseLoad) float64 { return float64(d.Transactions) })},
		{"transactions_per_second", "\na second", database(func(d *trial.DatabaseLoad) float64 { return d.PerSecond })},
		{"transactions_per_order", "\nan order", database(func(d *trial.DatabaseLoad) float64 { return d.PerOrder })},
		{"rows_written", "\nrows", database(func(d *trial.DatabaseLoad) float64 { return float64(d.RowsWritten) })},
		{"database_cpu_seconds", "\nCPU s", func(r Row) *float64 {
			if r.Database == nil {
				return nil
			}
			return known(r.Database.CPUSeconds)
		}},
	}
}

// known is nil for 0, which stands for what is not known.
func known(v float64) *float64 {
	if v == 0 {
		return nil
	}
	return &v
}

// valid reports whether the sale was held and did nothing wrong.
func (r Row) valid() bool { return r.Error == "" && r.Valid() }

func (r Row) why() string {
	return cmp.Or(r.Error, r.Skipped, strings.Join(r.Invalid, ", "))
}

// Lines folds the trials, in the order of tables.
func Lines(rows []Row) []Line {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b Row) int { return trial.SaleOrder(a.SaleRow, b.SaleRow) })
	var lines []Line
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Way == rows[0].Way && rows[n].Setting == rows[0].Setting {
			n++
		}
		lines = append(lines, fold(rows[:n]))
		rows = rows[n:]
	}
	return lines
}

func fold(rows []Row) Line {
	l := Line{Way: rows[0].Way, Setting: rows[0].Setting, Trials: len(rows), Sold: rows[0].Sold, Figures: map[string]*float64{}}
	var valid []Row
	for _, r := range rows {
		if r.valid() {
			valid = append(valid, r)
		} else if l.Why == "" {
			l.Why, l.Skipped = r.why(), r.Skipped != ""
		}
		l.Sold, l.Oversold, l.Undersold = min(l.Sold, r.Sold), max(l.Oversold, r.Oversold), max(l.Undersold, r.Undersold)
		l.Double, l.Failed = max(l.Double, r.Double), max(l.Failed, r.Failed)
	}
	l.Valid = len(valid)
	// A sale that went wrong may be fast for that reason: its figures are no match for
	// those of one that went right.
	for _, f := range figures() {
		l.Figures[f.Name] = median(valid, f.of)
	}
	return l
}

func median(rows []Row, of func(Row) *float64) *float64 {
	var vs []float64
	for _, r := range rows {
		if v := of(r); v != nil {
			vs = append(vs, *v)
		}
	}
	if len(vs) == 0 {
		return nil
	}
	slices.Sort(vs)
	m := (vs[(len(vs)-1)/2] + vs[len(vs)/2]) / 2
	return &m
}

// JSON writes the result for programs.
func JSON(w io.Writer, r Result) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// CSV writes a line for each sale, with a head. What a sale does not tell is
// empty, never 0, and so are the figures of one that is not valid.
func CSV(w io.Writer, r Result) error {
	out := csv.NewWriter(w)
	head := []string{"way", "queue", "trial", "valid", "why", "buyers", "stock", "sold", "oversold", "undersold", "double", "lost", "waiting", "failed", "refused", "unanswered"}
	fs := figures()
	for _, f := range fs {
		head = append(head, f.Name)
	}
	if err := out.Write(head); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	for _, x := range r.Rows {
		held := x.Error == "" && x.Skipped == ""
		number := func(n int) string {
			if !held {
				return ""
			}
			return strconv.Itoa(n)
		}
		record := []string{x.Way, x.Setting, strconv.Itoa(x.Trial), strconv.FormatBool(x.valid()), x.why(), strconv.Itoa(x.Buyers), strconv.Itoa(x.Stock),
			number(x.Sold), number(x.Oversold), number(x.Undersold), number(x.Double), number(x.LostOrders), number(x.Waiting), number(x.Failed),
			number(int(x.Refused)), number(int(x.Unanswered))}
		for _, f := range fs {
			text := ""
			if v := f.of(x); v != nil && x.valid() {
				text = strconv.FormatFloat(*v, 'f', -1, 64)
			}
			record = append(record, text)
		}
		if err := out.Write(record); err != nil {
			return fmt.Errorf("write CSV: %w", err)
		}
	}
	out.Flush()
	return out.Error()
}
