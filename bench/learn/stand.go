package learn

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"queuelab/backends"
	"queuelab/bench/broker"
	"queuelab/bench/proxy"
	"queuelab/queue"
)

// Stand is where a lesson is tried: brokers behind a proxy that writes down what
// is said, and the steps that experiments have in common. Like those of a
// testing.T its steps end the lesson when they fail, so that a lesson reads
// like a page; they are to be called from the lesson's own goroutine, but for
// those that say otherwise.
//
// What a Stand opens it closes, deletes or kills when the lesson is over.
type Stand struct {
	// ID is random. All names that the lesson makes hold it, and so does its
	// transcript.
	ID string

	ctx      context.Context
	clock    *clock
	pool     *pool
	needs    []Need
	dir      string // for ledgers and files
	number   uint32 // in the ids of what its processes publish
	seckill  func() (string, error)
	script   transcript
	figures  []Figure
	versions []Version
	using    map[string]string // the setting that is meant, by kind: see Use
	proxies  map[Need]*proxy.Proxy
	own      map[Need]*broker.Broker
	undo     []func() error
	names    int
	cause    error // why it was ended
	nodes    nodes
}

func newStand(ctx context.Context, p *pool, l Lesson, id, dir string, seckill func() (string, error)) *Stand {
	return &Stand{
		ID: id, ctx: ctx, pool: p, needs: l.Needs, dir: dir, number: uint32(l.Number), seckill: seckill,
		using: map[string]string{}, proxies: map[Need]*proxy.Proxy{}, own: map[Need]*broker.Broker{},
	}
}

// Context ends when the lesson must.
func (s *Stand) Context() context.Context { return s.ctx }

// Must ends the lesson if there is an error. It may be given several.
func (s *Stand) Must(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		s.end(err)
	}
}

// Fail ends the lesson: the experiment did not come off.
func (s *Stand) Fail(format string, args ...any) { s.end(fmt.Errorf(format, args...)) }

func (s *Stand) end(err error) {
	s.cause = err
	runtime.Goexit()
}

// Step says in the transcript what the lesson does next.
func (s *Stand) Step(en, zh string) { s.script.next(Text{en, zh}) }

// Quietly does something that is not in the transcript: what has to be there
// before the experiment, and would only be long.
func (s *Stand) Quietly(do func()) {
	s.script.hush(true)
	defer s.script.hush(false)
	do()
}

// Figure notes a number that was measured. means is for people, in a few words.
func (s *Stand) Figure(name string, value float64, unit string, means Text) {
	if slices.ContainsFunc(s.figures, func(f Figure) bool { return f.Name == name }) {
		s.Fail("the figure %q is noted twice", name)
	}
	s.figures = append(s.figures, Figure{name, means, value, unit})
}

// Count notes a number of things.
func (s *Stand) Count(name string, n int64, en, zh string) {
	s.Figure(name, float64(n), "", Text{en, zh})
}

// Millis notes a time.
func (s *Stand) Millis(name string, d time.Duration, en, zh string) {
	s.Figure(name, float64(d.Microseconds())/1000, "ms", Text{en, zh})
}

// After has something done when the lesson is over, before what was asked for
// earlier.
func (s *Stand) After(do func() error) { s.undo = append(s.undo, do) }

// Name makes a name for a key, a queue or a topic that nobody else has.
func (s *Stand) Name(what string) string { return what + "-" + s.ID }

// Dir is a directory of the lesson's own.
func (s *Stand) Dir() string { return s.dir }

// Eventually waits until a fact holds, or ends the lesson.
func (s *Stand) Eventually(what string, within time.Duration, holds func() bool) {
	ctx, cancel := context.WithTimeout(s.ctx, within)
	defer cancel()
	for !holds() {
		select {
		case <-ctx.Done():
			s.Fail("%s: not within %v", what, within)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Use says which broker of a kind the steps to come mean, where the lesson needs
// that kind in several settings. Until then they mean the first.
func (s *Stand) Use(kind, setting string) {
	s.using[kind] = setting
	s.need(kind)
}

func (s *Stand) need(kind string) Need {
	setting, told := s.using[kind]
	i := slices.IndexFunc(s.needs, func(n Need) bool { return n.Kind == kind && (!told || n.Setting == setting) })
	if i < 0 {
		s.Fail("the lesson uses %s %s and does not say that it needs it", kind, setting)
	}
	return s.needs[i]
}

// Broker is the one of that kind that the lesson needs. Lessons that use it past
// the proxy are not in the transcript.
func (s *Stand) Broker(kind string) *broker.Broker { return s.broker(s.need(kind)) }

// startOwn starts the brokers that the lesson shares with nobody.
func (s *Stand) startOwn() {
	for _, n := range s.needs {
		if n.Own || n.Storage {
			s.broker(n)
		}
	}
}

func (s *Stand) broker(n Need) *broker.Broker {
	if b := s.own[n]; b != nil {
		return b
	}
	b, release, err := s.pool.get(s.ctx, n)
	s.Must(err)
	s.own[n] = b
	s.After(release)
	version, _ := b.Version(s.ctx) // "" where it does not tell
	s.versions = append(s.versions, Version{n.Kind, n.Setting, version})
	return b
}

// Proxy stands before the broker of that kind, and writes down what is said. It
// can lose replies, delay and reset.
func (s *Stand) Proxy(kind string) *proxy.Proxy {
	n := s.need(kind)
	if p := s.proxies[n]; p != nil {
		return p
	}
	b := s.Broker(kind)
	listen, target, err := b.ProxyAddrs()
	s.Must(err)
	p, err := proxy.New(listen, target, proxy.Speaks(kind))
	s.Must(err)
	s.After(p.Close)
	s.Must(s.script.listen(p, s.ID, kind))
	s.proxies[n] = p
	return p
}

// URL is that of a new queue of a backend, behind the proxy; "memory" needs none.
// params are parameters of the backend, such as "claim=1s".
func (s *Stand) URL(backend string, params ...string) string {
	b, err := backends.Lookup(backend)
	s.Must(err)
	s.names++
	name := s.Name(fmt.Sprintf("q%d", s.names))
	query := strings.Join(params, "&")
	if b.Broker == "" {
		return strings.TrimSuffix(b.Scheme+"://"+name+"?"+query, "?")
	}
	p := s.Proxy(b.Broker)
	u, err := url.Parse(s.Broker(b.Broker).QueueURL(b.Scheme, name, query))
	s.Must(err)
	u.Host = p.Addr()
	return u.String()
}

// Open opens a queue by its URL, and deletes it when the lesson is over.
func (s *Stand) Open(queueURL string) queue.Queue {
	q, err := backends.Open(s.ctx, queueURL)
	s.Must(err)
	s.After(q.Close)
	s.After(func() error { return forgive(q.Delete(context.WithoutCancel(s.ctx))) })
	return q
}

// Queue is Open of a new queue.
func (s *Stand) Queue(backend string, params ...string) queue.Queue {
	return s.Open(s.URL(backend, params...))
}

// forgive is for what is tidied up in a broker that the lesson may have killed.
func forgive(error) error { return nil }

// tidy undoes what the lesson did, the last first.
func (s *Stand) tidy() error {
	var errs []error
	for _, do := range slices.Backward(s.undo) {
		errs = append(errs, do())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}
