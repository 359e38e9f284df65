package broker_test

import (
	"slices"
	"testing"
	"time"

	"queuelab/backends"
	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
)

// clusterQueues are the schemes and parameters of a replicated queue on each kind
// of cluster.
func clusterQueues() map[string][2]string {
	return map[string][2]string{
		"kafka-3":        {"kafka", "partitions=1&replication=3&min-insync=2"},
		"rabbitmq-3":     {"amqp", "type=quorum&members=3&settle=0s"},
		"redis-sentinel": {"redis+list", "wait=1"},
	}
}

func TestAClusterReplacesItsLeader(t *testing.T) {
	for kind, q := range clusterQueues() {
		t.Run(kind, func(t *testing.T) {
			brokertest.Need(t, kind)
			ctx := within(t, 4*time.Minute)
			began := time.Now()
			say := func(what string) {
				t.Logf("%s after %.1fs", what, time.Since(began).Seconds())
				began = time.Now()
			}
			b, err := broker.Start(ctx, broker.Options{Kind: kind})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Stop()
			say("started")
			url := b.QueueURL(q[0], "led", q[1])
			queue, err := backends.Open(ctx, url)
			if err != nil {
				t.Fatal(err)
			}
			defer queue.Close()
			say("opened")
			if err := b.AwaitReplicas(ctx, url); err != nil {
				t.Fatal(err)
			}
			say("replicated")
			old, err := b.Leader(ctx, url)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(b.Nodes(), old) {
				t.Error("the leader is none of the nodes")
			}
			if err := old.Kill(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := b.AwaitLeader(ctx, url, old); err != nil {
				t.Fatal(err)
			}
			say("failed over")
			if err := b.Ready(ctx); err != nil {
				t.Errorf("got %v from a cluster without one node, want it to serve", err)
			}
			if err := old.Restart(ctx); err != nil {
				t.Fatal(err)
			}
			say("restarted")
			if err := b.AwaitReplicas(ctx, url); err != nil {
				t.Fatal(err)
			}
			say("whole")
			s, err := b.Settings(ctx)
			v, verr := b.Version(ctx)
			u, uerr := b.Usage(ctx)
			t.Log(s, err, v, verr, u, uerr)
		})
	}
}
