package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// Up starts brokers side by side for hands-on use, writes what to paste to reach
// each, waits for ctx, and takes all of them down. Names are brokers or
// backends, such as redis-list; none, or "all", are all brokers that can be had
// here. schemes are those of the queues on a kind of broker. It returns nil when ctx has ended and everything is gone. A broker that
// was asked for by name and cannot be had is an error.
func Up(ctx context.Context, names []string, schemes func(kind string) []string, out io.Writer) error {
	chosen, byName, err := choose(names)
	if err != nil {
		return err
	}
	log := &lines{w: out}
	brokers := make([]*Broker, len(chosen))
	errs := make([]error, len(chosen))
	var starting sync.WaitGroup
	for i, name := range chosen {
		starting.Go(func() {
			brokers[i], errs[i] = Start(ctx, Options{Kind: name, Log: log})
		})
	}
	starting.Wait()
	started := slices.DeleteFunc(brokers, func(b *Broker) bool { return b == nil })
	err = errors.Join(errs...)

	if ctx.Err() == nil && (err == nil || !byName && len(started) > 0) {
		for i, e := range errs {
			if e != nil {
				fmt.Fprintf(log, "%s: left out: %v\n", chosen[i], e)
			}
		}
		err = nil
		for _, b := range started {
			fmt.Fprint(log, b.paste(ctx, schemes(b.Kind())))
		}
		fmt.Fprintln(log, "\nCtrl-C takes them down.")
		<-ctx.Done()
	} else if ctx.Err() != nil {
		err = nil // asked to stop while they started, which ends the starts with errors
	}

	stops := make([]error, len(started))
	var stopping sync.WaitGroup
	for i, b := range started {
		stopping.Go(func() { stops[i] = b.Stop() })
	}
	stopping.Wait()
	return errors.Join(append(stops, err)...)
}

// choose turns names into kinds, each once.
func choose(names []string) (chosen []string, byName bool, err error) {
	if len(names) == 0 || slices.Equal(names, []string{"all"}) {
		return Kinds(), false, nil
	}
	for _, n := range names {
		name := n
		if strings.HasPrefix(n, "redis-") && !slices.Contains(Clusters(), n) {
			name = "redis"
		}
		if _, err := lookup(name); err != nil {
			return nil, false, err
		}
		if !slices.Contains(chosen, name) {
			chosen = append(chosen, name)
		}
	}
	return chosen, true, nil
}

// paste returns the flags that take a command to this broker.
func (b *Broker) paste(ctx context.Context, schemes []string) string {
	version, err := b.Version(ctx)
	if err != nil {
		version = "of unknown version"
	}
	var s strings.Builder
	fmt.Fprintf(&s, "\n%s %s\n", b.Kind(), version)
	for _, scheme := range schemes {
		fmt.Fprintf(&s, "  --queue '%s'\n", b.QueueURL(scheme, "orders", ""))
	}
	switch b.Kind() {
	case "redis":
		fmt.Fprintf(&s, "  --redis '%s'\n", b.URL())
	case "postgres":
		fmt.Fprintf(&s, "  --db '%s'\n", b.URL())
	}
	return s.String()
}

// lines makes one writer of several goroutines'.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
