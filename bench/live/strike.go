package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"queuelab/bench/broker"
	"queuelab/bench/fault"
	"queuelab/bench/ledger"
)

// button is a strike or its way back, as the page offers them.
type button struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Heals   string `json:"heals"`
	Key     string `json:"key"`
	strike  fault.Strike
	heal    bool
}

func buttons() []button {
	keys := map[string]string{
		"kill-consumer": "k", "start-consumer": "j", "freeze-consumer": "f", "thaw-consumer": "g", "slow-consumer": "s", "hurry-consumer": "h",
		"kill-producer": "p", "start-producer": "o", "kill-broker": "b", "restart-broker": "r", "freeze-broker": "z", "thaw-broker": "x",
		"cut-power": "c", "restore-power": "v", "pull-database": "d", "plug-database": "e",
	}
	var all []button
	for _, s := range fault.Strikes() {
		all = append(all,
			button{Name: s.Name, Summary: s.Summary, Key: keys[s.Name], strike: s},
			button{Name: s.HealName, Summary: s.HealSummary, Heals: s.Name, Key: keys[s.HealName], strike: s, heal: true})
	}
	return all
}

// why says why a strike makes no sense for the lane; "" where it does.
func (l *lane) why(s fault.Strike) string {
	if why := s.Means(l.target()); why != "" {
		return why
	}
	db, _ := l.show.effects()
	switch {
	case s.Missing != nil && s.Missing() != "":
		return s.Missing()
	case s.At == fault.AtDatabase && db == nil:
		return "effects are committed to a file here, there is no database to strike: " + l.show.noDatabase()
	case s.At == fault.AtBroker && l.warm != nil && l.ours() == nil:
		return "this broker was given by URL: it is not ours to strike"
	case s.Name == "cut-power" && (l.warm == nil || !l.warm.storage):
		return "this broker's files are not on the file system that can lose power"
	}
	return ""
}

// availability is what the page greys, and why. While the lane starts neither the
// queue nor the database has been asked what it can have, and nothing is greyed.
func (l *lane) availability() []availability {
	var all []availability
	for _, b := range buttons() {
		if l.state == stateStarting {
			all = append(all, availability{b.Name, true, ""})
			continue
		}
		why := l.why(b.strike)
		if why == "" && l.setting.Broker == "" && b.Name == "start-consumer" {
			why = noOther
		}
		all = append(all, availability{b.Name, why == "", why})
	}
	return all
}

const noOther = "the queue lived in the process that died: another consumer would have another queue"

// inForce are the strikes in force; under the lock.
func (l *lane) inForce() []string {
	some := []string{}
	any := func(name string, has func(*process) bool) {
		if slices.ContainsFunc(l.processes, has) {
			some = append(some, name)
		}
	}
	alive := len(l.living(consumes))
	if dead := len(l.processes) > 0 && alive == 0; dead {
		some = append(some, "kill-consumer")
	}
	any("freeze-consumer", func(p *process) bool { return p.frozen })
	any("slow-consumer", func(p *process) bool { return p.slow && p.alive })
	if slices.ContainsFunc(l.processes, produces) && len(l.living(produces)) == 0 && l.setting.Broker != "" {
		some = append(some, "kill-producer")
	}
	if l.warm != nil && l.warm.struck() != "" {
		some = append(some, l.warm.struck())
	}
	if db, _ := l.show.effects(); db != nil && db.struck() != "" {
		some = append(some, db.struck())
	}
	return some
}

// lastStrike is the latest press, so that one that comes twice does no more.
type lastStrike struct {
	name string
	at   time.Time
	said string
}

// twice is within what a press counts as the same.
const twice = 600 * time.Millisecond

// struckAnswer is what a press is answered.
type struckAnswer struct {
	Strike  string `json:"strike"`
	State   string `json:"state"`
	Already bool   `json:"already"`
	Text    string `json:"text"`
	Lanes   []int  `json:"lanes"`
}

// unfit is why a strike is not done.
type unfit string

func (u unfit) Error() string { return string(u) }

