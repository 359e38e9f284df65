// Package broker starts real brokers and breaks them. Each runs on a private
// port of the loopback address, with its data in a temporary directory, as a
// child of a small supervisor process that takes it down when this process
// ends, however it ends. Where a broker is not installed it runs in a
// container, from the same settings file.
//
// What survives what: when this process is killed the supervisor clears up, at
// any moment. When the supervisor itself is killed with SIGKILL the kernel kills
// the broker, and what the broker had forked ends by itself as it loses its
// parent. The directory is then removed by Stop, and stays where this process
// was killed as well; so does PostgreSQL's System V segment of 56 bytes.
// A container is taken down by a process that waits likewise for ours to end; it
// stays, until `docker compose down`, where that one is killed too.
package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"sync"
	"time"
)

var (
	// ErrUnavailable means that a broker can be had neither natively nor in a
	// container. It comes wrapped, with what is missing and how to get it.
	ErrUnavailable = errors.New("broker unavailable")
	// ErrExternal is the answer of a broker that we did not start to whatever
	// would start or end it.
	ErrExternal = errors.New("this broker is not ours to start, kill or stop")

	errStranger = errors.New("another broker answers on this port")
)

// Options say which broker to start.
type Options struct {
	Kind    string    // one of Kinds
	Setting string    // a settings file in compose/KIND, such as "aof-everysec"; "" is the kind's default
	Log     io.Writer // progress for people; may be nil
	// Storage puts the broker's data, not its log, on a file system that can lose
	// power, sync slowly or be full. See package storage for what that needs, where
	// it is missing Start returns ErrNoStorage, and for what the model is. Nothing
	// that is timed on it means anything.
	Storage bool
	// Network keeps the nodes of a cluster in network namespaces of their own, so
	// that CutOff can part them, for root; see NetworkAvailable. It means nothing to
	// a single broker and to Redis, whose Sentinels stand beside no node.
	// What nodes and clients say to each other then passes through this process,
	// so that nothing that is timed on it means anything.
	Network bool
}

// Broker is one broker that runs. Its methods may be called from any goroutine;
// those that change its state wait for one another.
type Broker struct {
	kind    kind
	setting string
	url     string
	host    host // nil: external
	out     io.Writer

	mu      sync.Mutex
	stopped bool
	stopErr error
}

// Start starts a broker and returns once it answers in its own protocol, which
// takes from 50 ms (Redis) to 10 s (RabbitMQ), and several times that on a busy
// machine. When ctx ends before, or an error is returned, nothing is left of it.
func Start(ctx context.Context, o Options) (*Broker, error) {
	k, err := lookup(o.Kind)
	if err != nil {
		return nil, err
	}
	k.storage, k.network = o.Storage, o.Network
	if _, _, err := k.settingsFile(o.Setting); err != nil {
		return nil, fmt.Errorf("start %s: %w", k.name, err)
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	// The port is chosen before the broker binds it, so that another may win.
	const tries = 5
	for try := 1; ; try++ {
		b, err := start(ctx, k, o)
		if err == nil || try == tries || ctx.Err() != nil || !errors.Is(err, errPortTaken) {
			return b, err
		}
		fmt.Fprintf(o.Log, "%s: its port was taken meanwhile, trying another\n", k.name)
	}
}

// errPortTaken marks a start that failed because of the port alone.
var errPortTaken = errors.New("the port was taken")

func start(ctx context.Context, k kind, o Options) (*Broker, error) {
	began := time.Now()
	h, err := newHost(ctx, k, o.Setting)
	if err != nil {
		if portTaken.MatchString(err.Error()) {
			err = fmt.Errorf("%w: %w", errPortTaken, err)
		}
		return nil, fmt.Errorf("start %s: %w", k.name, err)
	}
	b := &Broker{kind: k, setting: o.Setting, url: k.url(h.port()), host: h, out: o.Log}
	if c, ok := h.(*cluster); ok {
		b.url = c.url
	}
	fmt.Fprintf(o.Log, "%s: starting on port %d\n", k.name, h.port())
	err = b.launch(ctx)
	if err == nil && k.found != nil {
		err = k.found(ctx, b.url)
	}
	if err != nil {
		if portTaken.MatchString(err.Error()+h.log(context.WithoutCancel(ctx))) || errors.Is(err, errStranger) {
			err = fmt.Errorf("%w: %w", errPortTaken, err)
		}
		err = fmt.Errorf("start %s: %w", k.name, err)
		return nil, errors.Join(err, b.Stop())
	}
	fmt.Fprintf(o.Log, "%s: answers on port %d after %.1fs\n", k.name, h.port(), time.Since(began).Seconds())
	return b, nil
}

// launch starts the broker's processes and waits until it serves.
func (b *Broker) launch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, b.kind.patience)
	defer cancel()
	if err := b.host.launch(ctx); err != nil {
		return err
	}
	for wait := 5 * time.Millisecond; ; wait = min(wait*2, 100*time.Millisecond) {
		err := b.ask(ctx)
		if err == nil || errors.Is(err, errStranger) {
			return err
		}
		select {
		case how := <-b.host.died():
			return fmt.Errorf("it ended before it served on port %d (%s); the last lines of its log:\n%s",
				b.host.port(), how, lastLines(b.host.log(ctx), 12))
		case <-ctx.Done():
			return fmt.Errorf("no answer on port %d within %v: %w (last: %w); the machine may be busy, so try again, or read the last lines of its log:\n%s",
				b.host.port(), b.kind.patience, ctx.Err(), err, lastLines(b.host.log(context.WithoutCancel(ctx)), 12))
		case <-time.After(wait):
		}
	}
}

