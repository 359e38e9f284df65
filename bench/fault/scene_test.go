package fault

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"testing"

	"queuelab/bench/broker"
	"queuelab/queue"
)

// stage is a Scene without processes: it writes down what a fault does.
type stage struct {
	target           Target
	moment           float64
	broker, database *broker.Broker
	watch            queue.Queue
	asked, confirmed func() // what a test looks at, at that moment
	healed           func()
	started          func(Role) // a process of this role

	story    []string
	facts    Facts
	struckAt int64
	invalid  []string
	notes    []string
}

func newStage() *stage {
	nothing := func() {}
	return &stage{
		target: Target{Backend: "redis-streams", Broker: "redis", Scheme: "redis+streams", Messages: 400, Rate: 1000},
		asked:  nothing, confirmed: nothing, healed: nothing, started: func(Role) {},
	}
}

func (s *stage) tell(format string, args ...any) {
	s.story = append(s.story, fmt.Sprintf(format, args...))
}

// perform plays a fault to its end.
func (s *stage) perform(t *testing.T, f Fault) {
	t.Helper()
	if err := f.Run(t.Context(), s); err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
}

func (s *stage) Target() Target             { return s.target }
func (s *stage) Broker() *broker.Broker     { return s.broker }
func (s *stage) Database() *broker.Broker   { return s.database }
func (s *stage) Moment() float64            { return s.moment }
func (s *stage) Queue() queue.Queue         { return s.watch }
func (s *stage) Facts() *Facts              { return &s.facts }
func (s *stage) Asked()                     { s.tell("asked"); s.asked() }
func (s *stage) Confirmed()                 { s.tell("confirmed"); s.confirmed() }
func (s *stage) StruckAt(at int64)          { s.struckAt = at }
func (s *stage) Healed()                    { s.tell("healed"); s.healed() }
func (s *stage) Invalid(f string, a ...any) { s.invalid = append(s.invalid, fmt.Sprintf(f, a...)) }
func (s *stage) Note(f string, a ...any)    { s.notes = append(s.notes, fmt.Sprintf(f, a...)) }

func (s *stage) QueueURL(addr string, extra ...string) string {
	return fmt.Sprint("queue", addr, extra)
}

func (s *stage) DatabaseURL(addr string) string {
	if s.database == nil {
		return ""
	}
	u, err := url.Parse(s.database.URL())
	if err != nil {
		panic(err)
	}
	if addr != "" {
		u.Host = addr
	}
	return u.String()
}

func (s *stage) Start(_ context.Context, r Role) (Node, error) {
	name := ""
	for _, role := range []struct {
		is   bool
		name string
	}{{r.Victim, "victim "}, {r.Producer != nil, "producer"}, {r.Consumer != nil, "consumer"}} {
		if role.is {
			name += role.name
		}
	}
	s.tell("start %s", name)
	s.started(r)
	return &player{s, name}, nil
}

func (s *stage) Settle(context.Context) error               { s.tell("settle"); return nil }
func (s *stage) Freeze(context.Context) (int64, error)      { s.tell("freeze"); return 0, nil }
func (s *stage) Written(context.Context) error              { return nil }
func (s *stage) Delivered(_ context.Context, n int64) error { s.tell("%d delivered", n); return nil }
func (s *stage) Accepted() (int64, error)                   { return 0, nil }
func (s *stage) AcceptedIDs() (map[string]bool, error)      { return nil, nil }
func (s *stage) Probe(context.Context) (Node, error) {
	s.tell("probe")
	return &player{s, "probe"}, nil
}
func (s *stage) Finish(_ context.Context, ps ...Node) error { s.tell("finish %d", len(ps)); return nil }

// player is a Node that does nothing.
type player struct {
	s    *stage
	name string
}

func (p *player) Produce() error                 { p.s.tell("produce"); return nil }
func (p *player) Produced(context.Context) error { p.s.tell("produced"); return nil }
func (p *player) Struck(context.Context) error   { return nil }
func (p *player) Signal(sig os.Signal) error     { p.s.tell("%s: %v", p.name, sig); return nil }
func (p *player) Stop(context.Context) error     { p.s.tell("%s stops", p.name); return nil }

// index is where something happened in the story; -1: it did not.
func (s *stage) index(what string) int { return slices.Index(s.story, what) }
