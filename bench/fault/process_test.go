package fault

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/queue"
)

// What is confirmed must have happened, and what is healed must be over: the
// order is the evidence.
func TestFaultsOfProcessesHappenInTheirOrder(t *testing.T) {
	for _, c := range []struct {
		fault  Fault
		change func(*stage)
		want   []string
	}{
		{ProducerKill(), nil, []string{
			"start consumer", "start victim producer", "produce",
			"asked", "victim producer: killed", "confirmed", "healed", "probe", "finish 1",
		}},
		{ProducerKill(), func(s *stage) { s.target.Broker = "" }, []string{
			"start victim producerconsumer", "produce", "asked", "victim producerconsumer: killed", "confirmed",
		}},
		{ZombieConsumer(), func(s *stage) { s.target.Lease = 1500 * time.Millisecond }, []string{
			"start victim consumer", "start producer", "produce", "10 delivered",
			"asked", "victim consumer: stopped (signal)", "confirmed", "start consumer", "3.5s", "victim consumer: continued", "healed", "finish 1", "victim consumer: continued",
		}},
		{ZombieConsumer(), func(s *stage) { s.target.Scheme = "amqp" }, []string{ // whose heartbeats decide
			"start victim consumer", "start producer", "produce", "10 delivered",
			"asked", "victim consumer: stopped (signal)", "confirmed", "start consumer", "5s", "victim consumer: continued", "healed", "finish 1", "victim consumer: continued",
		}},
		{ZombieConsumer(), func(s *stage) { s.target.Caps.Broadcast = true }, []string{
			"start victim consumer", "start producer", "produce", "10 delivered",
			"asked", "victim consumer: stopped (signal)", "confirmed", "2s", "victim consumer: continued", "healed", "finish 1", "victim consumer: continued",
		}},
		{SlowConsumer(), nil, []string{"start consumer", "asked", "start producer", "produce", "produced", "confirmed", "healed", "finish 1"}},
		{SlowConsumer(), func(s *stage) { s.target.Broker = "" }, []string{"asked", "start producerconsumer", "produce", "produced", "confirmed", "healed", "finish 1"}},
		{ConsumerJoinsLeaves(), nil, []string{
			"start consumer", "start producer", "produce", "75 delivered",
			"asked", "start consumer", "confirmed", "consumer stops", "start consumer", "healed", "finish 1",
		}},
		{Poison(), nil, []string{"start consumer", "asked", "start producer", "produce", "produced", "confirmed", "healed", "finish 1"}},
		{Poison(), func(s *stage) { s.target.Broker = "" }, []string{"asked", "start producerconsumer", "produce", "produced", "confirmed", "healed", "finish 1"}},
	} {
		t.Run(c.fault.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage()
				s.moment = 0.5
				if c.change != nil {
					c.change(s)
				}
				var struck time.Time
				s.confirmed = func() { struck = time.Now() }
				s.healed = func() { // how long it lasted, before what ended it
					if lasted := time.Since(struck); lasted > 0 {
						s.story = append(s.story[:len(s.story)-2], lasted.String(), s.story[len(s.story)-2], "healed")
					}
				}
				s.perform(t, c.fault)
				if diff := cmp.Diff(c.want, s.story); diff != "" {
					t.Errorf("what happened (-want +got):\n%s", diff)
				}
				if len(s.invalid) > 0 {
					t.Errorf("got invalid: %v", s.invalid)
				}
			})
		})
	}
}

func TestTheMomentSpreadsTheFaultOverTheLoad(t *testing.T) {
	for moment, want := range map[float64]int{0: 100, 0.25: 150, 0.99: 298} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage()
			s.moment = moment
			began := time.Now()
			s.asked = func() {
				if got := time.Since(began) / (2 * time.Millisecond); int(got) != want {
					t.Errorf("moment %v: killed when %d of 400 messages had been due, want %d", moment, got, want)
				}
			}
			s.perform(t, ProducerKill())
			if loaded, err := underLoad(t.Context(), s); !loaded || err != nil || s.index(fmt.Sprintf("%d delivered", want)) < 0 {
				t.Errorf("moment %v: got %v, %v and %v, want it once %d were delivered", moment, loaded, err, s.story, want)
			}
		})
	}
}

