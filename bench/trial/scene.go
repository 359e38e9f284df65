package trial

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"queuelab/backends"
	"queuelab/bench/broker"
	"queuelab/bench/fault"
	"queuelab/bench/ledger"
	"queuelab/bench/node"
	"queuelab/queue"
)

var _ fault.Scene = (*crashTrial)(nil)

// Target implements fault.Scene.
func (t *crashTrial) Target() fault.Target { return t.spec.target(t.caps) }

// target is what a fault is told of the queue that it strikes.
func (s Spec) target(caps queue.Capabilities) fault.Target {
	lease := time.Duration(0)
	if backendOf(s.Setting.Backend).Lease != "" {
		lease = shortLease
	}
	return fault.Target{
		Backend: s.Setting.Backend, Setting: s.Setting.Backend + "/" + s.Setting.Name, Broker: s.Setting.Broker,
		Scheme: scheme(s.Setting.Backend), Caps: caps, Messages: s.Load.Messages, Rate: s.Load.Rate, Lease: lease,
	}
}

// target opens the setting's queue to see what it promises.
func (l *Lab) target(ctx context.Context, s Spec, b *broker.Broker) (fault.Target, error) {
	q, err := backends.Open(ctx, l.queueURL(b, s.Setting, fmt.Sprintf("lab%d", l.nextTrial())))
	if err != nil {
		return fault.Target{}, err
	}
	defer q.Close()
	_ = q.Delete(ctx) // it is empty; left behind it costs a name
	return s.target(q.Capabilities()), nil
}

// Broker implements fault.Scene.
func (t *crashTrial) Broker() *broker.Broker { return t.broker }

// Database implements fault.Scene.
func (t *crashTrial) Database() *broker.Broker { return t.database }

// DatabaseURL implements fault.Scene.
func (t *crashTrial) DatabaseURL(addr string) string {
	return withHost(t.db, addr)
}

// Moment implements fault.Scene.
func (t *crashTrial) Moment() float64 { return t.spec.moment }

// Queue implements fault.Scene.
func (t *crashTrial) Queue() queue.Queue { return t.watch }

// QueueURL implements fault.Scene.
func (t *crashTrial) QueueURL(addr string, extra ...string) string {
	raw := withHost(t.url, addr)
	if len(extra) > 0 {
		u, err := url.Parse(raw)
		if err != nil {
			return raw // lab made it: it parses
		}
		q := u.Query()
		for _, e := range extra {
			name, value, _ := strings.Cut(e, "=")
			q.Set(name, value)
		}
		u.RawQuery = q.Encode()
		raw = u.String()
	}
	return raw
}

func withHost(raw, addr string) string {
	if addr == "" {
		return raw
	}
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	u.Host = addr
	return u.String()
}

// Start implements fault.Scene.
func (t *crashTrial) Start(ctx context.Context, r fault.Role) (fault.Node, error) {
	cfg := node.Config{Queue: cmp.Or(r.QueueURL, t.url), Trial: t.trial}
	if p := r.Producer; p != nil {
		t.producers++
		cfg.Process = t.producers
		cfg.Produce = &node.Produce{Rate: cmp.Or(p.Rate, t.spec.Load.Rate/2), Count: p.Count, Payload: cmp.Or(p.Payload, t.spec.Load.Payload), Keys: "uniform:1", Retries: p.Retries}
	}
	if c := r.Consumer; c != nil {
		t.consumers++
		cfg.Process = firstConsumer + t.consumers - 1
		cfg.Consume = &node.Consume{
			Consumers: 1, ReceiveMax: 1, Effects: cmp.Or(c.Effects, t.db), CrashPoint: c.Point, CrashAtNth: c.Nth,
			HandleDelay: c.HandleDelay, CommitTimeout: c.CommitTimeout, Poison: c.Poison, Mutant: t.lab.Mutant,
		}
		if r.Victim {
			t.victims = append(t.victims, cfg.Process)
		}
	}
	cfg.Producer, cfg.Ledger = cfg.Process, t.lab.ledgerPath(t.trial, cfg.Process)
	child, ready, err := node.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	n := &sceneNode{child: child, process: cfg.Process}
	t.nodes = append(t.nodes, n)
	t.caps = *ready.Caps
	return n, nil
}

// Settle implements fault.Scene.
func (t *crashTrial) Settle(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(settle(t.spec.Setting.Broker)):
		return nil
	}
}

// Freeze implements fault.Scene.
func (t *crashTrial) Freeze(ctx context.Context) (int64, error) {
	t.frozen = true
	err := t.freeze(ctx)
	return t.facts.Backlog, err
}

