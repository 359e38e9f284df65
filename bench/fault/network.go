package fault

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"queuelab/bench/broker"
	"queuelab/bench/proxy"
)

// hasNetwork is for faults of the network between clients and broker.
func hasNetwork(t Target) string {
	switch t.Broker {
	case "":
		return "the queue lives in the service's process: there is no network to break"
	case "redis", "rabbitmq", "kafka", "nats", "postgres":
		return ""
	}
	return "a cluster's clients choose among its nodes: one proxy cannot stand before all; see leader-partition"
}

// overNetwork runs what needs a proxy before the trial's broker. Processes go
// through it if their QueueURL is Scene.QueueURL of its address. It is closed in
// the end, which resets what still goes through it.
func overNetwork(ctx context.Context, s Scene, run func(*proxy.Proxy) error) error {
	listen, target, err := s.Broker().ProxyAddrs()
	if errors.Is(err, broker.ErrNoProxy) {
		s.Invalid("%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	p, err := listenOnce(ctx, listen, target, proxy.Speaks(s.Target().Broker))
	if err != nil {
		return err
	}
	return errors.Join(run(p), p.Close())
}

// listenOnce waits where another trial's proxy of the same broker has the
// address: a Kafka has only one.
func listenOnce(ctx context.Context, listen, target string, speaks proxy.Protocol) (*proxy.Proxy, error) {
	waiting, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		p, err := proxy.New(listen, target, speaks)
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) {
			return p, err
		}
		if pass(waiting, 50*time.Millisecond) != nil {
			return nil, fmt.Errorf("%s is still in use: another trial's proxy, or a stranger: %w", listen, err)
		}
	}
}

// behind is the role of a process that goes through the proxy.
func behind(s Scene, p *proxy.Proxy, r Role) Role {
	r.QueueURL = s.QueueURL(p.Addr())
	return r
}

// within waits for a count of the proxy.
func within(ctx context.Context, d time.Duration, p *proxy.Proxy, wanted func(proxy.Counts) bool) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return p.Await(ctx, wanted)
}
