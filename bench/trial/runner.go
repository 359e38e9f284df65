package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"queuelab/bench/broker"
	"queuelab/bench/fault"
)

// Runner measures specs and hands over each cell as soon as it is finished.
type Runner struct {
	Lab      *Lab
	Suite    string
	Seed     uint64
	Width    int // crash and sale cells at once; the others always run alone
	Progress *Progress
	Kept     []Outcome           // trials of an earlier run, which are not measured again
	Only     int                 // the number of the only trial of each cell to measure; 0: all
	Trial    func(Outcome) error // called after each trial, one at a time; an error ends the run; may be nil
	Finished func(Cell) error    // called one at a time; an error ends the run

	mu    sync.Mutex
	order int // trials begun

	measure func(context.Context, Spec, uint64) (*measured, error) // nil: the lab's; tests have another
}

// cellRun is a cell whose trials are under way.
type cellRun struct {
	spec     Spec
	cell     Cell
	row      Row
	kept     map[int]Outcome // by the number of the trial, from an earlier run
	outcomes []Outcome
	prepared bool
	skipped  bool
}

// Run measures the specs. It returns early when ctx ends; what was finished by
// then has been handed over.
//
// The trials of all settings are interleaved: every round has one trial of each
// cell, in an order that the seed draws anew, so that what the machine does over
// time does not fall on one setting.
func (r *Runner) Run(ctx context.Context, specs []Spec) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.Progress.beside(r.Width)
	for _, o := range r.Kept {
		r.order = max(r.order, o.Run.Order)
	}
	var alone, beside []Spec
	for _, s := range specs {
		if s.alone() {
			alone = append(alone, s)
		} else {
			beside = append(beside, s)
		}
	}
	r.rounds(ctx, cancel, alone, 1)
	lanes := lanes(beside)
	if r.Width <= 1 { // one at a time anyway, and so in rounds of all
		lanes = [][]Spec{beside}
	}
	// The longest lane first, or it would run alone at the end.
	slices.SortStableFunc(lanes, func(a, b []Spec) int { return cmp.Compare(estimateAll(b), estimateAll(a)) })
	slots := make(chan struct{}, max(1, r.Width))
	var wg sync.WaitGroup
	for i, lane := range lanes {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			r.rounds(ctx, cancel, lane, uint64(2+i))
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// rounds measures the trials of some cells, one after the other.
func (r *Runner) rounds(ctx context.Context, cancel context.CancelCauseFunc, specs []Spec, stream uint64) {
	rng := rand.New(rand.NewPCG(r.Seed, stream))
	cells := make([]*cellRun, len(specs))
	most := 0
	for i, s := range specs {
		cells[i] = r.newCell(s)
		most = max(most, s.Trials)
	}
	for n := 1; n <= most; n++ {
		if r.Only != 0 && n != r.Only {
			continue
		}
		round := slices.DeleteFunc(slices.Clone(cells), func(c *cellRun) bool { return c.spec.Trials < n })
		rng.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		for _, c := range round {
			if ctx.Err() != nil {
				return
			}
			if err := r.step(ctx, c, n); err != nil {
				cancel(err)
			}
		}
	}
}

// step measures trial n of a cell, unless it is kept from an earlier run, and
// hands the cell over after its last.
func (r *Runner) step(ctx context.Context, c *cellRun, n int) error {
	if c.skipped {
		return nil
	}
	if !c.prepared {
		why := r.prepare(ctx, c)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // cut short: not a finding
		}
		if why != "" {
			c.skipped = true
			return r.finish(c)
		}
		c.prepared = true
	}
	if kept, ok := c.kept[n]; ok {
		c.outcomes = append(c.outcomes, kept)
		r.Progress.trial(c.spec, kept)
	} else {
		r.Progress.start(c.spec, n)
		o := r.trial(ctx, c.spec, n)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // likewise
		}
		c.outcomes = append(c.outcomes, o)
		if err := r.keep(c.spec, o); err != nil {
			return err
		}
	}
	if n < c.spec.Trials && n != r.Only {
		return nil
	}
	fold(c.spec, c.row, c.outcomes, r.Seed, &c.cell)
	return r.finish(c)
}

func (r *Runner) trial(ctx context.Context, s Spec, n int) Outcome {
	r.mu.Lock()
	r.order++
	run := TrialRun{N: n, Of: s.Trials, Order: r.order, Seed: r.Seed + uint64(n) - 1, StartedAt: time.Now()}
	r.mu.Unlock()
	s.n, s.moment = n, moment(r.Seed, s, n)
	m, err := r.one(ctx, s, run.Seed)
	return outcome(s, run, m, err)
}

