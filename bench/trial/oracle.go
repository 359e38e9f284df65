package trial

import (
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"queuelab/bench/fault"
)

//go:embed oracle.csv
var oracleCSV string

// Row is what the oracle says of one fault on the settings that match.
type Row struct {
	Setting     string // backend/setting, backend/* or */*
	Fault       string
	Lost        string // an expression over Facts, "any", or "n/a"
	Redelivered string // likewise
	Basis       string // V measured, S from a source, D deduced
	Why         string
}

// Facts are what a bound is computed from: sums over the valid trials of a cell.
type Facts = fault.Facts

// Bounds are what the counts of a cell must lie between, both included; nil: no bound.
type Bounds struct {
	LostAtLeast, LostAtMost               *int64
	RedeliveredAtLeast, RedeliveredAtMost *int64
}

type termBounds func(f Facts) (least, most int64)

// lostTerms are the words of the column lost; an expression adds them up.
func lostTerms() map[string]termBounds {
	return map[string]termBounds{
		"0":       func(Facts) (int64, int64) { return 0, 0 },
		"backlog": func(f Facts) (int64, int64) { return f.Backlog, f.Backlog },
		"in-hand": func(f Facts) (int64, int64) { n := f.InHand - f.InHandDone; return n, n + f.Pops },
		"buffer":  func(f Facts) (int64, int64) { return 0, f.Buffer },
		"pops":    func(f Facts) (int64, int64) { return 0, f.Pops },
		"until resubscribed": func(f Facts) (int64, int64) {
			return f.Unheard, max(f.Published, f.Unheard)
		},
		"recent": func(f Facts) (int64, int64) { return 0, f.Recent },
		// Likewise, but that it is lost takes a sync of the disk that is slow.
		"unwritten": func(f Facts) (int64, int64) { return 0, f.Recent },
		"events":    func(f Facts) (int64, int64) { return f.Events, f.Events },
		"over":      func(f Facts) (int64, int64) { return f.Over, f.Over },
		"unusable":  func(f Facts) (int64, int64) { return f.Unusable, f.Unusable }, // 0 where the queue came back
	}
}

// redeliveredTerms are the words of the column redelivered. A kill that struck
// a consumer with something in hand must show at least once for each.
func redeliveredTerms() map[string]termBounds {
	return map[string]termBounds{
		"0":       func(Facts) (int64, int64) { return 0, 0 },
		"in-hand": func(f Facts) (int64, int64) { return min(f.Killed, f.InHand), f.InHand },
		"buffer":  func(f Facts) (int64, int64) { return 0, f.Buffer },
		"unacked": func(f Facts) (int64, int64) { return 0, f.Unacked },
		"events":  func(f Facts) (int64, int64) { return f.Events, f.Events },
		"since commit": func(f Facts) (int64, int64) {
			return min(f.Killed, f.InHand), max(f.SinceCommit, f.Unacked, f.InHand)
		},
	}
}

const (
	anything      = "any" // allowed, not required
	notApplicable = "n/a"
)

// evaluate returns the bounds of an expression; nil for "any" and "n/a".
func evaluate(expression string, terms map[string]termBounds, f Facts) (least, most *int64, err error) {
	if expression == anything || expression == notApplicable {
		return nil, nil, nil
	}
	var lo, hi int64
	for word := range strings.SplitSeq(expression, " + ") {
		term, ok := terms[word]
		if !ok {
			return nil, nil, fmt.Errorf("unknown term %q", word)
		}
		l, h := term(f)
		lo, hi = lo+l, hi+h
	}
	return &lo, &hi, nil
}

// NotApplicable reports whether the fault means nothing to the setting.
func (r Row) NotApplicable() bool { return r.Lost == notApplicable }

// Bounds computes what the facts of the trials allow.
func (r Row) Bounds(f Facts) Bounds {
	var b Bounds
	// The table was checked when it was read: its expressions evaluate.
	b.LostAtLeast, b.LostAtMost, _ = evaluate(r.Lost, lostTerms(), f)
	b.RedeliveredAtLeast, b.RedeliveredAtMost, _ = evaluate(r.Redelivered, redeliveredTerms(), f)
	return b
}

