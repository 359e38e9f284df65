package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"queuelab/app/fleet"
	"queuelab/backends"
)

// here is the gate or the queue of one process.
const here = "in this process"

// lookAgain is the pause between two looks at an instance of which nobody knows
// whether it lives.
const lookAgain = 100 * time.Millisecond

// terms are what all instances of a sale must agree on, by name: where they differ,
// each is right by itself, and together they sell units twice or lose orders.
func (s *service) terms() map[string]string {
	t := map[string]string{"mode": s.f.Mode, "ids": s.f.IDs, "queue": "none", "gate": "none", "stock-db": "none"}
	if s.f.StockDB != "" {
		t["stock-db"] = place(s.f.StockDB)
	}
	if s.f.Mode == modeSync {
		return t // the database decides it all
	}
	t["queue"], t["gate"], t["enqueue"] = here, here, "publish"
	if s.queue.Capabilities().Shared {
		t["queue"] = place(fullURL(s.queueURL))
	}
	if s.f.Redis != "" {
		t["gate"] = place(s.f.Redis)
	}
	if s.inScript {
		t["enqueue"] = "script" // which decides the names of the gate's keys
	}
	return t
}

// fullURL is the URL that a bare name of a queue stands for.
func fullURL(queue string) string {
	if b, err := backends.Lookup(queue); err == nil && !strings.Contains(queue, "://") {
		return b.DefaultURL
	}
	return queue
}

// place is where a URL leads to: without whom it is asked as, and without settings
// that an instance may have for itself.
func place(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "(not a URL)"
	}
	if u.Scheme == "sqlite" || u.Scheme == "file" {
		path := strings.TrimPrefix(strings.TrimPrefix(rawURL, u.Scheme+":"), "//")
		if abs, err := filepath.Abs(path); err == nil {
			path = abs
		}
		return u.Scheme + ":" + path
	}
	hosts := strings.Split(u.Host, ",")
	for i, h := range hosts {
		hosts[i] = address(h, u.Scheme)
	}
	slices.Sort(hosts)
	path := strings.TrimSuffix(u.Path, "/")
	if strings.HasPrefix(u.Scheme, "redis") && path == "" {
		path = "/0"
	}
	where, which := u.Scheme+"://"+strings.Join(hosts, ",")+path, url.Values{}
	for _, name := range []string{"queue", "group"} {
		if v := u.Query().Get(name); v != "" && (name != "group" || v != "workers") { // which is every queue's own
			which.Set(name, v)
		}
	}
	if len(which) > 0 {
		where += "?" + which.Encode()
	}
	return where
}

// address has one spelling of a host and its port.
func address(hostport, scheme string) string {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		host, port = strings.Trim(hostport, "[]"), ""
	}
	if port == "" {
		switch kind, _, _ := strings.Cut(scheme, "+"); kind {
		case "redis", "rediss":
			port = "6379"
		case "amqp":
			port = "5672"
		case "amqps":
			port = "5671"
		case "kafka":
			port = "9092"
		case "nats":
			port = "4222"
		case "postgres", "postgresql":
			port = "5432"
		}
	}
	if host == "" || strings.EqualFold(host, "localhost") || host == "::1" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(strings.ToLower(host), port)
}

// agree refuses to start beside a live instance that sells in another way. One
// that was killed looks for a while like one that lives, so it is given the time
// to speak.
func (s *service) agree(ctx context.Context) error {
	self := s.self()
	// Said before it looks: of two that start at the same time, at least one sees
	// the other.
	if err := s.store.Beat(ctx, self); err != nil {
		return err
	}
	s.said = true
	began := time.Now()
	for {
		all, err := s.store.Instances(ctx)
		if err != nil {
			return err
		}
		var mixed []danger
		for _, other := range all {
			if d, differs := mixes(self, other); differs {
				if other.Silent < time.Since(began) || slices.Contains(s.f.AllowUnsafe, mixedInstances) {
					return s.refuse(d)
				}
				mixed = append(mixed, d)
			}
		}
		if len(mixed) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("look at the other instances: %w", ctx.Err())
		case <-time.After(lookAgain):
		}
	}
}

// mixes says in what an instance that may live differs from this one. What one of
// the two does not tell is no difference.
func mixes(self, other fleet.Instance) (danger, bool) {
	if h := other.Health(); other.Holder == self.Holder || h == fleet.Stopped || h == fleet.Silent {
		return danger{}, false
	}
	var in []string
	for _, name := range slices.Sorted(maps.Keys(self.Terms)) {
		if mine, its := self.Terms[name], other.Terms[name]; its != "" && its != mine {
			in = append(in, fmt.Sprintf("%s %s where this one has %s", name, its, mine))
		}
	}
	if len(in) == 0 {
		return danger{}, false
	}
	return danger{mixedInstances, fmt.Sprintf("instance %q, which runs with this database, has %s", other.Name, strings.Join(in, ", and ")),
		"together they would sell the same units twice, or not see each other's orders",
		"give all the same, or stop all of the old ones before the first new one"}, true
}

// leave tells that an instance that said it lives does not start.
func (s *service) leave() {
	if !s.said {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	i := s.self()
	i.Stopped = true
	// Best effort: without it who comes next waits until this one has been silent.
	_ = s.store.Beat(ctx, i)
}