// moment spreads the faults of a cell's trials evenly over a cycle, in an order
// by chance: one within each of as many equal parts as there are trials.
func moment(seed uint64, s Spec, n int) float64 {
	cell := fnv.New64a()
	fmt.Fprint(cell, s.Setting, s.Fault)
	rng := rand.New(rand.NewPCG(seed, cell.Sum64()))
	order := rng.Perm(max(1, s.Trials))
	for range n {
		rng.Float64()
	}
	return (float64(order[(n-1)%len(order)]) + rng.Float64()) / float64(len(order))
}

func (r *Runner) keep(s Spec, o Outcome) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Progress.trial(s, o)
	if r.Trial == nil {
		return nil
	}
	return r.Trial(o)
}

func (r *Runner) finish(c *cellRun) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Progress.finish(c.spec, c.cell)
	return r.Finished(c.cell)
}

func estimateAll(specs []Spec) time.Duration {
	var d time.Duration
	for _, s := range specs {
		d += s.estimate()
	}
	return d
}

func (r *Runner) newCell(s Spec) *cellRun {
	c := &cellRun{spec: s, cell: Cell{
		Backend: s.Setting.Backend, Setting: s.Setting.label(), Test: s.Test, Fault: s.Fault, Seed: r.Seed,
		Broker: Broker{Name: cmp.Or(s.Setting.Broker, "none")}, InvalidReasons: []string{}, EffectiveSettings: map[string]string{},
		PayloadBytes: s.Load.Payload, Profile: s.Setting.Profile,
	}}
	c.kept = map[int]Outcome{}
	for _, o := range r.Kept {
		if o.of(s) && len(o.Run.Invalid) == 0 { // what was invalid is measured again
			c.kept[o.Run.N] = o
		}
	}
	return c
}

// prepare finds the cell's broker and its row of the oracle. It says why there
// is nothing to measure, and has then put the verdict into the cell.
func (r *Runner) prepare(ctx context.Context, run *cellRun) string {
	s, c := run.spec, &run.cell
	skip := func(verdict, why string) string {
		c.Verdict, c.Note, c.Trials = verdict, why, 0
		c.InvalidReasons = append(c.InvalidReasons, why)
		return why
	}
	if ok, why := s.Runs(r.Suite); !ok {
		return skip(VerdictSkipped, why)
	}
	if why := s.notApplicable(); why != "" {
		return skip(VerdictNotApplicable, why)
	}
	row, err := Lookup(s.Setting.Backend+"/"+s.Setting.Name, s.Fault)
	if err != nil {
		return skip(VerdictInvalid, err.Error())
	}
	run.row = row
	if row.NotApplicable() {
		return skip(VerdictNotApplicable, row.Why)
	}
	f, _ := fault.Lookup(s.Fault) // the sale has faults of its own
	if f.OwnBroker && r.Lab.External[s.Setting.Broker] != "" {
		return skip(VerdictSkipped, "the broker was given by URL: it is not ours to break")
	}
	if f.Missing != nil && s.Test == TestFault {
		if why := f.Missing(); why != "" {
			return skip(VerdictSkipped, why)
		}
	}
	b, err := r.Lab.brokerOf(ctx, s)
	if err != nil {
		if errors.Is(err, broker.ErrUnavailable) || errors.Is(err, broker.ErrNoStorage) {
			return skip(VerdictSkipped, err.Error())
		}
		return skip(VerdictInvalid, fmt.Sprintf("the broker did not start: %v", err))
	}
	if b != nil && b.External() {
		effective, err := b.Settings(ctx)
		if err != nil {
			return skip(VerdictInvalid, err.Error())
		}
		why, err := unfit(s.Setting, effective)
		if err != nil {
			return skip(VerdictInvalid, err.Error())
		}
		if why != "" {
			c.EffectiveSettings = effective
			return skip(VerdictSkipped, why)
		}
	}
	if b != nil {
		if c.Broker.Version, err = b.Version(ctx); err != nil {
			return skip(VerdictInvalid, fmt.Sprintf("the broker does not tell its version: %v", err))
		}
	}
	if f.Means != nil && s.Test == TestFault {
		target, err := r.Lab.target(ctx, s, b)
		if err != nil {
			return skip(VerdictInvalid, err.Error())
		}
		if why := f.Means(target); why != "" {
			return skip(VerdictNotApplicable, why)
		}
	}
	return ""
}