// Expect is the row as a result shows it.
func (r Row) Expect(f Facts) *Expected {
	return &Expected{Lost: r.Lost, Redelivered: r.Redelivered, LostAtMost: r.Bounds(f).LostAtMost, Basis: r.Basis, Why: r.Why}
}

// Faults lists every fault, in the order in which tables show them.
func Faults() []string {
	var names []string
	for _, f := range fault.All() {
		names = append(names, f.Name)
	}
	return append(names, FaultServiceKill)
}

type oracleKey struct{ setting, fault string }

// oracle reads the embedded table, once; it does not change afterwards.
var oracle = sync.OnceValues(func() (map[oracleKey]Row, error) { return parseOracle(oracleCSV) })

func parseOracle(text string) (map[oracleKey]Row, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.Comment, r.FieldsPerRecord = '#', 6
	lines, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read the oracle: %w", err)
	}
	if len(lines) == 0 || strings.Join(lines[0], ",") != "setting,fault,lost,redelivered,basis,why" {
		return nil, errors.New("read the oracle: no header")
	}
	rows := map[oracleKey]Row{}
	for _, l := range lines[1:] {
		row := Row{l[0], l[1], l[2], l[3], l[4], l[5]}
		if err := row.check(); err != nil {
			return nil, fmt.Errorf("oracle, row %s under %s: %w", row.Setting, row.Fault, err)
		}
		key := oracleKey{row.Setting, row.Fault}
		if _, twice := rows[key]; twice {
			return nil, fmt.Errorf("oracle: two rows for %s under %s", row.Setting, row.Fault)
		}
		rows[key] = row
	}
	return rows, nil
}

func (r Row) check() error {
	if b, s, ok := strings.Cut(r.Setting, "/"); !ok || b == "" || s == "" || b == "*" && s != "*" && !slices.Contains(traits(), s) {
		return errors.New("the setting is none of backend/setting, backend/*, */at-least-once, */at-most-once, */*")
	}
	known := false
	for _, f := range Faults() {
		known = known || f == r.Fault
	}
	if !known {
		return errors.New("unknown fault")
	}
	if _, _, err := evaluate(r.Lost, lostTerms(), Facts{}); err != nil {
		return fmt.Errorf("lost: %w", err)
	}
	if _, _, err := evaluate(r.Redelivered, redeliveredTerms(), Facts{}); err != nil {
		return fmt.Errorf("redelivered: %w", err)
	}
	if (r.Lost == notApplicable) != (r.Redelivered == notApplicable) {
		return errors.New("n/a holds for both columns or for none")
	}
	if r.Basis != "V" && r.Basis != "S" && r.Basis != "D" {
		return fmt.Errorf("basis %q is none of V, S, D", r.Basis)
	}
	if r.Why == "" {
		return errors.New("no reason given")
	}
	return nil
}

// traits are what rows for every backend can ask of a setting.
func traits() []string { return []string{"at-least-once", "at-most-once"} }

// trait is the setting's, by its profile; "" for one that is not in the table.
func trait(setting string) string {
	for _, s := range Settings() {
		if s.Backend+"/"+s.Name == setting {
			if s.Profile == ProfileAtMostOnce {
				return "at-most-once"
			}
			return "at-least-once"
		}
	}
	return ""
}

// Lookup returns the row for a fault on a setting, named backend/setting. The
// most specific wins: the setting's own, its backend's, those of its trait,
// everybody's.
func Lookup(setting, fault string) (Row, error) {
	rows, err := oracle()
	if err != nil {
		return Row{}, err
	}
	return lookup(rows, setting, fault)
}

func lookup(rows map[oracleKey]Row, setting, fault string) (Row, error) {
	backend, name, ok := strings.Cut(setting, "/")
	if !ok || backend == "" || name == "" {
		return Row{}, fmt.Errorf("oracle: setting %q is not backend/setting", setting)
	}
	for _, pattern := range []string{setting, backend + "/*", "*/" + trait(setting), "*/*"} {
		if row, ok := rows[oracleKey{pattern, fault}]; ok {
			return row, nil
		}
	}
	return Row{}, fmt.Errorf("oracle: no row for %s under %s", setting, fault)
}
