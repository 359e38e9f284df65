package learn

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"queuelab/bench/broker"
)

// within bounds one lesson, without the start of its brokers.
const within = 30 * time.Second

// Options say how lessons are run.
type Options struct {
	External map[string]string      // URLs of brokers by kind; the others are started
	Seckill  func() (string, error) // where the service's program is; asked by those that need it
	Log      io.Writer              // progress for people, a line at a time; may be nil
	// Done gets each result as it comes, one at a time, but none of what was not begun
	// when ctx ended; may be nil.
	Done func(Result)
}

// Run tries the lessons, those that need different brokers side by side, and
// returns their results in the same order. A broker that is not to be had skips
// the lessons that need it. The error is that of a lab that could not be tidied
// up, or ctx's: what a lesson found is in its result.
func Run(ctx context.Context, lessons []Lesson, o Options) ([]Result, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	p := &pool{external: o.External, log: o.Log, shared: map[Need]*shared{}}
	results := make([]Result, len(lessons))
	var (
		lanes sync.WaitGroup
		mu    sync.Mutex
		errs  []error
	)
	for _, lane := range split(lessons) {
		lanes.Go(func() {
			for _, i := range lane {
				interrupted := ctx.Err() != nil
				r, err := try(ctx, lessons[i], p, o)
				mu.Lock()
				results[i] = r
				errs = append(errs, err)
				if o.Done != nil && !interrupted {
					o.Done(r)
				}
				mu.Unlock()
			}
		})
	}
	lanes.Wait()
	return results, errors.Join(append(errs, p.close(), ctx.Err())...)
}

// split makes lanes of lessons that may run side by side, by what they need: one
// for each of the slow brokers, and one for all others. A lesson that needs both
// slow ones is in the lane of one, and waits for the other; see pool.reserve.
func split(lessons []Lesson) (lanes [][]int) {
	by := map[string][]int{}
	for i, l := range lessons {
		lane := "redis"
		for _, slow := range []string{"kafka", "rabbitmq"} {
			if slices.ContainsFunc(l.Needs, func(n Need) bool { return n.Kind == slow }) {
				lane = slow
			}
		}
		by[lane] = append(by[lane], i)
	}
	for _, lane := range by {
		lanes = append(lanes, lane)
	}
	return lanes
}

// try runs one lesson.
func try(ctx context.Context, l Lesson, p *pool, o Options) (r Result, tidy error) {
	r = Result{
		Number: l.Number, Name: l.Name, Topic: l.Topic, Question: l.Question, Right: l.Right, Measured: -1,
		Why: l.Why, Say: l.Say, Further: l.Further, At: time.Now(), ID: strings.ToLower(rand.Text()[:8]),
	}
	for _, c := range l.Choices {
		r.Choices = append(r.Choices, c.Text)
	}
	if ctx.Err() != nil {
		r.Skipped = "interrupted before it was tried"
		return r, nil
	}
	dir, err := os.MkdirTemp("", fmt.Sprintf("queuelab-%d-learn-", os.Getpid())) // a later run removes what a killed one left
	if err != nil {
		return r, fmt.Errorf("make a directory for the lesson: %w", err)
	}
	// The brokers are not started on the lesson's time.
	for _, n := range l.Needs {
		if n.Own || n.Storage {
			continue
		}
		if _, _, err := p.get(ctx, n); err != nil {
			r.Skipped, r.Error = refused(err)
			return r, os.RemoveAll(dir)
		}
	}
	defer p.reserve(l.Needs)()
	s := newStand(ctx, p, l, r.ID, dir, o.Seckill)
	err = s.run((*Stand).startOwn)
	began := time.Now()
	if err == nil {
		limited, clock, cancel := newClock(ctx, within)
		defer cancel()
		s.ctx, s.clock = limited, clock
		if err = s.run(l.Try); err != nil && limited.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(limited), err)
		}
	}
	r.Millis = float64(time.Since(began).Milliseconds())
	r.Figures, r.Said, r.Versions = s.figures, s.script.all(), s.versions // what tidies up is no part of it
	tidy = s.tidy()
	if err != nil {
		r.Skipped, r.Error = refused(err)
		if ctx.Err() != nil {
			r.Skipped, r.Error = "interrupted", ""
		}
		return r, tidy
	}
	r.Measured, err = l.Judge(r.Figures)
	if err := errors.Join(err, s.script.proven(r.ID)); err != nil {
		r.Error = err.Error()
	}
	for _, t := range []*Text{&r.Why, &r.Say} {
		t.EN, t.ZH = Fill(t.EN, r.Figures), Fill(t.ZH, r.Figures)
	}
	return r, tidy
}

// refused tells what is missing here from what went wrong.
func refused(err error) (skipped, wrong string) {
	if errors.Is(err, broker.ErrUnavailable) {
		return err.Error(), ""
	}
	return "", err.Error()
}

// run lets the experiment run, on a goroutine that its steps can end.
func (s *Stand) run(try func(*Stand)) error {
	done := make(chan error, 1)
	go func() {
		finished := false
		defer func() {
			switch p := recover(); {
			case p != nil:
				done <- fmt.Errorf("the lesson panicked: %v", p)
			case !finished && s.cause == nil:
				done <- errors.New("the lesson ended itself")
			default:
				done <- s.cause
			}
		}()
		try(s)
		finished = true
	}()
	return <-done
}
