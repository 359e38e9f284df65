package live

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"queuelab/bench/broker"
)

// pool keeps brokers warm between shows.
type pool struct {
	external map[string]string
	log      io.Writer
	mu       sync.Mutex
	places   map[place]*warm
}

// place tells brokers apart.
type place struct{ kind, conf, purpose string }

// warm is one broker, and how it stands. What it is struck by strikes every lane
// that is on it.
type warm struct {
	mu      sync.Mutex // one starts, strikes or heals it at a time
	broker  *broker.Broker
	storage bool // its power can be cut

	state sync.Mutex
	down  string // the strike in force; "": none
}

func newPool(external map[string]string, log io.Writer) *pool {
	return &pool{external: external, log: log, places: map[place]*warm{}}
}

// get returns a broker that serves, and starts it where it does not.
func (p *pool) get(ctx context.Context, at place) (*warm, error) {
	p.mu.Lock()
	w := p.places[at]
	if w == nil {
		w = &warm{}
		p.places[at] = w
	}
	p.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broker != nil {
		if w.broker.Ready(ctx) == nil {
			return w, nil
		}
		if !w.broker.External() { // it died, or was left as a strike had left it
			if err := w.broker.Stop(); err != nil {
				return nil, err
			}
		}
		w.broker = nil
	}
	w.set("")
	if url := p.external[at.kind]; url != "" && at.purpose == "" {
		b, err := broker.External(at.kind, url)
		if err == nil {
			err = b.Ready(ctx)
		}
		if err != nil {
			return nil, err
		}
		w.broker = b
		return w, nil
	}
	// Its power can be cut where this machine lets that be seen.
	single := slices.Contains(broker.Kinds(), at.kind)
	w.storage = single && at.purpose == "" && at.kind != "nats" && broker.StorageAvailable() == nil
	b, err := broker.Start(ctx, broker.Options{Kind: at.kind, Setting: at.conf, Storage: w.storage, Log: p.log})
	if errors.Is(err, broker.ErrNoStorage) {
		w.storage = false
		b, err = broker.Start(ctx, broker.Options{Kind: at.kind, Setting: at.conf, Log: p.log})
	}
	if err != nil {
		return nil, err // it names the broker
	}
	w.broker = b
	return w, nil
}

func (w *warm) set(strike string) {
	w.state.Lock()
	defer w.state.Unlock()
	w.down = strike
}

// struck is the strike in force; "" where there is none.
func (w *warm) struck() string {
	w.state.Lock()
	defer w.state.Unlock()
	return w.down
}

func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, w := range p.places {
		w.mu.Lock()
		if w.broker != nil && !w.broker.External() {
			errs = append(errs, w.broker.Stop())
		}
		w.mu.Unlock()
	}
	return errors.Join(errs...)
}
