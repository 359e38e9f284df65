package choose

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"queuelab/bench/choose/claims"
	"queuelab/bench/report"
	"queuelab/bench/trial"
	"queuelab/queue"
)

// Evidence is all that an answer is drawn from. It is not safe for concurrent use.
type Evidence struct {
	// Results are the files of results, those first that count first.
	Results []Source
	// Claims are what open queues say, by backend/setting.
	Claims map[string]queue.Capabilities
	// Settings are the candidates.
	Settings []trial.Setting

	rows map[[2]string]looked // the oracle's, of setting and fault, as far as they were asked for
}

type looked struct {
	row trial.Row
	err error
}

// Source is one result and where it is from.
type Source struct {
	File   string
	Result trial.Result
}

// measurement is a cell of a result with trials that count.
type measurement struct {
	*trial.Cell
	file string
	host trial.Host
	run  string // where both are equal two cells were measured in turn
}

// New is the evidence of these results, of what queues are known to claim, and of
// every setting that there is.
func New(results ...Source) (*Evidence, error) {
	kept, err := claims.All()
	if err != nil {
		return nil, err
	}
	return &Evidence{Results: results, Claims: kept, Settings: trial.Settings(), rows: map[[2]string]looked{}}, nil
}

// expects is the oracle's row of a fault on a setting.
func (e *Evidence) expects(setting, fault string) (trial.Row, error) {
	key := [2]string{setting, fault}
	l, ok := e.rows[key]
	if !ok {
		l.row, l.err = trial.Lookup(setting, fault)
		e.rows[key] = l
	}
	return l.row, l.err
}

// Load reads the results of these files or directories.
func Load(paths ...string) ([]Source, error) {
	var all []Source
	for _, p := range paths {
		result, err := report.Read(p)
		if err != nil {
			return nil, err
		}
		if info, err := os.Stat(p); err == nil && info.IsDir() {
			p = filepath.Join(p, report.ResultFile)
		}
		all = append(all, Source{p, result})
	}
	return all, nil
}

// Newest reads the results in the folders of dir that measured something, the
// newest first, as far as they are from the newest one's machine: numbers of two
// machines do not stand beside each other. Campaigns come after the others, since
// their trials disturb one another's timings; what was lost counts from all. What
// cannot be read is told as skipped.
func Newest(dir string) (found []Source, skipped error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", report.ResultFile))
	if err != nil {
		return nil, fmt.Errorf("look for results: %w", err)
	}
	for _, f := range files {
		result, err := report.Read(f)
		if err != nil {
			skipped = errors.Join(skipped, err)
			continue
		}
		s := Source{f, result}
		if slices.ContainsFunc(result.Cells, func(c trial.Cell) bool { return counts(&c) }) {
			found = append(found, s)
		}
	}
	slices.SortStableFunc(found, func(a, b Source) int { return b.Result.Run.StartedAt.Compare(a.Result.Run.StartedAt) })
	if len(found) > 0 {
		newest := found[0].Result.Run.Host
		found = slices.DeleteFunc(found, func(s Source) bool {
			return s.Result.Run.Host.CPU != newest.CPU || s.Result.Run.Host.Cores != newest.Cores
		})
	}
	slices.SortStableFunc(found, func(a, b Source) int { return cmp.Compare(oneIf(a.campaign()), oneIf(b.campaign())) })
	return found, skipped
}

func (s Source) campaign() bool { return s.Result.Run.Suite == trial.SuiteFaults }

// Line tells a source in one line.
func (s Source) Line() string {
	r := s.Result.Run
	return fmt.Sprintf("%s: %s, suite %s, commit %s, %s × %d", s.File, r.StartedAt.UTC().Format(time.DateOnly), r.Suite, r.Commit, r.Host.CPU, r.Host.Cores)
}

// counts reports whether a cell's numbers are of the real broker, and prove
// something.
func counts(c *trial.Cell) bool {
	return c.Valid > 0 && !c.Broker.Emulated && c.Verdict != trial.VerdictInvalid && c.Verdict != trial.VerdictSkipped && c.Verdict != trial.VerdictNotApplicable
}

// cells are those of a setting's tests that count, in the order of the results.
// fault "" is any.
func (e *Evidence) cells(setting, fault string, tests ...string) []*measurement {
	var all []*measurement
	for i := range e.Results {
		r := &e.Results[i].Result
		for j := range r.Cells {
			c := &r.Cells[j]
			if isOf(c, setting) && (fault == "" || c.Fault == fault) && slices.Contains(tests, c.Test) && counts(c) {
				all = append(all, &measurement{Cell: c, file: e.Results[i].File, host: r.Run.Host, run: r.Run.ID})
			}
		}
	}
	return all
}

// isOf is c.Backend+"/"+c.Setting == setting, which is asked of every cell.
func isOf(c *trial.Cell, setting string) bool {
	n := len(c.Backend)
	return len(setting) == n+1+len(c.Setting) && setting[:n] == c.Backend && setting[n] == '/' && setting[n+1:] == c.Setting
}

// first is the first of those cells; nil: there is none.
func (e *Evidence) first(setting string, test string) *measurement {
	if all := e.cells(setting, "", test); len(all) > 0 {
		return all[0]
	}
	return nil
}

// doubtful are the cells whose trials prove nothing, with why.
func (e *Evidence) doubtful(setting string) []string {
	var all []string
	for i := range e.Results {
		for _, c := range e.Results[i].Result.Cells {
			if !isOf(&c, setting) {
				continue
			}
			switch c.Verdict {
			case trial.VerdictInvalid, trial.VerdictContradiction, trial.VerdictSaturated, trial.VerdictNotReproduced:
				all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s: %s: %s", setting, c.Test, c.Fault, c.Verdict, c.Note)))
			}
		}
	}
	return all
}
