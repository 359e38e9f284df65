// Package truth asks the client libraries what they do: small experiments, each
// with a real client, left as it comes but for what the experiment names, a real
// broker, and often a proxy that breaks one thing between them. What is claimed
// of a client here was seen, or it says that it was not.
package truth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"queuelab/bench/broker"
	"queuelab/bench/proxy"
)

// Experiment is one statement about a client library, and how it is tried.
type Experiment struct {
	Name    string
	Library string // the module, such as github.com/redis/go-redis/v9
	Broker  string // one of broker.Kinds
	Claim   string // what it does, in a sentence
	Remedy  string // what to do about it, in a sentence; "": it is the remedy of another

	try func(context.Context, stand) (Seen, error)
}

// Seen is what happened.
type Seen struct {
	Holds   bool     `json:"holds"` // it is what is claimed
	What    string   `json:"what"`  // in a sentence
	Numbers []Number `json:"numbers,omitempty"`
}

// Number is one that was measured.
type Number struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"` // "": it is a count
}

// Fact is an experiment with what was seen.
type Fact struct {
	Name           string `json:"name"`
	Library        string `json:"library"`
	LibraryVersion string `json:"libraryVersion,omitempty"`
	Broker         string `json:"broker"`
	BrokerVersion  string `json:"brokerVersion,omitempty"`
	Claim          string `json:"claim"`
	Remedy         string `json:"remedy,omitempty"`
	Seen
	Millis  float64 `json:"millis,omitempty"`  // how long it took
	Skipped string  `json:"skipped,omitempty"` // why it was not tried here
	Error   string  `json:"error,omitempty"`   // why it ended without an answer
}

// All lists every experiment, in the order in which pages show them.
func All() []Experiment {
	return slices.Concat(redisExperiments(), rabbitExperiments(), kafkaExperiments())
}

// Options say what Run tries, and on what.
type Options struct {
	Names []string // of experiments, or of brokers; none: all
	// Broker lends a broker of that kind, which stays the lender's. nil: Run
	// starts its own, each kind once, and stops them.
	Broker func(ctx context.Context, kind string) (*broker.Broker, error)
	Log    io.Writer // progress for people, from several goroutines, a line at a time; may be nil
}

const (
	within      = 30 * time.Second // bounds one experiment
	interrupted = "interrupted before it was tried"
)

// Run tries the experiments, those of different brokers side by side. One whose
// broker cannot be had here is skipped; the error tells of those that ended
// without an answer, beside the facts of all, and of an unknown name, with no
// facts. A claim that does not hold is no error.
func Run(ctx context.Context, o Options) ([]Fact, error) {
	chosen, err := choose(o.Names)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	facts := make([]Fact, len(chosen))
	byKind := map[string][]int{}
	for i, e := range chosen {
		facts[i] = Fact{Name: e.Name, Library: e.Library, LibraryVersion: moduleVersion(e.Library), Broker: e.Broker, Claim: e.Claim, Remedy: e.Remedy}
		byKind[e.Broker] = append(byKind[e.Broker], i)
	}
	var kinds sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for kind, mine := range byKind {
		kinds.Go(func() {
			if err := runKind(ctx, o, kind, chosen, mine, facts); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	kinds.Wait()
	for _, f := range facts {
		if f.Error != "" {
			errs = append(errs, fmt.Errorf("experiment %s: %s", f.Name, f.Error))
		}
	}
	return facts, errors.Join(errs...)
}

// runKind tries those of one broker, one after the other: a Kafka can have one
// proxy at a time.
func runKind(ctx context.Context, o Options, kind string, all []Experiment, mine []int, facts []Fact) (err error) {
	var b *broker.Broker
	if o.Broker != nil {
		b, err = o.Broker(ctx, kind)
	} else if b, err = broker.Start(ctx, broker.Options{Kind: kind, Log: o.Log}); err == nil {
		defer func() { err = errors.Join(err, b.Stop()) }()
	}
	if err != nil {
		why := err.Error()
		if ctx.Err() != nil {
			why, err = interrupted, ctx.Err()
		}
		for _, i := range mine {
			facts[i].Skipped = why
		}
		if errors.Is(err, broker.ErrUnavailable) {
			return nil
		}
		return err
	}
	var cut error                // ctx ended before all were tried
	version, _ := b.Version(ctx) // "" where it does not tell
	for _, i := range mine {
		if ctx.Err() != nil {
			facts[i].Skipped, cut = interrupted, ctx.Err()
			continue
		}
		facts[i].BrokerVersion = version
		began := time.Now()
		one, cancel := context.WithTimeout(ctx, within)
		seen, err := all[i].try(one, stand{b, fmt.Sprintf("truth-%s-%08x", all[i].Name, rand.Uint32())})
		cancel()
		facts[i].Seen, facts[i].Millis = seen, millis("", time.Since(began)).Value
		if err != nil {
			facts[i].Holds, facts[i].Error = false, err.Error()
		}
		fmt.Fprintf(o.Log, "%s: tried in %.1fs\n", all[i].Name, facts[i].Millis/1000)
	}
	return cut
}

func choose(names []string) ([]Experiment, error) {
	all := All()
	if len(names) == 0 {
		return all, nil
	}
	var chosen []Experiment
	for _, name := range names {
		found := false
		for _, e := range all {
			known := e.Name == name || e.Broker == name
			found = found || known
			if known && !slices.ContainsFunc(chosen, func(c Experiment) bool { return c.Name == e.Name }) {
				chosen = append(chosen, e)
			}
		}
		if !found {
			var known []string
			for _, e := range all {
				known = append(known, e.Name)
			}
			return nil, fmt.Errorf("unknown experiment %q: there are %s", name, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}

// moduleVersion is what this program was built with; "" where it does not tell.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return ""
}

// stand is what an experiment works on.
type stand struct {
	broker *broker.Broker
	name   string // for its queue, key or topic, which nobody else has
}

// proxy puts one before the broker.
func (s stand) proxy() (*proxy.Proxy, error) {
	listen, target, err := s.broker.ProxyAddrs()
	if err != nil {
		return nil, err
	}
	return proxy.New(listen, target, proxy.Speaks(s.broker.Kind()))
}

// happened waits for a reply to be lost.
func happened(ctx context.Context, lost <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	select {
	case <-lost:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no reply was there to be lost: %w", ctx.Err())
	}
}

func count(name string, n int64) Number { return Number{Name: name, Value: float64(n)} }

func millis(name string, d time.Duration) Number {
	return Number{Name: name, Value: float64(d.Microseconds()) / 1000, Unit: "ms"}
}

// told is how an error is told in a sentence.
func told(err error) string {
	if err == nil {
		return "no error"
	}
	return fmt.Sprintf("the error %q", err)
}
