package broker_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
)

// The other kinds take long to start: package fault strikes all of them.
func TestAClusterIsABrokerOfSeveralNodes(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	b := brokertest.Start(t, "redis-sentinel", "")
	url := b.QueueURL("redis+list", "any", "")
	first, err := b.Leader(ctx, url)
	if err != nil || len(b.Nodes()) != 2 || first != b.Nodes()[0] {
		t.Fatalf("got leader %v of %d nodes, %v, want the first of two", first, len(b.Nodes()), err)
	}
	if err := b.CutOff(first); !errors.Is(err, broker.ErrNoNetwork) {
		t.Errorf("got %v from CutOff, want ErrNoNetwork: it was started without", err)
	}
	if err := first.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	second, err := b.AwaitLeader(ctx, url, first)
	if err != nil || second != b.Nodes()[1] {
		t.Fatalf("got leader %v, %v, want the other node", second, err)
	}
	if err := b.Ready(ctx); err != nil {
		t.Errorf("got %v from a cluster without one node, want it to serve", err)
	}
	if err := b.Restart(ctx); err != nil { // of what does not run
		t.Fatal(err)
	}
	if err := b.AwaitReplicas(ctx, url); err != nil {
		t.Fatal(err)
	}
	if led, err := b.Leader(ctx, url); err != nil || led != second {
		t.Errorf("got leader %v, %v, want a dead master back as a replica", led, err)
	}
	if err := errors.Join(b.Kill(ctx), b.Restart(ctx), b.AwaitReplicas(ctx, url)); err != nil {
		t.Errorf("got %v, want all nodes killed and back", err)
	}
	u, err := b.Usage(ctx)
	if err != nil || !u.Known || u.MemoryBytes < 5<<20 {
		t.Errorf("got usage %+v, %v, want the sum of all processes", u, err)
	}
}

func TestAnExternalClusterIsUsedByItsURL(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	ours := brokertest.Start(t, "redis-sentinel", "")
	b, err := broker.External("redis-sentinel", ours.URL())
	if err != nil {
		t.Fatal(err)
	}
	v, err := b.Version(ctx)
	s, serr := b.Settings(ctx)
	if err := errors.Join(err, serr, b.Ready(ctx)); err != nil || v == "" || s["appendfsync"] != "everysec" {
		t.Errorf("got version %q, settings %v, %v, want those of the master that the Sentinels name", v, s, err)
	}
	if _, err := b.Leader(ctx, ours.URL()); err == nil || b.Nodes() != nil {
		t.Error("got nodes of a cluster that is not ours, want none")
	}
}

func TestAURLThatIsTooLittleForAClusterSaysWhatIsMissing(t *testing.T) {
	for _, c := range []struct{ kind, url, want string }{
		{"rabbitmq-3", "amqp://guest:secret@127.0.0.1:1/", "it names 1 of 3 nodes: give one like amqp://guest:guest@127.0.0.1:1234,"},
		{"redis-sentinel", "redis://127.0.0.1:1/0?sentinel=127.0.0.1:2", "master: give one like redis://127.0.0.1:1234/0?master="},
		{"redis-sentinel", "redis://127.0.0.1:1/0?master=lab", "no Sentinel"},
		{"kafka-3", "kafka:///", "no host"},
	} {
		_, err := broker.External(c.kind, c.url)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s at %s: got %v, want it to say %q, and no password", c.kind, c.url, err, c.want)
		}
	}
	// Of Kafka one is enough: it tells of the others.
	if _, err := broker.External("kafka-3", "kafka://127.0.0.1:1"); err != nil {
		t.Error(err)
	}
}

func TestClustersAreFoundByNameAndStartedUnaskedByNobody(t *testing.T) {
	for _, kind := range broker.Clusters() {
		for _, single := range broker.Kinds() {
			if kind == single {
				t.Errorf("%s is among those that are started unasked", kind)
			}
		}
	}
	_, err := broker.Start(within(t, time.Minute), broker.Options{Kind: "kafka-4"})
	if err == nil || !strings.Contains(err.Error(), "kafka-3, rabbitmq-3, redis-sentinel") {
		t.Errorf("got %v, want an error that names the clusters", err)
	}
}
