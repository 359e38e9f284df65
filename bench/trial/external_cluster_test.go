package trial

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/broker/brokertest"
)

// Faults of clients strike a cluster that was given by URL, and none of its
// nodes. The two that take long to start are left to the soak.
func TestAClusterThatWasGivenIsStruckByItsClientsAlone(t *testing.T) {
	const notOurs = "skipped: the broker was given by URL: it is not ours to break"
	for _, c := range []struct {
		setting, scheme string
		others          map[string]string // on the same cluster
	}{
		{"redis-sentinel/list", "redis+list", map[string]string{
			"redis-sentinel/list-min-replicas": "skipped: the Redis that was given by URL has min-replicas-to-write 0, and this setting is about min-replicas-to-write 1",
		}},
		{"kafka-3/acks-all", "kafka", nil},
		{"rabbitmq-3/quorum", "amqp", nil},
	} {
		t.Run(c.setting, func(t *testing.T) {
			kind, _, _ := strings.Cut(c.setting, "/")
			if kind != "redis-sentinel" && !soak() {
				t.Skip("only in the soak")
			}
			given := brokertest.Start(t, kind, "")
			lab := newTestLab(t, "postgres")
			lab.External = map[string]string{kind: given.URL()}
			specs, err := Campaign(c.setting, "consumer-kill-mid-handle,broker-freeze,power-loss,leader-kill,follower-kill", 1, false)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"consumer-kill-mid-handle": "as expected: "}
			for _, f := range []string{"broker-freeze", "power-loss", "leader-kill", "follower-kill"} {
				want[f] = notOurs
			}
			for name, verdict := range c.others {
				more, err := Campaign(name, FaultNone, 1, false)
				if err != nil {
					t.Fatal(err)
				}
				specs, want[name] = append(specs, more...), verdict
			}
			if err := lab.CheckExternal(t.Context(), []Setting{specs[0].Setting}); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, cell := range measure(t, lab, specs) {
				name := cell.Backend + "/" + cell.Setting
				if name == c.setting {
					name = cell.Fault
				}
				got[name] = cell.Verdict + ": " + strings.Join(cell.InvalidReasons, "; ")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
			for i, n := range given.Nodes() {
				if err := n.Ready(t.Context()); err != nil {
					t.Errorf("node %d of the given cluster: %v", i+1, err)
				}
			}
			if len(lab.brokers[kind+"/"+specs[0].Setting.Conf+"/"].b.Nodes()) > 0 {
				t.Error("got a cluster of the lab's own, want the one that was given")
			}
		})
	}
}

func TestTooFewBrokersAreAnotherSetting(t *testing.T) {
	three := Setting{Backend: "kafka-3", Name: "acks-all", Broker: "kafka-3", Conf: "cluster"}
	for brokers, fits := range map[string]bool{"1": false, "3": true, "5": true} {
		why, err := unfit(three, map[string]string{"brokers": brokers})
		if err != nil || (why == "") != fits {
			t.Errorf("%s brokers: got %q and %v, want it to fit: %v", brokers, why, err, fits)
		}
	}
}
