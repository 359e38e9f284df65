package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"queuelab/backends"
	"queuelab/bench/broker"
	"queuelab/bench/ledger"
	"queuelab/bench/load"
	"queuelab/bench/node"
	"queuelab/queue"
)

// measured is one trial of a cell.
type measured struct {
	report    ledger.Report
	caps      queue.Capabilities
	facts     Facts
	settings  map[string]string
	rate      float64
	invalid   []string // why the trial says nothing
	notes     []string // what else was seen
	damage    string   // what no queue may do, whatever the oracle expects of the fault
	saturated string   // why the load was not held

	delivered int64
	sending   time.Duration // the first message due to the last sent
	draining  time.Duration // the last sent to the last delivered
	sale      *saleOutcome

	tally  *ledger.Tally
	plan   load.Stats // of the loop that sent
	cost   *Cost
	stamps string // file, beside the result
	slo    *SLO
	scale  []scaleAt
}

// processes by their number in the ledger.
const (
	producerProcess = 1
	firstConsumer   = 50 // of a crash trial; further ones count on
)

// backendOf is the row of the backends' table: a cluster has that of its single
// broker, and one of ours for the tests has its name alone.
func backendOf(name string) backends.Backend { return Setting{Backend: name}.Client() }

// Client is the backend that opens the setting's queues: that of a cluster is
// the one of a single broker.
func (s Setting) Client() backends.Backend {
	name := s.Backend
	switch name { // on a cluster
	case "kafka-3":
		name = "kafka"
	case "rabbitmq-3":
		name = "rabbitmq"
	case "redis-sentinel":
		name = "redis-list"
	}
	for _, b := range backends.All() {
		if b.Name == name {
			return b
		}
	}
	return backends.Backend{Name: name, Scheme: name}
}

func scheme(backend string) string { return backendOf(backend).Scheme }

// latency offers messages by the load's shape, in one process for producer and
// consumer, so that every setting and the memory queue are measured alike.
func (l *Lab) latency(ctx context.Context, s Spec, seed uint64) (*measured, error) {
	m, err := l.both(ctx, s, "latency", s.produce(seed), latencyReceive)
	if err != nil {
		return nil, err
	}
	m.rate = s.Load.Rate
	if s.Load.Shape != "" {
		m.rate = math.Round(m.plan.Offered)
	}
	m.holdsLoad(m.plan)
	return m, nil
}

// latencyReceive and throughputReceive are the most messages of one Receive.
const latencyReceive, throughputReceive = 64, 512

// produce is the open loop of a latency trial.
func (s Spec) produce(seed uint64) *node.Produce {
	total := s.Load.Warmup + s.Load.Duration
	return &node.Produce{
		Rate: s.Load.Rate, Shape: s.Load.Shape, Seed: seed, Count: uint64(s.Load.Rate * total.Seconds()), Span: total,
		Payload: s.Load.Payload, Content: s.Load.Content, Keys: cmp.Or(s.Load.Keys, node.DefaultKeys), Producers: s.Load.Producers, InFlight: s.Load.InFlight,
	}
}

// holdsLoad says where the load was not the planned one: its latency is that of
// another load.
func (m *measured) holdsLoad(plan load.Stats) {
	held, why := plan.Held()
	switch {
	case m.report.Accepted < m.report.Sent:
		m.saturated = fmt.Sprintf("%d of %d messages were not accepted, and so are in no percentile", m.report.Sent-m.report.Accepted, m.report.Sent)
		if plan.Err != "" {
			m.saturated += ": " + plan.Err
		}
	case m.draining > time.Second:
		m.saturated = fmt.Sprintf("a backlog grew, since the consumer takes less than %.0f/s: the last message came %v after the last was sent", plan.Offered, m.draining.Round(time.Millisecond))
	case !held:
		m.saturated = why
	}
}

// throughput is a closed loop: as fast as answers come, while no more than a
// window of messages is published and not yet delivered, so that the rate is
// one that producer and consumer hold together.
func (l *Lab) throughput(ctx context.Context, s Spec) (*measured, error) {
	m, err := l.both(ctx, s, "throughput", &node.Produce{
		Count: 1 << 40, Duration: s.Load.Saturate, Senders: s.Load.Senders, Batch: s.Load.Batch, Window: s.Load.Window,
		Payload: s.Load.Payload, Content: s.Load.Content, Keys: cmp.Or(s.Load.Keys, node.DefaultKeys), Producers: s.Load.Producers,
	}, throughputReceive)
	if err != nil {
		return nil, err
	}
	m.rate = m.held()
	return m, nil
}

// held is the rate over the whole trial, the drain included: what was only
// accepted meanwhile was not held.
func (m *measured) held() float64 {
	return float64(m.delivered) / (m.sending + m.draining).Seconds()
}

