package fault

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
	"queuelab/bench/proxy"
	"queuelab/queue"
)

// wire is a Scene on one real broker, which knows what was delivered.
type wire struct{ *live }

func (w *wire) Start(ctx context.Context, r Role) (Node, error) {
	if p := r.Producer; p != nil && p.Rate == 0 {
		own := *p
		own.Rate, own.Payload = w.target.Rate/2, 100
		r.Producer = &own
	}
	return w.live.Start(ctx, r)
}

func (w *wire) Delivered(ctx context.Context, n int64) error {
	for {
		w.mu.Lock()
		var seen int64
		for _, times := range w.came {
			seen += int64(times)
		}
		w.mu.Unlock()
		if seen >= n {
			return nil
		}
		if err := pass(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// networked are the settings that the faults of the network are tried on here.
var (
	list    = clusterSetting{"redis-list/aof-everysec", "redis", "", "redis+list", ""}
	streams = clusterSetting{"redis-streams/aof-everysec", "redis", "", "redis+streams", "claim=1s"}
	classic = clusterSetting{"rabbitmq/classic", "rabbitmq", "", "amqp", "type=classic&prefetch=10"}
)

func strikeNetwork(t *testing.T, s clusterSetting, f Fault) (w *wire, lost int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w = &wire{newLive(t, brokertest.Start(t, s.kind, s.conf), s, 0.3)}
	if why := f.Means(w.target); why != "" {
		t.Fatalf("%s on %s: %s", f.Name, s.name, why)
	}
	if err := f.Run(ctx, w); err != nil {
		t.Fatalf("%s on %s: %v", f.Name, s.name, err)
	}
	lost, _ = w.lost()
	if len(w.invalid) > 0 {
		t.Errorf("%s on %s: %v", f.Name, s.name, w.invalid)
	}
	for _, event := range []string{"asked", "confirmed", "healed"} {
		if w.index(event) < 0 {
			t.Errorf("%s on %s was never %s", f.Name, s.name, event)
		}
	}
	if w.index("asked") > w.index("confirmed") || w.index("confirmed") > w.index("healed") {
		t.Errorf("%s on %s: got %v, want it asked, confirmed and healed", f.Name, s.name, w.story)
	}
	t.Logf("%s on %s: outcomes %v, %d lost, %d events, notes %v", f.Name, s.name, w.outcomes, lost, w.facts.Events, w.notes)
	return w, lost
}

func TestAPublishWhoseReplyIsLostIsUnknownAndThere(t *testing.T) {
	for _, s := range []clusterSetting{list, streams, classic} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w, lost := strikeNetwork(t, s, LostReplyPublish())
			if lost != 0 {
				t.Errorf("got %d accepted messages lost, want none", lost)
			}
			unknown := int64(w.outcomes[queue.Unknown])
			if w.facts.Events < lostReplies || unknown < w.facts.Events {
				t.Errorf("got %d unknown and %d events, want an unknown one for each of at least %d", unknown, w.facts.Events, lostReplies)
			}
			if s.kind == "redis" && unknown != w.facts.Events { // a broken AMQP connection takes what else waits with it
				t.Errorf("got %d unknown, want the %d that the lost replies were about", unknown, w.facts.Events)
			}
			if there := len(w.came) - len(w.accepted); int64(there) < w.facts.Events {
				t.Errorf("%d unknown messages came, want at least the %d that were carried out", there, w.facts.Events)
			}
		})
	}
}

func TestAPopWhoseReplyIsLostIsALostMessageAndAReadIsNot(t *testing.T) {
	t.Run("a list loses each", func(t *testing.T) {
		t.Parallel()
		if w, lost := strikeNetwork(t, list, LostReplyReceive()); int64(lost) != w.facts.Events || lost != lostReplies {
			t.Errorf("got %d lost and %d events, want %d of each", lost, w.facts.Events, lostReplies)
		}
	})
	t.Run("a stream loses none", func(t *testing.T) {
		t.Parallel()
		// One reply carries many messages.
		if w, lost := strikeNetwork(t, streams, LostReplyReceive()); lost != 0 || w.facts.Events < lostReplies || len(w.notes) > 0 {
			t.Errorf("got %d lost, %d events and %q, want none lost, and %d replies", lost, w.facts.Events, w.notes, lostReplies)
		}
	})
}