// ask asks once whether the broker serves, with a deadline of its own: one that
// starts may accept a connection and say nothing.
func (b *Broker) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	identity := ""
	if b.host != nil {
		identity = b.host.identity()
	}
	return b.kind.ready(ctx, b.url, identity)
}

// External returns a broker that runs already and belongs to somebody else:
// Kill, Terminate, Restart, Pause, Resume and Stop are ErrExternal.
func External(kindName, rawURL string) (*Broker, error) {
	k, err := lookup(kindName)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		var ue *url.Error // quotes the URL, password and all
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, fmt.Errorf("URL of the %s broker: %w", kindName, err)
	}
	if u.Host == "" {
		return nil, fmt.Errorf("URL of the %s broker names no host: give one like %s", kindName, k.url(1234))
	}
	if k.given != nil {
		if err := k.given(u); err != nil {
			return nil, fmt.Errorf("URL of the %s broker: %w: give one like %s", kindName, err, k.url(1234))
		}
	}
	return &Broker{kind: k, url: rawURL, out: io.Discard}, nil
}

// Kind is one of Kinds.
func (b *Broker) Kind() string { return b.kind.name }

// URL is where clients of this broker connect to.
func (b *Broker) URL() string { return b.url }

// Kill sends SIGKILL to every process of the broker and returns once the kernel
// has confirmed each death. Data and port stay, for Restart.
func (b *Broker) Kill(ctx context.Context) error { return b.do(ctx, "kill", host.kill) }

// Terminate sends SIGTERM to the broker, as a service manager does that stops it
// (SIGINT to PostgreSQL, which waits for its clients on the other one), and returns
// once every process of it is gone. One that has not ended within 30 s is killed,
// and that is an error. Data and port stay, for Restart.
func (b *Broker) Terminate(ctx context.Context) error { return b.do(ctx, "terminate", host.terminate) }

// Restart starts a killed broker on the same data and port, and returns once it
// answers.
func (b *Broker) Restart(ctx context.Context) error {
	return b.do(ctx, "restart", func(_ host, ctx context.Context) error { return b.launch(ctx) })
}

// Pause stops every process of the broker, as SIGSTOP does, and returns once all
// stand still. Connections stay open, and silent.
func (b *Broker) Pause(ctx context.Context) error { return b.do(ctx, "pause", host.pause) }

// Resume lets a paused broker go on.
func (b *Broker) Resume(ctx context.Context) error { return b.do(ctx, "resume", host.resume) }

func (b *Broker) do(ctx context.Context, what string, f func(host, context.Context) error) error {
	if b.host == nil {
		return fmt.Errorf("%s %s: %w", what, b.kind.name, ErrExternal)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return fmt.Errorf("%s %s: it was stopped", what, b.kind.name)
	}
	if err := f(b.host, ctx); err != nil {
		return fmt.Errorf("%s %s: %w", what, b.kind.name, err)
	}
	return nil
}

// Stop kills the broker and removes its directory. A second Stop returns what
// the first did.
func (b *Broker) Stop() error {
	if b.host == nil {
		return fmt.Errorf("stop %s: %w", b.kind.name, ErrExternal)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.stopped {
		b.stopped = true
		if b.stopErr = b.host.stop(); b.stopErr != nil {
			b.stopErr = fmt.Errorf("stop %s: %w", b.kind.name, b.stopErr)
		}
	}
	return b.stopErr
}

// Ready asks once, in the broker's own protocol, whether it serves.
func (b *Broker) Ready(ctx context.Context) error {
	if err := b.ask(ctx); err != nil {
		return fmt.Errorf("%s does not answer: %w", b.kind.name, err)
	}
	return nil
}

// Log returns what the broker has logged so far; "" for an external one.
func (b *Broker) Log(ctx context.Context) string {
	if b.host == nil {
		return ""
	}
	return b.host.log(ctx)
}

// answerWithin bounds a question to a broker that serves: whatever else listens
// on a port that somebody gave may never answer.
const answerWithin = 10 * time.Second

// External reports whether the broker belongs to somebody else.
func (b *Broker) External() bool { return b.host == nil }

// Version asks the broker for its version.
func (b *Broker) Version(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	v, err := b.kind.version(ctx, b.url, b.Log(ctx))
	if err != nil {
		return "", fmt.Errorf("version of %s: %w", b.kind.name, err)
	}
	return v, nil
}

// Settings asks the broker for the settings in force that decide what it
// promises and how fast it can be. Some are only told by a broker's own tools,
// which takes a second, and are missing where it is not ours or runs in a
// container.
func (b *Broker) Settings(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	m, err := b.kind.settings(ctx, b.url)
	if err != nil {
		return nil, fmt.Errorf("settings of %s: %w", b.kind.name, err)
	}
	if b.host != nil {
		maps.Copy(m, b.host.settings(ctx))
	}
	return m, nil
}
