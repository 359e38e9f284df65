package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"queuelab/bench/ledger"
	"queuelab/bench/node"
	"queuelab/queue"
)

// look is what a broker said when it was asked.
type look struct {
	asked           int64 // as of ledger.Now
	ok              bool  // it answered
	ready, inFlight int64 // -1: it does not tell
	structure       structure
}

// looker asks a broker what it has of a lane's queue, and changes nothing.
type looker interface {
	look(ctx context.Context) (structure, queue.Backlog, error)
	close()
}

// lookEvery is how often a broker is asked, lookWithin how long it has.
const (
	lookEvery  = 200 * time.Millisecond
	lookWithin = 2 * time.Second
)

// observe asks again and again, until ctx ends.
func (l *lane) observe(ctx context.Context, wg *sync.WaitGroup) {
	defer wg.Done()
	for {
		asked := ledger.Now()
		short, cancel := context.WithTimeout(ctx, lookWithin)
		s, b, err := l.looker.look(short)
		cancel()
		if err != nil {
			s = structure{Down: true}
		}
		s.Kind = l.kind
		l.mu.Lock()
		l.look = look{asked: asked, ok: err == nil, ready: b.Ready, inFlight: b.InFlight, structure: s}
		l.mu.Unlock()
		l.askDatabase(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
	}
}

// mostAsked is how many messages the database is asked about at once.
const mostAsked = 500

// askDatabase has those told as lost that are suspect, and that the database has
// no effect of. One that does not answer leaves them suspect.
func (l *lane) askDatabase(ctx context.Context) {
	l.mu.Lock()
	var ids []ledger.ID
	if l.account != nil {
		for id := range l.account.suspects {
			if len(ids) < mostAsked {
				ids = append(ids, id)
			}
		}
	}
	l.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	short, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	effects, err := l.show.rows.Of(short, ids)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.news.Lost = append(l.news.Lost, l.account.convict(ids, effects)...)
}

func newLooker(l *lane) (looker, error) {
	any := anyLooker{l.watch}
	switch {
	case l.setting.Broker == "redis":
		return newRedisLooker(l, any)
	case l.kind == "rabbitmq":
		return newRabbitLooker(l)
	case l.kind == "kafka":
		return newKafkaLooker(l)
	}
	return any, nil
}

// anyLooker asks through the queue itself.
type anyLooker struct{ q queue.Queue }

func (a anyLooker) look(ctx context.Context) (structure, queue.Backlog, error) {
	b, err := node.Look(ctx, a.q)
	if err != nil {
		return structure{}, b, err
	}
	if !a.q.Capabilities().Stored {
		b.Ready, b.InFlight = 0, -1 // it keeps nothing
	}
	return structure{Ready: known(b.Ready), Unacked: known(b.InFlight), Length: known(b.Ready)}, b, nil
}

func (anyLooker) close() {}

// known is nil for what is not told.
func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

// memoryLooker asks the process that the queue lives in.
type memoryLooker struct{ l *lane }

var errNoProcess = errors.New("the process that the queue lived in is dead")

func (m memoryLooker) look(ctx context.Context) (structure, queue.Backlog, error) {
	m.l.mu.Lock()
	some := m.l.living(nil)
	frozen := len(some) > 0 && some[0].frozen
	m.l.mu.Unlock()
	if len(some) == 0 || frozen {
		return structure{}, queue.Backlog{}, errNoProcess
	}
	p := some[0]
	select { // an answer that came too late
	case <-p.looked:
	default:
	}
	if err := p.child.Tell("backlog"); err != nil {
		return structure{}, queue.Backlog{}, err
	}
	select {
	case b := <-p.looked:
		return structure{Ready: known(b.Ready), Unacked: known(b.InFlight)}, b, nil
	case <-p.gone:
		return structure{}, queue.Backlog{}, errNoProcess
	case <-ctx.Done():
		return structure{}, queue.Backlog{}, fmt.Errorf("look into the queue of %s: %w", p.name(), ctx.Err())
	}
}

func (memoryLooker) close() {}