// Written implements fault.Scene.
func (t *crashTrial) Written(ctx context.Context) error {
	if t.broker == nil || t.broker.Kind() != "redis" {
		return nil
	}
	return settleRedis(ctx, t.broker)
}

// Delivered implements fault.Scene.
func (t *crashTrial) Delivered(ctx context.Context, n int64) error {
	return waitFor(ctx, fmt.Sprintf("%d deliveries", n), 30*time.Second, 20*time.Millisecond, func() (bool, error) {
		records, err := t.records()
		if err != nil {
			return false, err
		}
		var seen int64
		for _, r := range records {
			if r.Event == ledger.Delivered {
				seen++
			}
		}
		return seen >= n, nil
	})
}

// Accepted implements fault.Scene.
func (t *crashTrial) Accepted() (int64, error) {
	ids, err := t.AcceptedIDs()
	return int64(len(ids)), err
}

// AcceptedIDs implements fault.Scene.
func (t *crashTrial) AcceptedIDs() (map[string]bool, error) {
	records, err := t.records()
	if err != nil {
		return nil, err
	}
	accepted := map[string]bool{}
	for _, r := range records {
		if r.Event == ledger.Accepted {
			accepted[r.ID().String()] = true
		}
	}
	return accepted, nil
}

// Asked implements fault.Scene.
func (t *crashTrial) Asked() { t.mark(ledger.FaultAsked) }

// Confirmed implements fault.Scene.
func (t *crashTrial) Confirmed() { t.mark(ledger.FaultConfirmed) }

// Healed implements fault.Scene.
func (t *crashTrial) Healed() { t.mark(ledger.FaultHealed) }

// StruckAt implements fault.Scene.
func (t *crashTrial) StruckAt(at int64) { t.struckAt = at }

// probeMessages is how many a second producer publishes after the heal.
const probeMessages = 20

// Probe implements fault.Scene.
func (t *crashTrial) Probe(ctx context.Context) (fault.Node, error) {
	n, err := t.Start(ctx, fault.Role{Producer: &fault.Producer{Count: probeMessages}})
	if err != nil {
		return nil, err
	}
	t.probed = true
	t.probes = append(t.probes, n.(*sceneNode).process)
	return n, n.Produce()
}

// Finish implements fault.Scene. What the consumers hold is settled or given
// back before it returns.
func (t *crashTrial) Finish(ctx context.Context, producers ...fault.Node) error {
	for _, p := range producers {
		if err := p.Produced(ctx); err != nil {
			return err
		}
	}
	if err := t.drain(ctx); err != nil {
		t.invalid = append(t.invalid, err.Error())
	}
	for _, n := range t.nodes {
		if n.child.Gone() {
			continue
		}
		if err := n.Stop(ctx); err != nil {
			return err
		}
	}
	if t.watch == nil {
		return nil
	}
	// What a consumer had taken in advance shows only now that it is given back,
	// which the broker does in its own time.
	last, same := int64(-2), 0
	return waitFor(ctx, "what is left to stand still", 10*time.Second, 50*time.Millisecond, func() (bool, error) {
		left, err := node.Left(ctx, t.watch)
		if left == last {
			same++
		} else {
			last, same = left, 0
		}
		t.left = left
		return same >= 3, err
	})
}

// Facts implements fault.Scene.
func (t *crashTrial) Facts() *Facts { return &t.facts }

// Invalid implements fault.Scene.
func (t *crashTrial) Invalid(format string, args ...any) {
	t.invalid = append(t.invalid, fmt.Sprintf(format, args...))
}

// Note implements fault.Scene.
func (t *crashTrial) Note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// sceneNode is a process of a crash trial, as its fault sees it.
type sceneNode struct {
	child    *node.Child
	process  uint16
	produced bool
}

// Produce implements fault.Node.
func (n *sceneNode) Produce() error { return n.child.Tell("produce") }

// Produced implements fault.Node.
func (n *sceneNode) Produced(ctx context.Context) error {
	if n.produced {
		return nil
	}
	_, err := n.child.Await(ctx, "produced")
	n.produced = err == nil
	return err
}

// Struck implements fault.Node.
func (n *sceneNode) Struck(ctx context.Context) error { return n.child.KilledBySIGKILL(ctx) }

// Stop implements fault.Node.
func (n *sceneNode) Stop(ctx context.Context) error { return n.child.Stop(ctx) }

// Signal implements fault.Node.
func (n *sceneNode) Signal(sig os.Signal) error { return n.child.Signal(sig) }
