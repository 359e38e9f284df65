// Package fleet is what instances of the service tell of themselves, so that an
// operator of any one sees them all: each writes that it lives where the others
// look, and who falls silent was killed, or cannot reach the database.
package fleet

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"queuelab/app/loop"
)

const (
	// beatEvery is how often an instance says that it lives.
	beatEvery = 2 * time.Second
	// SilentAfter is for how long it may say nothing.
	SilentAfter = 5 * beatEvery
	// checkTimeout bounds how long the parts of an instance may take to answer.
	checkTimeout = 2 * time.Second
)

// Instance is one process of the service.
type Instance struct {
	Number  int    // of its lease
	Holder  string // no other process has it
	Name    string // for people, such as the host's and the process's number
	Role    string
	Version string
	Queue   string // without secrets
	// Terms are what all instances must agree on, by name, without secrets; nil: its
	// build does not tell.
	Terms   map[string]string
	Failing []string      // the parts that do not answer it, by name; none: it is ready
	Stopped bool          // it said that it stops
	Up      time.Duration // since it started, as of its last word
	Silent  time.Duration // since its last word
}

// Health is how an instance is.
type Health string

const (
	Ready    Health = "ready"
	NotReady Health = "not_ready"
	Stopped  Health = "stopped"
	Silent   Health = "silent" // killed, or it cannot reach the database
)

// Health says how the instance is, by its last word.
func (i Instance) Health() Health {
	switch {
	case i.Stopped:
		return Stopped
	case i.Silent > SilentAfter:
		return Silent
	case len(i.Failing) > 0:
		return NotReady
	}
	return Ready
}

// Store keeps what instances tell.
type Store interface {
	// Beat writes down an instance, if it still has its number; the time of it is
	// that of the store's clock.
	Beat(ctx context.Context, i Instance) error
	// Instances lists those that said something lately, by number.
	Instances(ctx context.Context) ([]Instance, error)
}

// Pulse has one instance tell of itself.
type Pulse struct {
	Store Store
	Self  Instance // what does not change
	// Ready are the parts that must answer, by name.
	Ready map[string]func(context.Context) error
	Log   *slog.Logger

	outage loop.Outage
}

// Run tells until ctx ends, and then that the instance stops.
func (p *Pulse) Run(ctx context.Context) {
	p.outage.Tell = loop.Say(p.Log, "this instance could not say how it is")
	began := time.Now()
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		i := p.Self
		i.Failing, i.Up = Failing(ctx, p.Ready), time.Since(began)
		if ctx.Err() != nil {
			i.Failing, i.Stopped = nil, true
		}
		p.beat(context.WithoutCancel(ctx), i)
		if i.Stopped {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

func (p *Pulse) beat(ctx context.Context, i Instance) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	p.outage.Note(p.Store.Beat(ctx, i))
}

// Failing asks every part at once, and names those that do not answer well in
// time.
func Failing(ctx context.Context, ready map[string]func(context.Context) error) []string {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var mu sync.Mutex
	var failing []string
	var wg sync.WaitGroup
	for name, check := range ready {
		wg.Go(func() {
			if check(ctx) != nil {
				mu.Lock()
				defer mu.Unlock()
				failing = append(failing, name)
			}
		})
	}
	wg.Wait()
	slices.SortFunc(failing, strings.Compare)
	return failing
}
