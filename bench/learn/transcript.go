package learn

import (
	"fmt"
	"strings"
	"sync"

	"queuelab/bench/proxy"
	"queuelab/bench/wire"
)

// mostSaid is how many lines a step of a transcript has at most: its beginning
// and its end.
const mostSaid = 24

// transcript is what was said, in order. What is dull, such as a handshake, is
// not in it.
type transcript struct {
	mu   sync.Mutex
	said []Said
	step []Said // those since the last step
	left int
	mute bool
	ids  int // lines that brokers said and that hold the lesson's id
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
	half := min(mostSaid/2, len(t.step))
	t.said = append(t.said, t.step[:half]...)
	if t.left > 0 {
		t.said = append(t.said, Said{Left: t.left})
	}
	t.said = append(t.said, t.step[half:]...)
	t.step, t.left = nil, 0
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
		t.step = append(t.step, Said{Broker: kind, Line: &l})
		if len(t.step) > mostSaid {
			t.step = append(t.step[:mostSaid/2], t.step[mostSaid/2+1:]...)
			t.left++
		}
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
