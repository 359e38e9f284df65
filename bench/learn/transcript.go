package learn

import (
	"fmt"
	"strings"
	"sync"

	"queuelab/bench/proxy"
	"queuelab/bench/wire"
)

const (
	// mostSaid is how many lines a step of a transcript has at most: its beginning
	// and its end.
	mostSaid = 20
	// mostNew is how many lines in between it has beside them: the first of each
	// kind, since what a lesson is about is often said once among much else.
	mostNew = 20
)

// transcript is what was said, in order. What is dull, such as a handshake, is
// not in it.
type transcript struct {
	mu   sync.Mutex
	said []Said
	step step // since the last one was announced
	mute bool
	ids  int // lines that brokers said and that hold the lesson's id
}

// step is what was said within one.
type step struct {
	lines int
	kept  []numbered
	tail  []numbered // at most half of mostSaid
	kinds map[string]bool
	fresh int // kept from between beginning and end
}

// numbered is a line with its place in the step.
type numbered struct {
	Said
	n     int
	fresh bool // the first of its kind
}

func (s *step) add(line Said) {
	if s.kinds == nil {
		s.kinds = map[string]bool{}
	}
	kind := kindOf(line)
	n := numbered{line, s.lines, !s.kinds[kind]}
	s.kinds[kind] = true
	s.lines++
	if len(s.kept) < mostSaid/2 {
		s.kept = append(s.kept, n)
		return
	}
	s.tail = append(s.tail, n)
	if len(s.tail) <= mostSaid/2 {
		return
	}
	if first := s.tail[0]; first.fresh && s.fresh < mostNew {
		s.kept = append(s.kept, first)
		s.fresh++
	}
	s.tail = s.tail[1:]
}

// kindOf tells lines apart by more than what they are about: which script it is
// after EVALSHA, and whether an answer is an error, or nothing.
func kindOf(s Said) string {
	words := append(strings.Fields(s.Line.Text), "", "")
	more := words[1]
	if !s.Line.Client {
		if more = words[0]; !strings.HasPrefix(more, "(") && more != "error" {
			more = ""
		}
	}
	return fmt.Sprint(s.Broker, s.Line.Client, s.Line.Command, more)
}

// all are the lines that are kept, and how many were left out between them.
func (s *step) all() (said []Said) {
	next := 0
	for _, l := range append(s.kept, s.tail...) {
		if l.n > next {
			said = append(said, Said{Left: l.n - next})
		}
		said, next = append(said, l.Said), l.n+1
	}
	return said
}

func (t *transcript) next(step Text) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flush()
	t.said = append(t.said, Said{Step: &step})
}

func (t *transcript) hush(mute bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mute = mute
}

func (t *transcript) flush() {
	t.said = append(t.said, t.step.all()...)
	t.step = step{}
}

func (t *transcript) add(id, kind string, ls []wire.Line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range ls {
		if l.Noise || t.mute {
			continue
		}
		if !l.Client && holds(l, id) {
			t.ids++
		}
		t.step.add(Said{Broker: kind, Line: &l})
	}
}

func holds(l wire.Line, id string) bool {
	return strings.Contains(l.Text, id) || strings.Contains(l.Subject, id) || strings.Contains(l.ID, id)
}

// proven is an error where no broker has said the lesson's id: nothing in the
// transcript then proves that it is of this run.
func (t *transcript) proven(id string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ids == 0 {
		return fmt.Errorf("no broker has said the id %s of this run: the transcript proves nothing", id)
	}
	return nil
}

func (t *transcript) all() []Said {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flush()
	return t.said
}

// listen reads along on all connections of a proxy.
func (t *transcript) listen(p *proxy.Proxy, id, kind string) error {
	if _, err := wire.New(kind); err != nil {
		return err
	}
	var mu sync.Mutex
	talks := map[int]*wire.Decoder{}
	p.Tap(func(conn int, d proxy.Direction, b []byte) {
		mu.Lock()
		defer mu.Unlock()
		talk := talks[conn]
		if talk == nil {
			talk, _ = wire.New(kind) // it knows the kind: see above
			talks[conn] = talk
		}
		switch d {
		case proxy.ToServer:
			t.add(id, kind, on(conn, "", talk.Client(b)))
		case proxy.ToClient:
			t.add(id, kind, on(conn, "", talk.Server(b)))
		case proxy.Lost:
			t.add(id, kind, on(conn, "LOST on the way ", talk.Server(b)))
		}
	})
	return nil
}

// on says on which connection it was, and what became of it.
func on(conn int, fate string, ls []wire.Line) []wire.Line {
	for i := range ls {
		ls[i].Conn, ls[i].Text = conn, fate+strings.TrimPrefix(ls[i].Text, "-> ") // a transcript has arrows of its own
	}
	return ls
}
