package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"queuelab/bench/broker"
)

// Runner measures specs and hands over each cell as soon as it is finished.
type Runner struct {
	Lab      *Lab
	Suite    string
	Seed     uint64
	Width    int // crash and sale cells at once; latency and throughput always run alone
	Progress *Progress
	Finished func(Cell) error // called one at a time; an error ends the run
}

// Run measures the specs. It returns early when ctx ends; what was finished by
// then has been handed over.
func (r *Runner) Run(ctx context.Context, specs []Spec) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	measure := func(s Spec) {
		if ctx.Err() != nil {
			return
		}
		r.Progress.start(s)
		c := r.cell(ctx, s)
		if ctx.Err() != nil {
			return // cut short: not a finding
		}
		mu.Lock()
		defer mu.Unlock()
		r.Progress.finish(s, c)
		if err := r.Finished(c); err != nil {
			cancel(err)
		}
	}
	// Order is shuffled so that what the machine does over time does not fall
	// on one setting; brokers are started before the first cell that needs them.
	rng := rand.New(rand.NewPCG(r.Seed, 1))
	var alone, beside []Spec
	for _, s := range specs {
		if s.alone() {
			alone = append(alone, s)
		} else {
			beside = append(beside, s)
		}
	}
	rng.Shuffle(len(alone), func(i, j int) { alone[i], alone[j] = alone[j], alone[i] })
	for _, s := range alone {
		measure(s)
	}
	lanes := lanes(beside)
	// The longest lane first, or it would run alone at the end.
	slices.SortStableFunc(lanes, func(a, b []Spec) int { return cmp.Compare(estimateAll(b), estimateAll(a)) })
	slots := make(chan struct{}, max(1, r.Width))
	var wg sync.WaitGroup
	for _, lane := range lanes {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			for _, s := range lane {
				measure(s)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func estimateAll(specs []Spec) time.Duration {
	var d time.Duration
	for _, s := range specs {
		d += s.estimate()
	}
	return d
}

// cell measures one spec, all its trials, and judges it.
func (r *Runner) cell(ctx context.Context, s Spec) (c Cell) {
	began := time.Now()
	c = Cell{
		Backend: s.Setting.Backend, Setting: s.Setting.Name, Test: s.Test, Fault: s.Fault, Seed: r.Seed,
		Broker: Broker{Name: cmp.Or(s.Setting.Broker, "none")}, InvalidReasons: []string{}, EffectiveSettings: map[string]string{},
		PayloadBytes: s.Load.Payload, Profile: s.Setting.Profile,
	}
	defer func() { c.WallMillis = time.Since(began).Milliseconds() }()
	skip := func(verdict, why string) Cell {
		c.Verdict, c.Note, c.Trials = verdict, why, 0
		c.InvalidReasons = append(c.InvalidReasons, why)
		return c
	}
	if ok, why := s.Runs(r.Suite); !ok {
		return skip(VerdictSkipped, why)
	}
	row, err := Lookup(s.Setting.String(), s.Fault)
	if err != nil {
		return skip(VerdictInvalid, err.Error())
	}
	if row.NotApplicable() {
		return skip(VerdictNotApplicable, row.Why)
	}
	b, err := r.Lab.broker(ctx, s.Setting)
	if err != nil {
		if errors.Is(err, broker.ErrUnavailable) {
			return skip(VerdictSkipped, err.Error())
		}
		return skip(VerdictInvalid, fmt.Sprintf("the broker did not start: %v", err))
	}
	if b != nil && b.External() {
		if s.Fault == FaultBrokerKill {
			return skip(VerdictSkipped, "the broker was given by URL: it is not ours to kill")
		}
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
	r.trials(ctx, s, row, &c)
	return c
}
