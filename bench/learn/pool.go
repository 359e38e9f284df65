package learn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"queuelab/bench/broker"
)

// pool is the brokers that lessons share: each kind and setting is started once,
// when it is first needed, or was given by URL.
type pool struct {
	external map[string]string
	log      io.Writer

	mu     sync.Mutex
	shared map[Need]*shared

	kafka sync.Mutex // one lesson at a time has the shared Kafka: only one proxy can stand before it
}

// reserve waits until a lesson may have what it needs.
func (p *pool) reserve(needs []Need) (release func()) {
	if !slices.ContainsFunc(needs, func(n Need) bool { return n.Kind == "kafka" && !n.Own && !n.Storage }) {
		return func() {}
	}
	p.kafka.Lock()
	return p.kafka.Unlock
}

type shared struct {
	once sync.Once
	b    *broker.Broker
	err  error
}

// get returns a broker, and what to do once the lesson is over.
func (p *pool) get(ctx context.Context, n Need) (b *broker.Broker, release func() error, err error) {
	if n.Own || n.Storage {
		b, err := p.start(ctx, n)
		if err != nil {
			return nil, nil, err
		}
		return b, b.Stop, nil
	}
	p.mu.Lock()
	s := p.shared[n]
	if s == nil {
		s = &shared{}
		p.shared[n] = s
	}
	p.mu.Unlock()
	s.once.Do(func() {
		// Those to come need it too, whatever ends this one.
		if url := p.external[n.Kind]; url != "" {
			s.b, s.err = broker.External(n.Kind, url)
			return
		}
		s.b, s.err = p.start(context.WithoutCancel(ctx), n)
	})
	return s.b, func() error { return nil }, s.err
}

func (p *pool) start(ctx context.Context, n Need) (*broker.Broker, error) {
	if n.Storage {
		if err := broker.StorageAvailable(); err != nil {
			return nil, fmt.Errorf("%w: %w", broker.ErrUnavailable, err)
		}
	}
	return broker.Start(ctx, broker.Options{Kind: n.Kind, Setting: n.Setting, Storage: n.Storage, Log: p.log})
}

func (p *pool) close() error {
	var errs []error
	for _, s := range p.shared {
		if s.b != nil && !s.b.External() {
			errs = append(errs, s.b.Stop())
		}
	}
	return errors.Join(errs...)
}
