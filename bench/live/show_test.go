package live

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/broker/brokertest"
	"queuelab/bench/ledger"
	"queuelab/bench/node"
)

// A consumer is killed on a real Redis list: what it held is told as lost while the
// show runs, and the verdict is that of the ledgers.
func TestAKilledConsumersMessageIsLostAsTheLedgerHasIt(t *testing.T) {
	brokertest.Need(t, "redis")
	brokertest.Need(t, "postgres")
	l := serveLab(t, Options{})
	l.must(t, http.StatusCreated, "POST", "/api/shows", request{Scenario: "at-most-once", Speed: 8, Consumers: 2, Seconds: 60,
		Settings: []string{"redis-list/aof-everysec", "redis-streams/aof-everysec", "memory/bounded"}})
	var s seen
	l.watch(t, &s, func(s *seen) bool {
		return s.count(0, "effects") > 0 && s.count(1, "effects") > 0 && s.count(2, "effects") > 0
	})

	victim := 0
	strike := func(lane int, name string) map[string]any {
		return l.must(t, http.StatusOK, "POST", "/api/shows/current/strikes", map[string]any{"lane": lane, "strike": name, "process": victim})
	}
	// A handler that is slow is certain to be struck with a message in its hand.
	victims, made := []int{firstConsumer, firstConsumer, 1}, [3]int{}
	for lane, n := range victims {
		victim = n
		strike(lane, "slow-consumer")
		made[lane] = s.count(lane, "effects")
	}
	l.watch(t, &s, func(s *seen) bool { return s.count(0, "effects") > made[0]+2 && s.count(1, "effects") > made[1]+2 })
	for lane, n := range victims {
		victim = n
		a := strike(lane, "kill-consumer")
		if a["already"] != false || !strings.Contains(a["text"].(string), "held 1 message") && lane < 2 {
			t.Errorf("lane %d: got %v, want a kill of a consumer that held a message", lane, a)
		}
		if again := strike(lane, "kill-consumer"); again["already"] != true {
			t.Errorf("lane %d: got %v for a second press, want that it was done already", lane, again)
		}
	}
	l.watch(t, &s, func(s *seen) bool {
		return len(s.lost[0]) == 1 && s.count(0, "lost") == 1 && s.count(1, "redelivered") == 1 && len(s.lost[2]) > 0 && s.count(2, "lost") == len(s.lost[2])
	})
	id := s.lost[0][0]
	victim = 0
	for _, c := range []struct {
		strike  string
		already bool
	}{{"freeze-broker", false}, {"freeze-broker", true}, {"thaw-broker", false}, {"thaw-broker", true}} {
		a := strike(1, c.strike)
		if diff := cmp.Diff([]any{0.0, 1.0}, a["lanes"]); a["already"] != c.already || diff != "" {
			t.Errorf("%s: got %v, want already %v, on both lanes of the Redis", c.strike, a, c.already)
		}
		if c.strike != "freeze-broker" {
			continue
		}
		if status, v := l.ask(t, "POST", "/api/shows/current/strikes", map[string]any{"lane": 0, "strike": "kill-broker"}); status != http.StatusConflict || v["code"] != "unfit_strike" {
			t.Errorf("got %d %v for a kill of a frozen broker, want that the other strike is to be undone first", status, v)
		}
	}
	l.must(t, http.StatusAccepted, "DELETE", "/api/shows/current", nil)
	l.watch(t, &s, nil)
	if s.state() != stateEnded {
		t.Errorf("got the state %s at the end, want %s", s.state(), stateEnded)
	}
	show := l.current()
	for n, lane := range show.lanes {
		final := lane.final
		if diff := cmp.Diff(accountOf(t, lane), final.Counts.Counts); diff != "" {
			t.Errorf("%s: counts (-ledger +shown):\n%s", lane.setting, diff)
		}
		if s.count(n, "sent") != int(final.Counts.Sent) || s.count(n, "lost") != int(final.Counts.Lost) {
			t.Errorf("%s: the page was told %v, want %+v", lane.setting, s.lanes[n]["counts"], final.Counts)
		}
		var lost []string
		for _, x := range final.Lost {
			lost = append(lost, x.id)
		}
		told := slices.Clone(s.lost[n])
		slices.Sort(lost)
		slices.Sort(told)
		if diff := cmp.Diff(lost, told); diff != "" {
			t.Errorf("%s: lost (-verdict +told while it ran):\n%s", lane.setting, diff)
		}
		if !final.Valid || final.Why != whyStopped {
			t.Errorf("%s: got %+v, want a valid verdict of a show that was stopped", lane.setting, final)
		}
	}
	if final := show.lanes[0].final; final.Counts.Lost != 1 || final.Lost[0].place != placeHandler {
		t.Errorf("got %+v, want one message lost in the consumer", final)
	}
	if final := show.lanes[1].final; final.Counts.Lost != 0 || final.Counts.Redelivered != 1 {
		t.Errorf("got %+v, want none lost and one delivered again", final.Counts)
	}

	story := l.must(t, http.StatusOK, "GET", "/api/shows/current/messages/"+id, nil)
	if deaths := story["deaths"].([]any); story["verdict"] != "lost" || story["place"] != placeHandler || len(deaths) != 1 {
		t.Errorf("got the story %v, want a loss in a consumer that died", story)
	}
	var events []string
	for _, x := range story["steps"].([]any) {
		events = append(events, x.(map[string]any)["event"].(string))
	}
	slices.Sort(events) // a fast queue delivers before its answer is back
	if diff := cmp.Diff([]string{"accepted", "delivered", "intent"}, events); diff != "" {
		t.Errorf("the lost message's steps (-want +got):\n%s", diff)
	}
	recording := l.must(t, http.StatusOK, "GET", "/api/shows/current/recording?format=json", nil)
	if got := len(recording["ticks"].([]any)); got != len(s.ticks) {
		t.Errorf("got %d ticks in the recording, want the %d that were watched", got, len(s.ticks))
	}
	if _, ok := recording["stories"].(map[string]any)[id]; !ok {
		t.Errorf("the recording does not tell of the lost message %s", id)
	}
}

