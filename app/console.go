package main

import (
	"context"
	"sync"

	"queuelab/app/console"
	"queuelab/app/fleet"
	"queuelab/app/reconcile"
	"queuelab/app/store"
)

// console reads for the operator's page; nil where nobody serves it.
func (s *service) console() *console.Reader {
	if s.f.Role == roleWorker {
		return nil
	}
	r := &console.Reader{Store: s.store, Backlog: s.backlog, Queue: s.queueName(), QueueUsed: s.f.Mode != modeSync, Stockless: s.f.Mode != modeQueue,
		Instance: s.lease.Number, Lab: s.lab != nil, Log: s.log}
	r.Gate, _ = s.gate.(reconcile.Gate)
	return r
}

// queueName is the queue as it may be shown.
func (s *service) queueName() string {
	if s.f.Mode == modeSync {
		return ""
	}
	return store.Redact(s.queueURL)
}

// killer ends a worker of the lab; nil: this is no lab.
func (s *service) killer() func() (int, error) {
	if s.lab == nil {
		return nil
	}
	return s.lab.Kill
}

func (s *service) newPulse(ready map[string]func(context.Context) error) *fleet.Pulse {
	return &fleet.Pulse{Store: s.store, Ready: ready, Log: s.log, Self: s.self()}
}

// self is what this instance tells of itself.
func (s *service) self() fleet.Instance {
	role := s.f.Role
	if s.lab != nil {
		role = roleWeb
	}
	return fleet.Instance{Number: s.lease.Number, Holder: s.lease.Holder(),
		Name: s.f.instance(), Role: role, Version: version(), Queue: s.queueName(), Terms: s.terms()}
}

// tell has the other instances know of this one, and of the clicks it took; and
// it runs the workers of the lab.
func (s *service) tell(ctx context.Context, wg *sync.WaitGroup) {
	wg.Go(func() { s.pulse.Run(ctx) })
	if s.f.Role != roleWorker {
		wg.Go(func() { s.tallies.Run(ctx, s.store, s.lease.Holder(), s.log) })
	}
	if s.lab != nil {
		wg.Go(func() { s.lab.Run(ctx) })
	}
}