func TestThePoisonedMessageIsOneOfTheLoadAndComesAgainWhereItCanBeGivenBack(t *testing.T) {
	for _, moment := range []float64{0, 0.999} {
		for _, nack := range []bool{false, true} {
			s := newStage()
			s.moment, s.target.Caps.Nack = moment, nack
			var poison uint64
			s.started = func(r Role) {
				if r.Consumer != nil {
					poison = r.Consumer.Poison
				}
			}
			s.perform(t, Poison())
			if poison == 0 || poison >= s.target.Messages {
				t.Errorf("moment %v: got message %d, want one of the %d, and not 0, which is none", moment, poison, s.target.Messages)
			}
			want := int64(0)
			if nack {
				want = PoisonAttempts - 1
			}
			if s.facts.Events != want {
				t.Errorf("nack %v: got %d deliveries again, want %d", nack, s.facts.Events, want)
			}
		}
	}
}

// heap is a queue in which so many messages wait.
type heap struct {
	queue.Queue
	n, inFlight int64
	err         error
}

func (h heap) Backlog(context.Context) (queue.Backlog, error) {
	return queue.Backlog{Ready: h.n, InFlight: h.inFlight}, h.err
}

func TestASlowConsumerThatKeptUpProvesNothing(t *testing.T) {
	for _, c := range []struct {
		ready, inFlight int64
		invalid, notes  int
	}{{0, 10, 1, 0}, {300, 10, 0, 1}, {-1, -1, 0, 0}, {0, -1, 0, 1}} {
		s := newStage()
		s.watch = heap{n: c.ready, inFlight: c.inFlight}
		s.perform(t, SlowConsumer())
		if len(s.invalid) != c.invalid || len(s.notes) != c.notes {
			t.Errorf("%d wait: got invalid %q and notes %q, want %d and %d", c.ready, s.invalid, s.notes, c.invalid, c.notes)
		}
	}
	s := newStage()
	s.watch = heap{err: errors.New("no answer")}
	if err := SlowConsumer().Run(t.Context(), s); err == nil {
		t.Error("got nil where the queue cannot be looked into")
	}
}

func TestTheSlowConsumerIsSlowerThanTheLoad(t *testing.T) {
	s := newStage()
	var delay time.Duration
	s.started = func(r Role) {
		if r.Consumer != nil {
			delay = r.Consumer.HandleDelay
		}
	}
	s.perform(t, SlowConsumer())
	if every := time.Duration(2 / s.target.Rate * float64(time.Second)); delay != 3*every {
		t.Errorf("got %v for a message, and one comes every %v, want three times that", delay, every)
	}
}

func TestWhatMeansNothingToAQueueInAProcessSaysWhy(t *testing.T) {
	for _, f := range []Fault{BrokerStop(), BrokerFreeze(), ZombieConsumer(), ConsumerJoinsLeaves(), DatabaseDown(), DatabaseKill(), CommitReplyLost()} {
		if why := f.Means(Target{Backend: "memory"}); why == "" {
			t.Errorf("%s: got no reason", f.Name)
		}
		if why := f.Means(Target{Backend: "redis-list", Broker: "redis"}); why != "" {
			t.Errorf("%s: got %q for a queue on a broker", f.Name, why)
		}
	}
}

func TestAQueueThatSkipsIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		s.target.Caps.Skips = true
		loaded, err := underLoad(t.Context(), s)
		if !loaded || err != nil || len(s.story) > 0 {
			t.Errorf("got %v, %v and %v, want it loaded by the time alone", loaded, err, s.story)
		}
	})
	if why := ZombieConsumer().Means(Target{Broker: "redis", Caps: queue.Capabilities{Skips: true}}); why == "" {
		t.Error("got no reason why a zombie means nothing to a queue that skips")
	}
}