// accountOf is what the ledgers and the database say, asked anew.
func accountOf(t *testing.T, l *lane) ledger.Counts {
	t.Helper()
	records, err := ledger.Read(l.files()...)
	if err != nil {
		t.Fatal(err)
	}
	_, url := l.show.effects()
	db, err := node.OpenEffects(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	effects, err := db.Count(t.Context(), l.trial)
	if err != nil {
		t.Fatal(err)
	}
	return ledger.Account(ledger.Input{Records: records, Effects: effects, Remaining: l.final.Stranded, Confirm: l.caps.Confirm, KeyOf: l.keyOf}).Counts
}

// A page that is closed, and does not come back, ends the show and its processes.
func TestAShowThatNobodyWatchesEnds(t *testing.T) {
	l := serveLab(t, Options{Abandon: 1})
	l.must(t, http.StatusCreated, "POST", "/api/shows", request{Scenario: "normal", Settings: []string{"memory/bounded"}, Speed: 50, Seconds: 60})
	ctx, cancel := context.WithTimeout(t.Context(), 30e9)
	defer cancel()
	show := l.current()
	select {
	case <-show.done:
	case <-ctx.Done():
		t.Fatal("the show goes on")
	}
	if final := show.lanes[0].final; final.Why != whyAbandoned || !final.Valid {
		t.Errorf("got %+v, want that it was abandoned", final)
	}
	for _, p := range show.lanes[0].processes {
		if p.alive {
			t.Errorf("%v lives", p)
		}
	}
	// What was shown can be seen by who comes late, and another show can begin.
	var s seen
	l.watch(t, &s, nil)
	if s.state() != stateEnded || s.lanes[0]["ended"] == nil {
		t.Errorf("got the state %s and %v, want the verdict", s.state(), s.lanes[0])
	}
	l.must(t, http.StatusCreated, "POST", "/api/shows", request{Scenario: "normal", Settings: []string{"memory/bounded"}, Speed: 50, Seconds: 60})
	if status, v := l.ask(t, "POST", "/api/shows", request{Scenario: "normal", Settings: []string{"memory/bounded"}}); status != http.StatusConflict || v["code"] != "show_runs" {
		t.Errorf("got %d %v for a second show, want a conflict", status, v)
	}
}