// press does what a button is for. It waits until that is confirmed.
func (l *lane) press(ctx context.Context, b button, target uint16) (struckAnswer, error) {
	a := struckAnswer{Strike: b.Name, State: "confirmed", Lanes: []int{l.n}}
	if !l.is(stateRunning) {
		return a, unfit("this lane does not run")
	}
	l.mu.Lock()
	why := l.why(b.strike)
	l.mu.Unlock()
	if why == "" && l.setting.Broker == "" && b.Name == "start-consumer" {
		why = noOther
	}
	if why != "" {
		return a, unfit(why)
	}
	var w *warm
	switch b.strike.At {
	case fault.AtBroker:
		w = l.warm
	case fault.AtDatabase:
		w, _ = l.show.effects()
	default:
		l.striking.Lock()
		defer l.striking.Unlock()
		return l.pressProcess(ctx, b, target, a)
	}
	a.Lanes = append(a.Lanes, l.sharers(b.strike.At)...)
	slices.Sort(a.Lanes)
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.pressPart(ctx, b, w, a)
}

// pressPart strikes or heals the broker or the database.
func (l *lane) pressPart(ctx context.Context, b button, w *warm, a struckAnswer) (struckAnswer, error) {
	down := w.struck()
	switch {
	case !b.heal && down == b.Name:
		a.Already, a.Text = true, "that was done already: nothing more was done"
		return a, nil
	case !b.heal && down != "":
		return a, unfit(fmt.Sprintf("it is struck by %s already: undo that first", down))
	case b.heal && down == "":
		a.Already, a.Text = true, "it serves already: nothing was done"
		return a, nil
	case b.heal && down != b.strike.Name:
		return a, unfit(fmt.Sprintf("it was struck by %s: undo that instead", down))
	}
	l.announce(a.Lanes, b, "asked", b.Summary, ledger.FaultAsked)
	do := b.strike.Inject
	if b.heal {
		do = b.strike.Heal
	}
	said, err := do(ctx, &stage{l: l})
	if err != nil {
		l.announce(a.Lanes, b, "failed", err.Error(), 0)
		return a, err
	}
	event := ledger.FaultConfirmed
	if b.heal {
		w.set("")
		event = ledger.FaultHealed
	} else {
		w.set(b.strike.Name)
		for _, n := range a.Lanes {
			l.show.lanes[n].blow(b)
		}
	}
	a.Text = said
	l.announce(a.Lanes, b, "confirmed", said, event)
	return a, nil
}

// blow notes that the broker or the database died.
func (l *lane) blow(b button) {
	if b.Name == "freeze-broker" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	d := death{At: l.show.since(ledger.Now()), Process: databaseNumber, Text: "kill -9"}
	if b.strike.At == fault.AtBroker {
		d.Process = brokerProcess
		l.brokerStruck = true
	}
	if b.Name == "cut-power" {
		d.Text = "power cut"
	}
	l.blows = append(l.blows, d)
}

// pressProcess strikes, heals or replaces a process.
func (l *lane) pressProcess(ctx context.Context, b button, target uint16, a struckAnswer) (struckAnswer, error) {
	l.mu.Lock()
	last := l.struck
	l.mu.Unlock()
	if name := fmt.Sprint(b.Name, target); last.name == name && time.Since(last.at) < twice {
		a.Already, a.Text = true, last.said
		return a, nil
	}
	do := b.strike.Inject
	if b.heal {
		do = b.strike.Heal
	}
	st := &stage{l: l, button: b, target: target}
	said, err := do(ctx, st)
	var already alreadyDone
	if errors.As(err, &already) {
		a.Already, a.Text = true, string(already)
		return a, nil
	}
	if err != nil {
		l.announce(a.Lanes, b, "failed", err.Error(), 0)
		return a, err
	}
	event := ledger.FaultConfirmed
	if b.heal {
		event = ledger.FaultHealed
	}
	a.Text = said
	l.mu.Lock()
	l.struck = lastStrike{fmt.Sprint(b.Name, target), time.Now(), said}
	l.mu.Unlock()
	l.announceOf(a.Lanes, b, "confirmed", said, event, st.struck)
	return a, nil
}

// announce tells lanes what was done to them, and writes it into their ledgers.
func (l *lane) announce(lanes []int, b button, state, text string, event ledger.Event) {
	l.announceOf(lanes, b, state, text, event, nil)
}

func (l *lane) announceOf(lanes []int, b button, state, text string, event ledger.Event, process *uint16) {
	for _, n := range lanes {
		o := l.show.lanes[n]
		o.mu.Lock()
		if event != 0 && o.control != nil {
			o.mark(event)
		}
		o.news.Strikes = append(o.news.Strikes, strikeRow{Name: b.Name, State: state, At: l.show.since(ledger.Now()), Text: text, Process: process})
		o.mu.Unlock()
	}
}

