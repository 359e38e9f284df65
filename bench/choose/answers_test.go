package choose

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/trial"
)

// stored is a real quick run and a real campaign, without what is not read here.
func stored(t testing.TB) *Evidence {
	t.Helper()
	results, err := Load("testdata/quick.json", "testdata/faults.json")
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(results...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func names(list []Candidate) []string {
	all := []string{}
	for _, c := range list {
		all = append(all, c.Setting)
	}
	slices.Sort(all)
	return all
}

// The answers that the stored results imply, and the oracle and the claims where
// they say nothing.
func TestStatedNeedsHaveTheAnswersThatTheMeasuredTableImplies(t *testing.T) {
	e := stored(t)
	for _, c := range []struct {
		name     string
		needs    Needs
		want     []string
		first    string // of those that fit; "": any
		conflict []string
	}{
		{name: "may lose nothing on a power cut", needs: Needs{Loses: NothingOnPowerLoss}, first: "redis-streams/aof-always",
			want: []string{"kafka/acks-all-flush", "nats/sync-always", "postgres/default", "rabbitmq/classic", "rabbitmq/fanout", "rabbitmq/quorum", "rabbitmq/topic", "redis-streams/aof-always"}},
		{name: "nothing on a power cut, and only Redis runs", needs: Needs{Loses: NothingOnPowerLoss, Only: []string{"redis"}},
			want: []string{"redis-streams/aof-always"}},
		{name: "order among consumers that share the work, and no loss in a crash", needs: Needs{Must: []string{"competing", "ordered-per-key"}, Loses: NothingOnCrash}, first: "kafka/acks-all",
			want: []string{"kafka-3/acks-all", "kafka/acks-1", "kafka/acks-all", "kafka/acks-all-flush", "kafka/client-retries", "kafka/franz-idempotent"}},
		{name: "everything again later, and a hundred thousand a second", needs: Needs{Must: []string{"replay"}, Loses: NothingOnCrash, Rate: 100_000}, first: "kafka/acks-all",
			want: []string{"kafka/acks-1", "kafka/acks-all"}},
		{name: "orders that are sent for later", needs: Needs{Must: []string{"delay"}}, first: "redis-zset/aof-everysec",
			want: []string{"redis-zset/aof-everysec"}},
		{name: "notifications to everybody, in two milliseconds", needs: Needs{Must: []string{"broadcast"}, P99: 2 * time.Millisecond, Loses: MayLose},
			want: []string{"redis-pubsub/default"}},
		{name: "nothing twice, to everybody", needs: Needs{Must: []string{"at-most-once", "broadcast"}}, first: "redis-pubsub/default",
			want: []string{"redis-pubsub/default", "redis-pubsub/pattern", "redis-xread/tail"}},
		{name: "services that take some keys each", needs: Needs{Must: []string{"routing", "durable"}, Groups: 2},
			want: []string{"rabbitmq/topic"}},
		{name: "says no when it is full, and loses nothing in a crash", needs: Needs{Must: []string{"bounded"}, Loses: NothingOnCrash},
			want: []string{"rabbitmq/reject-publish"}},
		{name: "goes on when a node dies, with all its messages", needs: Needs{Must: []string{"cluster"}, Loses: NothingOnCrash},
			want: []string{"kafka-3/acks-all", "rabbitmq-3/quorum"}},
		{name: "a hundred million waiting", needs: Needs{Must: []string{"durable", "at-least-once"}, Backlog: 100_000_000, Only: []string{"redis", "kafka"}},
			want: []string{"kafka-3/acks-1", "kafka-3/acks-all", "kafka/acks-1", "kafka/acks-all", "kafka/acks-all-flush", "kafka/client-retries", "kafka/franz-idempotent"}},
		{name: "poison is found and given back, at sixty thousand a second on Redis", needs: Needs{Must: []string{"counted", "nack", "competing", "durable"}, Rate: 60_000, Only: []string{"redis"}},
			want: []string{"redis-streams/aof-everysec"}},
		{name: "the tutorials' wish: all of it", needs: Needs{Must: []string{"durable", "competing", "replay", "ordered-per-key", "delay"}},
			want: []string{}, conflict: []string{"ordered-per-key", "delay"}},
		{name: "delay on Kafka", needs: Needs{Must: []string{"delay"}, Only: []string{"kafka"}},
			want: []string{}, conflict: []string{"delay", "only kafka"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := e.Choose(c.needs)
			if err != nil {
				t.Fatal(err)
			}
			fit := a.Fitting()
			if diff := cmp.Diff(c.want, names(fit)); diff != "" {
				t.Errorf("what fits (-want +got)\n%s", diff)
			}
			if c.first != "" && (len(fit) == 0 || fit[0].Setting != c.first) {
				t.Errorf("got %v, want %s first", names(fit[:min(1, len(fit))]), c.first)
			}
			if diff := cmp.Diff(c.conflict, a.Conflict); diff != "" {
				t.Errorf("what excludes each other (-want +got)\n%s", diff)
			}
			if len(a.Settings) != len(trial.Settings()) {
				t.Errorf("got %d settings, want all %d", len(a.Settings), len(trial.Settings()))
			}
		})
	}
}

// forgets says by the name alone that a power cut takes something from a setting.
func forgets(setting string) bool {
	backend, name, _ := strings.Cut(setting, "/")
	switch {
	case backend == "redis-pubsub", backend == "redis-list", backend == "redis-sentinel": // BRPOP
		return true
	case strings.HasPrefix(backend, "redis"):
		return name != "aof-always"
	case backend == "kafka":
		return name != "acks-all-flush"
	}
	return false
}

// Whatever was measured, and where nothing was: a result in which they happened to
// lose nothing must not be enough.
func TestWhatAPowerCutTakesIsNeverNamed(t *testing.T) {
	lucky := stored(t)
	for _, s := range lucky.Settings {
		for _, f := range []string{powerLoss, slowFsync, trial.FaultBrokerKill, trial.FaultConsumerKillMidHandle, trial.FaultConsumerKillBeforeAck} {
			lucky.Results[0].Result.Cells = append(lucky.Results[0].Result.Cells, trial.Cell{
				Backend: s.Backend, Setting: s.Name, Test: trial.TestFault, Fault: f, Trials: 30, Valid: 30, Verdict: trial.VerdictAsExpected,
			})
		}
	}
	for i := range lucky.Results { // and nothing else was ever seen
		for j := range lucky.Results[i].Result.Cells {
			c := &lucky.Results[i].Result.Cells[j]
			c.Lost, c.Loss, c.CrashesWithLoss = 0, nil, nil
		}
	}
	unmeasured, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]*Evidence{"measured": stored(t), "lucky": lucky, "not measured": unmeasured} {
		a, err := e.Choose(Needs{Loses: NothingOnPowerLoss})
		if err != nil {
			t.Fatal(err)
		}
		fit := names(a.Fitting())
		for _, s := range fit {
			if forgets(s) {
				t.Errorf("%s: got %s, which loses messages when the power goes", name, s)
			}
		}
		if !slices.Contains(fit, "redis-streams/aof-always") || !slices.Contains(fit, "kafka/acks-all-flush") {
			t.Errorf("%s: got %v, want those that sync before they answer", name, fit)
		}
	}
}

func TestEveryMeasuredProofIsACellOfItsResult(t *testing.T) {
	e := stored(t)
	cells := map[string]trial.Cell{}
	for _, s := range e.Results {
		for _, c := range s.Result.Cells {
			cells[fmt.Sprintf("%s: %s/%s %s %s", s.File, c.Backend, c.Setting, c.Test, c.Fault)] = c
		}
	}
	seen := map[string]int{}
	for _, n := range []Needs{
		{Loses: NothingOnPowerLoss}, {Loses: NothingOnCrash, Must: []string{"durable", "at-least-once"}}, {Must: []string{"at-most-once"}},
		{Rate: 5000, P99: 20 * time.Millisecond}, {P99: 20 * time.Millisecond}, {Backlog: 400}, {Must: []string{"cluster", "delay", "ordered-per-key", "competing"}},
	} {
		a, err := e.Choose(n)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range a.Settings {
			for _, r := range c.Reasons {
				if r.Verdict != Unknown && len(r.Proof) == 0 {
					t.Errorf("%s, %s: got %s without a proof", c.Setting, r.Need, r.Verdict)
				}
				for _, p := range r.Proof {
					seen[p.Kind]++
					switch cell, ok := cells[p.Result+": "+p.Cell]; {
					case p.Kind == Measured && (!ok || cell.Valid != p.Trials):
						t.Errorf("%s, %s: %v is no cell of its result", c.Setting, r.Need, p)
					case p.Kind != Measured && p.Source == "":
						t.Errorf("%s, %s: %v is from nowhere", c.Setting, r.Need, p)
					}
				}
			}
		}
	}
	for _, kind := range []string{Measured, Claimed, Expected, Document} {
		if seen[kind] == 0 {
			t.Errorf("got no proof of the kind %s", kind)
		}
	}
}

func TestWithoutAResultNothingIsCalledMeasured(t *testing.T) {
	e, err := New()
	if err != nil {
		t.Fatal(err)
	}
	a, err := e.Choose(Needs{Must: []string{"durable", "replay"}, Loses: NothingOnCrash})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := a.Text(&b, true); err != nil {
		t.Fatal(err)
	}
	if a.Measured || strings.Contains(b.String(), "measured: ") || len(a.Fitting()) == 0 {
		t.Errorf("got measured=%v and\n%s\nwant an answer, and none of it measured", a.Measured, b.String())
	}
	for _, want := range []string{"Nothing was measured here", "queuelab run --suite quick", "expected, from documents:", "claimed by the open queue:"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("got\n%s\nwant it to say %q", b.String(), want)
		}
	}
	if a, err = e.Choose(Needs{Rate: 10}); err != nil || len(a.Fitting()) > 0 || a.Conflict != nil {
		t.Errorf("got %v, %v and the conflict %v, want that no rate is known to be held, and no conflict of it", names(a.Fitting()), err, a.Conflict)
	}
}
