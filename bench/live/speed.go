package live

import (
	"context"
	"slices"
	"time"
)

// setSpeed has another producer in each lane go on at another speed, once the one
// before has its last answers.
func (s *show) setSpeed(ctx context.Context, speed float64) error {
	if s.scenario.spike {
		return unfit("a flash sale has its own speed: begin another one")
	}
	inProcess := func(l *lane) bool { return l.setting.Broker == "" }
	if !slices.ContainsFunc(s.lanes, func(l *lane) bool { return !inProcess(l) }) {
		return unfit("a queue in memory dies with its producer, so that its speed stays")
	}
	s.mu.Lock()
	if s.state != stateRunning {
		s.mu.Unlock()
		return unfit("the show does not run")
	}
	s.speed, s.newSpeed = speed, true
	s.mu.Unlock()
	for _, l := range s.lanes {
		if inProcess(l) {
			continue
		}
		if err := l.hurry(ctx); err != nil {
			return err
		}
	}
	return nil
}

// hurry replaces the lane's producer, and has its handlers take as long as they do
// at that speed.
func (l *lane) hurry(ctx context.Context) error {
	l.striking.Lock()
	defer l.striking.Unlock()
	if !l.is(stateRunning) {
		return nil
	}
	l.mu.Lock()
	old := l.living(produces)
	before, _ := l.show.scenario.handling(l.show.currentSpeed(), l.show.consumers)
	for _, c := range l.living(consumes) {
		if c.delay = before; !c.slow {
			_ = c.child.Tell("delay " + before.String()) // one that has died meanwhile shows as dead
		}
	}
	l.mu.Unlock()
	if len(old) == 0 {
		return nil // it was killed; the next one has the new speed
	}
	p, err := l.start(l.show.ctx, roleProducer)
	if err != nil {
		return err
	}
	for _, o := range old {
		_ = o.child.Tell("quiet") // one that has died meanwhile is quiet
	}
	for _, o := range old {
		select {
		case <-o.produced:
		case <-o.gone:
		case <-ctx.Done():
		case <-time.After(stopWithin):
		}
		go o.stop(stopWithin)
	}
	return p.child.Tell("produce")
}
