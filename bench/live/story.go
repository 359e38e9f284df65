package live

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"queuelab/bench/ledger"
	"queuelab/bench/trial"
)

// story is what happened to one message, for people and for a diagram.
type story struct {
	ID        string         `json:"id"`
	Lane      int            `json:"lane"`
	Verdict   string         `json:"verdict"`
	Place     string         `json:"place"`
	PlaceText string         `json:"placeText"`
	Text      []string       `json:"text"`
	Processes []storyProcess `json:"processes"`
	Steps     []step         `json:"steps"`
	Deaths    []death        `json:"deaths"`
}

type storyProcess struct {
	N    uint16 `json:"n"`
	Name string `json:"name"`
	Role string `json:"role"`
}

// step is something that a process did or got; an arrow where To is set.
type step struct {
	At      float64 `json:"at"`
	Process uint16  `json:"process"`
	Event   string  `json:"event"`
	To      *uint16 `json:"to"`
	Attempt uint16  `json:"attempt"`
}

type death struct {
	At      float64 `json:"at"`
	Process uint16  `json:"process"`
	Text    string  `json:"text"`
}

// chronicle is a lane's ledgers, read once for several stories.
type chronicle struct {
	l        *lane
	evidence trial.Evidence
	by       map[ledger.ID][]ledger.Record
	open     map[ledger.ID]bool
	lost     map[ledger.ID]string
	deaths   []death
	names    map[uint16]storyProcess
}