func TestAGhostKeepsWhatAListGaveItAndAnotherGetsTheRest(t *testing.T) {
	for _, s := range []clusterSetting{list, streams, classic} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w, lost := strikeNetwork(t, s, BlackHoleConsumer())
			want := int64(0)
			if s == list {
				want = w.facts.Events
			}
			if int64(lost) != want || s == list && lost > 1 {
				t.Errorf("got %d lost and %d events, want %d lost", lost, w.facts.Events, want)
			}
			if len(w.notes) != 1 || !strings.Contains(w.notes[0], "ghost") {
				t.Errorf("got notes %v, want what the ghost was given", w.notes)
			}
		})
	}
}

func TestABrokenOrSlowNetworkLosesNothingThatIsStored(t *testing.T) {
	few := map[string][]clusterSetting{
		"reset": {list, classic}, "latency": {streams}, "bandwidth": {classic}, "idle-close": {streams},
	}
	for _, f := range []Fault{Reset(), Latency(), Bandwidth(), IdleClose()} {
		for _, s := range []clusterSetting{list, streams, classic} {
			if os.Getenv("QUEUELAB_SOAK") == "" && !slices.Contains(few[f.Name], s) {
				continue
			}
			t.Run(f.Name+" "+s.name, func(t *testing.T) {
				t.Parallel()
				w, lost := strikeNetwork(t, s, f)
				if int64(lost) > w.facts.Pops || s != list && lost > 0 {
					t.Errorf("got %d lost with %d pops under way, want none", lost, w.facts.Pops)
				}
				if w.facts.Events == 0 {
					t.Error("got no events, want some")
				}
			})
		}
	}
}

func TestWhereThereIsNoNetworkOrNoReplyAFaultSaysSo(t *testing.T) {
	stored := queue.Capabilities{Stored: true, Confirm: queue.ConfirmOS}
	for _, c := range []struct {
		fault  Fault
		target Target
		want   string // "": it means something
	}{
		{Reset(), Target{}, "no network"},
		{Reset(), Target{Broker: "redis"}, ""},
		{Reset(), Target{Broker: "kafka-3"}, "among its nodes"},
		{LostReplyPublish(), Target{Broker: "kafka", Caps: queue.Capabilities{Stored: true}}, "no reply to lose"},
		{LostReplyPublish(), Target{Broker: "redis"}, ""},
		{LostReplyPublish(), Target{Broker: "kafka", Caps: stored}, ""},
		{LostReplyReceive(), Target{Broker: "rabbitmq", Caps: stored}, "pushes"},
		{LostReplyReceive(), Target{Broker: "redis"}, "pushes"},
		{LostReplyReceive(), Target{Broker: "redis", Caps: stored}, ""},
		{LostReplyReceive(), Target{}, "no network"},
	} {
		if got := c.fault.Means(c.target); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s on %q: got %q, want %q", c.fault.Name, c.target.Broker, got, c.want)
		}
	}
}

func TestABrokerThatCannotBeProxiedMakesATrialInvalid(t *testing.T) {
	s := newStage()
	var err error
	if s.broker, err = broker.External("kafka", "kafka://127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	s.target.Broker = "kafka"
	s.perform(t, Reset())
	if len(s.invalid) != 1 || !strings.Contains(s.invalid[0], "advertises no address") || len(s.story) != 0 {
		t.Errorf("got invalid %q after %v, want the reason and nothing begun", s.invalid, s.story)
	}
}

func TestAProxysOneAddressIsWaitedFor(t *testing.T) {
	first, err := proxy.New("127.0.0.1:0", "127.0.0.1:1", proxy.Plain)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		second, err := listenOnce(t.Context(), first.Addr(), "127.0.0.1:1", proxy.Plain)
		if err == nil {
			err = second.Close()
		}
		got <- err
	}()
	first.Close()
	if err := <-got; err != nil {
		t.Errorf("got %v, want the address once it is free", err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 120*time.Millisecond)
	defer cancel()
	if _, err := listenOnce(ctx, taken.Addr().String(), "127.0.0.1:1", proxy.Plain); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got %v, want what keeps the address in use", err)
	}
}
