package fault

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
)

// answers asks once, and not for long.
func answers(t *testing.T, b *broker.Broker) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 500*time.Millisecond)
	defer cancel()
	return b.Ready(ctx) == nil
}

// outages are the faults that take down what is not this trial's own process,
// each with its victim.
func outages(t *testing.T) map[string]func(*stage) (Fault, *broker.Broker) {
	redis := brokertest.Start(t, "redis", "")
	postgres := brokertest.Start(t, "postgres", "")
	return map[string]func(*stage) (Fault, *broker.Broker){
		"broker-stop":   func(s *stage) (Fault, *broker.Broker) { s.broker = redis; return BrokerStop(), redis },
		"broker-freeze": func(s *stage) (Fault, *broker.Broker) { s.broker = redis; return BrokerFreeze(), redis },
		"database-down": func(s *stage) (Fault, *broker.Broker) { s.database = postgres; return DatabaseDown(), postgres },
		"database-kill": func(s *stage) (Fault, *broker.Broker) { s.database = postgres; return DatabaseKill(), postgres },
	}
}

func TestAnOutageIsConfirmedWhileItLastsAndHealedOnceItIsOver(t *testing.T) {
	for name, of := range outages(t) {
		t.Run(name, func(t *testing.T) {
			s := newStage()
			f, victim := of(s)
			var seen []bool
			look := func() { seen = append(seen, answers(t, victim)) }
			s.asked, s.confirmed, s.healed = look, look, look
			s.perform(t, f)
			if !slices.Equal(seen, []bool{true, false, true}) {
				t.Errorf("got answers %v when it was asked for, confirmed and healed, want only the second missing", seen)
			}
			if s.index("asked") > s.index("confirmed") || s.index("confirmed") > s.index("healed") || s.story[len(s.story)-1][:6] != "finish" {
				t.Errorf("got %v", s.story)
			}
			if len(s.invalid) > 0 {
				t.Errorf("got invalid: %v", s.invalid)
			}
		})
	}
}

// A run that is interrupted in an outage must not leave it to the next trial.
func TestAnInterruptedOutageIsUndone(t *testing.T) {
	for name, of := range outages(t) {
		if name == "broker-stop" { // it waits for nothing that could be interrupted
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := newStage()
			f, victim := of(s)
			ctx, cancel := context.WithCancel(t.Context())
			s.confirmed = cancel
			if err := f.Run(ctx, s); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want context.Canceled", err)
			}
			if !answers(t, victim) {
				t.Error("the victim is still down")
			}
			if s.index("healed") >= 0 {
				t.Errorf("got %v, want no heal: the fault did not last", s.story)
			}
		})
	}
}

// A consumer whose commit was done and whose answer was lost tries again: two
// effects of one message, and no more than that.
func TestALostCommitReplyLeavesOneEffectTwice(t *testing.T) {
	postgres := brokertest.Start(t, "postgres", "")
	s := newStage()
	s.database = postgres
	direct, err := sql.Open("pgx", postgres.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	if _, err := direct.ExecContext(t.Context(), `CREATE TABLE seen (n int)`); err != nil {
		t.Fatal(err)
	}
	defer direct.ExecContext(context.WithoutCancel(t.Context()), `DROP TABLE seen`)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	failures, recovered := make(chan int, 1), make(chan struct{}, 1)
	s.started = func(r Role) {
		if r.Consumer == nil {
			return
		}
		go func() {
			db, err := sql.Open("pgx", r.Consumer.Effects)
			failed := 0
			for n := 0; err == nil && ctx.Err() == nil; {
				if _, err := db.ExecContext(context.WithoutCancel(ctx), `INSERT INTO seen VALUES ($1)`, n); err != nil {
					failed++ // and again
					if failed > 100 {
						break
					}
					continue
				}
				n++
				if failed > 0 {
					select {
					case recovered <- struct{}{}:
					default:
					}
				}
			}
			db.Close()
			failures <- failed
		}()
	}
	s.healed = func() { // while the proxy is still there
		<-recovered
		stop()
	}
	s.perform(t, CommitReplyLost())
	if failed := <-failures; failed < 1 || s.facts.Events != 1 {
		t.Errorf("got %d failed commits and %d events, want one of each", failed, s.facts.Events)
	}
	var twice, more int
	err = direct.QueryRowContext(t.Context(), `SELECT count(*) FILTER (WHERE c = 2), count(*) FILTER (WHERE c > 2)
		FROM (SELECT count(*) AS c FROM seen GROUP BY n) AS s`).Scan(&twice, &more)
	if err != nil || twice != 1 || more != 0 {
		t.Errorf("got %d effects twice and %d more often, %v, want 1 and 0", twice, more, err)
	}
}