func (l *lane) chronicle() (*chronicle, error) {
	l.mu.Lock()
	files := l.files()
	l.mu.Unlock()
	records, err := ledger.Read(files...)
	if err != nil {
		return nil, fmt.Errorf("read the ledgers: %w", err)
	}
	c := &chronicle{
		l: l, by: map[ledger.ID][]ledger.Record{}, open: map[ledger.ID]bool{}, lost: map[ledger.ID]string{},
		names: map[uint16]storyProcess{brokerProcess: {brokerProcess, l.setting.Broker, "broker"}, databaseNumber: {databaseNumber, l.show.databaseKind(), "database"}},
	}
	if l.setting.Broker == "" {
		c.names[brokerProcess] = storyProcess{brokerProcess, "memory", "broker"}
	}
	c.evidence = trial.Evidence{
		Trial: fmt.Sprintf("%s:live:%s", l.setting, l.show.id), Processes: map[uint16]trial.Part{controlProcess: {Role: "harness"}},
		Effects: ledger.EffectsOf(records), Records: records,
	}
	for _, r := range records {
		if r.Event < ledger.FaultAsked {
			c.by[r.ID()] = append(c.by[r.ID()], r)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.processes {
		role := p.role
		if role == roleBoth {
			role = "producer and consumer"
		}
		c.evidence.Processes[p.n] = trial.Part{Role: role, Victim: strings.Contains(p.said, "killed") && p.endedAt != 0}
		c.names[p.n] = storyProcess{p.n, fmt.Sprintf("%s %d", p.role, p.n), p.role}
		if p.endedAt != 0 && strings.Contains(p.said, "killed") {
			c.deaths = append(c.deaths, death{l.show.since(p.endedAt), p.n, "kill -9"})
		}
	}
	c.deaths = append(c.deaths, l.blows...)
	if l.final != nil {
		for _, x := range l.final.Lost {
			if id, err := ledger.ParseID(x.id); err == nil {
				c.lost[id] = x.place
			}
		}
		c.evidence.Remaining = l.final.Stranded
		for _, x := range l.final.Stranded {
			if id, err := ledger.ParseID(x); err == nil {
				c.open[id] = true
			}
		}
	} else if l.account != nil {
		for id, place := range l.account.lost {
			c.lost[id] = place
		}
		for id := range l.account.open {
			c.open[id] = true
			c.evidence.Remaining = append(c.evidence.Remaining, id.String())
		}
	}
	return c, nil
}

// story tells of one message; false: the ledgers have none of that id.
func (c *chronicle) story(id ledger.ID) (*story, bool) {
	records := c.by[id]
	if len(records) == 0 {
		return nil, false
	}
	s := &story{ID: id.String(), Lane: c.l.n, Text: c.text(id, records), Processes: []storyProcess{}, Steps: []step{}, Deaths: []death{}}
	s.Verdict, s.Place = c.verdict(id, records)
	if s.Place != "" {
		s.PlaceText = placeText(s.Place)
	}
	took := map[uint16]bool{brokerProcess: true}
	to := func(n uint16) *uint16 { return &n }
	for _, r := range records {
		w := step{At: c.l.show.since(r.At), Process: r.Process, Event: eventName(r.Event), Attempt: r.Attempt}
		took[r.Process] = true
		switch r.Event {
		case ledger.Intent, ledger.Acked, ledger.Nacked:
			w.To = to(brokerProcess)
		case ledger.Accepted, ledger.Rejected, ledger.Delivered:
			w.Process, w.To = brokerProcess, to(r.Process)
		case ledger.Effect, ledger.EffectUnknown:
			w.To = to(databaseNumber)
			took[databaseNumber] = true
		}
		s.Steps = append(s.Steps, w)
	}
	for n := range took {
		if p, ok := c.names[n]; ok {
			s.Processes = append(s.Processes, p)
		}
	}
	slices.SortFunc(s.Processes, func(a, b storyProcess) int { return storyOrder(a) - storyOrder(b) })
	for _, d := range c.deaths {
		if took[d.Process] {
			s.Deaths = append(s.Deaths, d)
		}
	}
	return s, true
}

// storyOrder has what a message passes from left to right: producers, the broker,
// consumers, the database.
func storyOrder(p storyProcess) int {
	switch p.Role {
	case "broker":
		return 10_000
	case "database":
		return 30_000
	case roleConsumer:
		return 20_000 + int(p.N)
	}
	return int(p.N)
}

func (c *chronicle) text(id ledger.ID, records []ledger.Record) []string {
	e := c.evidence
	e.Records = slices.Clone(records)
	for _, r := range c.evidence.Records {
		if r.Event >= ledger.FaultAsked {
			e.Records = append(e.Records, r)
		}
	}
	slices.SortStableFunc(e.Records, func(a, b ledger.Record) int { return int(time.Duration(a.At - b.At)) })
	var b bytes.Buffer
	if err := trial.Explain(&b, e, id.String()); err != nil {
		return []string{err.Error()}
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	// Its last sentence is a place, which here is known better.
	return slices.DeleteFunc(lines[:len(lines)-1], func(s string) bool { return strings.TrimSpace(s) == "" })
}

func (c *chronicle) verdict(id ledger.ID, records []ledger.Record) (verdict, place string) {
	has := map[ledger.Event]int{}
	for _, r := range records {
		has[r.Event]++
	}
	where, lost := c.lost[id]
	switch {
	case lost:
		return "lost", where
	case has[ledger.DeadLettered] > 0:
		return "dead", ""
	case has[ledger.Effect] > 1:
		return "repeated", ""
	case has[ledger.Effect] == 1 && has[ledger.Delivered] > 1:
		return "repeated", ""
	case has[ledger.Effect] == 1:
		return "done", ""
	case c.open[id] && c.l.final != nil:
		return "stranded", ""
	case has[ledger.Accepted] > 0:
		return "waiting", ""
	case has[ledger.Rejected] > 0:
		return "rejected", ""
	}
	return "unknown", ""
}

func placeText(code string) string {
	switch code {
	case placeBroker:
		return string(trial.PlaceBroker)
	case placeProcess:
		return string(trial.PlaceProcess)
	case placeWire:
		return string(trial.PlaceWire)
	case placeHandler:
		return string(trial.PlaceHandler)
	case placeSkipped:
		return string(trial.PlaceSkipped)
	case placeUnheard:
		return string(trial.PlaceUnheard)
	case placeOverflow:
		return string(trial.PlaceOverflow)
	}
	return ""
}

// story finds a message in the lanes of a show: its id says in which.
func (s *show) story(id string) (*story, error) {
	parsed, err := ledger.ParseID(id)
	if err != nil {
		return nil, err
	}
	for _, l := range s.lanes {
		if l.trial != parsed.Trial {
			continue
		}
		c, err := l.chronicle()
		if err != nil {
			return nil, err
		}
		if found, ok := c.story(parsed); ok {
			return found, nil
		}
	}
	return nil, unfit(fmt.Sprintf("this show has no message %q", id))
}

// mostStories is how many a recording tells.
const mostStories = 200

// stories are those of the messages that one would ask about first.
func (s *show) stories() map[string]*story {
	all := map[string]*story{}
	each := mostStories / max(1, len(s.lanes))
	for _, l := range s.lanes {
		c, err := l.chronicle()
		if err != nil {
			continue // the recording says what the lane says
		}
		var ids []ledger.ID
		for id := range c.by {
			ids = append(ids, id)
		}
		rank := func(id ledger.ID) int {
			v, _ := c.verdict(id, c.by[id])
			return slices.Index([]string{"lost", "repeated", "unknown", "stranded", "dead", "rejected", "waiting", "done"}, v)
		}
		slices.SortFunc(ids, func(a, b ledger.ID) int {
			if x := rank(a) - rank(b); x != 0 {
				return x
			}
			return int(time.Duration(c.by[a][0].At - c.by[b][0].At))
		})
		for _, id := range ids[:min(each, len(ids))] {
			all[id.String()], _ = c.story(id)
		}
	}
	return all
}