// alreadyDone says that there is nothing to do.
type alreadyDone string

func (a alreadyDone) Error() string { return string(a) }

// stage is a lane as a strike sees it.
type stage struct {
	l      *lane
	button button
	target uint16 // 0: any
	struck *uint16
}

var _ fault.Stage = (*stage)(nil)

// Broker implements fault.Stage.
func (s *stage) Broker() *broker.Broker { return s.l.ours() }

// Database implements fault.Stage.
func (s *stage) Database() *broker.Broker {
	w, _ := s.l.show.effects()
	if w == nil {
		return nil
	}
	return w.broker
}

// holdWithin is how long is waited for a consumer that has something in its hand:
// one that has nothing shows nothing.
const holdWithin = time.Second

// Victim implements fault.Stage.
func (s *stage) Victim(ctx context.Context, at fault.Part) (fault.Victim, error) {
	ctx, cancel := context.WithTimeout(ctx, holdWithin)
	defer cancel()
	for {
		p, err := s.pick(at)
		if err != nil {
			return nil, err
		}
		s.l.mu.Lock()
		s.l.collect()
		holds := p.inHand()
		s.l.mu.Unlock()
		if s.struck = &p.n; holds || s.button.heal || at == fault.AtProducer || s.button.Name == "slow-consumer" {
			return p, nil
		}
		select {
		case <-ctx.Done():
			return p, nil
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// pick chooses the process: the one that was named, else the one that holds most.
func (s *stage) pick(at fault.Part) (*process, error) {
	l := s.l
	l.mu.Lock()
	defer l.mu.Unlock()
	is := consumes
	if at == fault.AtProducer {
		is = produces
	}
	struck := func(p *process) bool {
		if s.button.strike.Name == "slow-consumer" {
			return p.slow
		}
		return p.frozen
	}
	var best *process
	for _, p := range l.processes {
		switch {
		case !is(p) || s.target != 0 && p.n != s.target:
		case !p.alive:
			if s.target != 0 {
				return nil, alreadyDone(p.name() + " is dead already")
			}
		case struck(p) != s.button.heal && s.button.Name != "kill-consumer":
			if s.target != 0 {
				return nil, alreadyDone(p.name() + " is so already")
			}
		case best == nil || len(p.holds) > len(best.holds):
			best = p
		}
	}
	switch {
	case best != nil:
		return best, nil
	case s.target != 0:
		return nil, unfit(fmt.Sprintf("there is no %s %d", at, s.target))
	case s.button.heal:
		return nil, alreadyDone(fmt.Sprintf("no %s is struck so: nothing was done", at))
	}
	return nil, alreadyDone(fmt.Sprintf("there is no %s left to strike so", at))
}

// Start implements fault.Stage.
func (s *stage) Start(ctx context.Context, at fault.Part) (fault.Victim, error) {
	l := s.l
	role, is, most := roleConsumer, consumes, maxConsumers
	if at == fault.AtProducer {
		role, is, most = roleProducer, produces, 1
	}
	l.mu.Lock()
	alive := len(l.living(is))
	l.mu.Unlock()
	if alive >= most {
		return nil, alreadyDone(fmt.Sprintf("%d of at most %d live already", alive, most))
	}
	p, err := l.start(ctx, role)
	if err != nil {
		return nil, err
	}
	s.struck = &p.n
	if role == roleProducer {
		return p, p.child.Tell("produce")
	}
	return p, nil
}

// healAll undoes what is in force on brokers and the database, so that the
// queues can be read out, and the next show finds them as they should be.
func (s *show) healAll() {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	for _, l := range s.lanes {
		for _, b := range buttons() {
			var w *warm
			switch {
			case !b.heal:
			case b.strike.At == fault.AtBroker:
				w = l.warm
			case b.strike.At == fault.AtDatabase:
				w, _ = s.effects()
			}
			if w == nil || w.struck() != b.strike.Name {
				continue
			}
			w.mu.Lock()
			a := struckAnswer{Lanes: append([]int{l.n}, l.sharers(b.strike.At)...)}
			_, _ = l.pressPart(ctx, b, w, a) // what fails is told; the next show starts another one
			w.mu.Unlock()
		}
	}
}