// both runs one node that produces and consumes.
func (l *Lab) both(ctx context.Context, s Spec, preset string, p *node.Produce, receiveMax int) (*measured, error) {
	b, err := l.broker(ctx, s.Setting)
	if err != nil {
		return nil, err
	}
	trial := l.nextTrial()
	defer l.removeLedgers(trial)
	raw := l.queueURL(b, s.Setting, fmt.Sprintf("lab%d", trial), presetQuery(s.Setting.Backend, preset))
	defer l.deleteQueue(ctx, b, raw)
	path := l.ledgerPath(trial, producerProcess)
	child, ready, err := node.Start(ctx, node.Config{
		Queue: raw, Ledger: path, Process: producerProcess, Trial: trial, Producer: 1, Slow: s.Setting.Slow, Fake: s.Setting.Fake,
		Connections: s.Load.Connections,
		Produce:     p, Consume: &node.Consume{Consumers: max(1, s.Load.Consumers), ReceiveMax: receiveMax},
	})
	if err != nil {
		return nil, err
	}
	defer child.Kill()
	bill := startBill(ctx, b, ready.Usage)
	if err := child.Tell("produce"); err != nil {
		return nil, err
	}
	produced, err := child.Await(ctx, "produced")
	if err != nil {
		return nil, err
	}
	if err := child.Tell("drain"); err != nil {
		return nil, err
	}
	drained, err := child.Await(ctx, "drained")
	if err != nil {
		return nil, err
	}
	bill.stop(ctx, drained.Usage)
	if err := child.Tell("backlog"); err != nil {
		return nil, err
	}
	left, err := child.Await(ctx, "backlog")
	if err != nil {
		return nil, err
	}
	if err := child.Stop(ctx); err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(l.ledgerPattern(trial))
	if err != nil {
		return nil, err
	}
	source, err := p.Source(node.Config{})
	if err != nil {
		return nil, err
	}
	m := &measured{caps: *ready.Caps, plan: *produced.Stats}
	if err := m.account(ledger.Scan(paths...), s, source.KeyOf); err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	m.cost = bill.cost(m.delivered)
	if drained.Error != "" {
		m.invalid = append(m.invalid, drained.Error)
	}
	if left.Backlog > 0 && m.report.Lost > 0 {
		m.invalid = append(m.invalid, fmt.Sprintf("nothing more came for a while, but the queue still holds %d messages, so that what is lost is not known", left.Backlog))
	}
	m.settings, err = l.effectiveSettings(ctx, b, raw)
	return m, err
}

// account judges a trial without a fault. The records pass through it, so that
// a trial may have millions.
func (m *measured) account(records iter.Seq2[ledger.Record, error], s Spec, keyOf func(ledger.ID) string) error {
	m.tally = ledger.NewTally(ledger.Input{Confirm: m.caps.Confirm, KeyOf: keyOf})
	var first, lastSent, lastDelivered int64
	for r, err := range records {
		if err != nil {
			return err
		}
		switch r.Event {
		case ledger.Intent:
			if first == 0 || r.Due < first {
				first = r.Due
			}
			lastSent = r.At
		case ledger.Delivered:
			m.delivered++
			lastDelivered = r.At
		}
		m.tally.Add(r)
	}
	if s.Test == TestLatency {
		m.tally.Input.From = first + s.Load.Warmup.Nanoseconds()
	}
	m.sending = time.Duration(lastSent - first)
	m.draining = max(0, time.Duration(lastDelivered-lastSent))
	m.report = m.tally.Report()
	if err := m.report.Conservation; err != nil {
		m.invalid = append(m.invalid, "the ledger does not balance: "+err.Error())
	}
	if m.delivered == 0 {
		m.invalid = append(m.invalid, "nothing was delivered")
	}
	return nil
}

// keepStamps writes the stamps of every message of a cell's first latency trial
// beside the result. It returns the file's name; "" where there is one already.
func (l *Lab) keepStamps(s Spec, m *measured) (string, error) {
	if l.Stamps == "" || m.tally == nil || m.delivered == 0 {
		return "", nil
	}
	if err := os.MkdirAll(l.Stamps, 0o755); err != nil {
		return "", fmt.Errorf("keep the stamps: %w", err)
	}
	name := s.Setting.Backend + "-" + s.Setting.label() + ".csv.gz"
	path := filepath.Join(l.Stamps, name)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	f, err := os.CreateTemp(l.Stamps, ".stamps-*") // whole or absent
	if err != nil {
		return "", fmt.Errorf("keep the stamps: %w", err)
	}
	err = errors.Join(ledger.WriteStamps(f, m.tally.Stamps()), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return "", fmt.Errorf("keep the stamps: %w", err)
	}
	return StampsDir + "/" + name, nil
}

// presetQuery names the preset where a backend has one.
func presetQuery(backend, preset string) string {
	if backend == "memory" {
		return ""
	}
	return "preset=" + preset
}

// effectiveSettings are the broker's, read back from it, and the client's URL.
func (l *Lab) effectiveSettings(ctx context.Context, b *broker.Broker, raw string) (map[string]string, error) {
	settings := map[string]string{}
	if b != nil {
		var err error
		if settings, err = b.Settings(ctx); err != nil {
			return nil, fmt.Errorf("read back the broker's settings: %w", err)
		}
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, err
	}
	settings["url"] = u.Redacted()
	return settings, nil
}

// deleteQueue removes a trial's queue; a queue left behind costs the next
// trials memory, not truth, so a failure is not one of the trial.
func (l *Lab) deleteQueue(ctx context.Context, b *broker.Broker, raw string) {
	if b == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	q, err := backends.Open(ctx, raw)
	if err != nil {
		return
	}
	defer q.Close()
	_ = q.Delete(ctx)
}
