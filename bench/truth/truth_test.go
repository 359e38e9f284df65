package truth

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
)

func TestMain(m *testing.M) {
	brokertest.Main(m,
		// amqp091-go closes a connection and waits for its reader in its own time.
		goleak.IgnoreAnyFunction("github.com/rabbitmq/amqp091-go.(*Connection).reader"))
}

func TestEachClaimHoldsOnTheRealClientAndBroker(t *testing.T) {
	for _, kind := range []string{"redis", "rabbitmq", "kafka"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			lent := brokertest.Start(t, kind, "")
			facts, err := Run(t.Context(), Options{Names: []string{kind}, Log: t.Output(), Broker: func(context.Context, string) (*broker.Broker, error) { return lent, nil }})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range facts {
				if !f.Holds {
					t.Errorf("%s: got %s, want: %s", f.Name, f.What, f.Claim)
				}
				if f.Broker != kind || f.BrokerVersion == "" || len(f.Numbers) == 0 {
					t.Errorf("%s: got %+v, want a broker of a known version, and what was measured", f.Name, f)
				}
			}
			if len(facts) < 7 {
				t.Errorf("got %d facts, want at least 7", len(facts))
			}
		})
	}
}

func TestExperimentsHaveOneNameEachAndSayWhatTheyClaim(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range All() {
		if seen[e.Name] || e.Name == "" {
			t.Errorf("two experiments are called %q", e.Name)
		}
		seen[e.Name] = true
		if !strings.HasPrefix(e.Name, e.Broker+"-") || !slices.Contains(broker.Kinds(), e.Broker) {
			t.Errorf("%s: got broker %q, want one of %v, which the name begins with", e.Name, e.Broker, broker.Kinds())
		}
		for _, s := range []string{e.Claim, e.Remedy} {
			if s != "" && !strings.HasSuffix(s, ".") {
				t.Errorf("%s: %q is no sentence", e.Name, s)
			}
		}
		if e.Claim == "" || e.Library == "" {
			t.Errorf("%s claims nothing, or of no library", e.Name)
		}
	}
}

func TestAnExperimentWithoutItsBrokerIsSkippedWithTheReason(t *testing.T) {
	missing := errors.New("not installed")
	facts, err := Run(t.Context(), Options{
		Names: []string{"kafka-one-second", "redis-lpush-twice"},
		Broker: func(context.Context, string) (*broker.Broker, error) {
			return nil, errors.Join(broker.ErrUnavailable, missing)
		},
	})
	if err != nil || len(facts) != 2 {
		t.Fatalf("got %d facts, %v, want 2", len(facts), err)
	}
	for _, f := range facts {
		if !strings.Contains(f.Skipped, "not installed") || f.Holds {
			t.Errorf("got %+v, want it skipped with the reason", f)
		}
	}
	if _, err := Run(t.Context(), Options{Names: []string{"redis"}, Broker: func(context.Context, string) (*broker.Broker, error) { return nil, missing }}); !errors.Is(err, missing) {
		t.Errorf("got %v for a broker that fails, want its error", err)
	}
}

func TestAnUnknownNameListsTheKnown(t *testing.T) {
	if _, err := Run(t.Context(), Options{Names: []string{"kafka-magic"}}); err == nil || !strings.Contains(err.Error(), "kafka-one-second") {
		t.Errorf("got %v, want an error that lists the experiments", err)
	}
}

func TestAnExperimentIsTriedOnceHoweverOftenItIsNamed(t *testing.T) {
	chosen, err := choose([]string{"redis-cancel", "redis", "redis-cancel"})
	if err != nil {
		t.Fatal(err)
	}
	if want, err := choose([]string{"redis"}); err != nil || len(chosen) != len(want) {
		t.Errorf("got %d experiments, %v, want the %d of redis", len(chosen), err, len(want))
	}
}

// What was not tried when the end came is neither true nor false.
func TestAnInterruptionSkipsWhatWasNotTried(t *testing.T) {
	for name, lend := range map[string]func() (*broker.Broker, error){
		"a broker that runs":   func() (*broker.Broker, error) { return broker.External("redis", "redis://127.0.0.1:1/0") },
		"a broker that starts": func() (*broker.Broker, error) { return nil, errors.New("no answer within 2m0s") },
		"no broker":            func() (*broker.Broker, error) { return nil, broker.ErrUnavailable },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		facts, err := Run(ctx, Options{Names: []string{"redis"}, Broker: func(context.Context, string) (*broker.Broker, error) {
			cancel()
			return lend()
		}})
		if !errors.Is(err, context.Canceled) || len(facts) == 0 {
			t.Errorf("%s: got %d facts, %v, want them and context.Canceled", name, len(facts), err)
		}
		for _, f := range facts {
			if f.Skipped != interrupted || f.Error != "" || f.Holds {
				t.Errorf("%s: got %+v, want it skipped as interrupted", name, f)
			}
		}
	}
}

// An experiment whose broker dies under it has no answer, which is no claim that
// holds and none that does not.
func TestNoAnswerIsAnError(t *testing.T) {
	dead, err := broker.External("redis", "redis://127.0.0.1:1/0")
	if err != nil {
		t.Fatal(err)
	}
	facts, err := Run(t.Context(), Options{Names: []string{"redis-lpush-twice"}, Broker: func(context.Context, string) (*broker.Broker, error) { return dead, nil }})
	if err == nil || len(facts) != 1 || facts[0].Error == "" || facts[0].Holds {
		t.Errorf("got %+v, %v, want a fact with an error", facts, err)
	}
}

func TestFactsAreToldByLibrary(t *testing.T) {
	facts := []Fact{
		{Name: "redis-a", Library: "go-redis", LibraryVersion: "v9", Broker: "redis", BrokerVersion: "7.0", Claim: "It is so.", Remedy: "Do that.",
			Seen: Seen{Holds: true, What: "two", Numbers: []Number{{"stored", 2, ""}, {"took", 1.5, "ms"}}}},
		{Name: "redis-b", Library: "go-redis", Broker: "redis", Claim: "It is not.", Seen: Seen{What: "one"}},
		{Name: "kafka-a", Library: "kafka-go", Broker: "kafka", Claim: "It may be.", Skipped: "no Java"},
		{Name: "kafka-b", Library: "kafka-go", Broker: "kafka", Claim: "It broke.", Error: "reset"},
	}
	var s strings.Builder
	if err := Write(&s, facts); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/facts.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), s.String()); diff != "" {
		t.Errorf("the text (-want +got):\n%s", diff)
	}
}
