package fault

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"queuelab/bench/broker"
	"queuelab/bench/storage"
)

// Strike is one blow at a system that runs, and how it is undone: what a Fault
// injects and heals, without the load and the waiting around it, for somebody who
// decides when.
type Strike struct {
	Name    string
	Summary string // one line for people
	// HealName and HealSummary are those of the way back.
	HealName    string
	HealSummary string
	// At is what is struck.
	At Part
	// Means says why the strike means nothing to such a target; "" where it does.
	Means func(Target) string
	// Missing says what this machine lacks for it, as Fault.Missing does; nil: it
	// needs nothing.
	Missing func() string
	// Inject returns once it is confirmed, with what was done in words. Heal
	// returns once the part serves again.
	Inject, Heal func(ctx context.Context, s Stage) (said string, err error)
}

// Part is a part of the system.
type Part string

// The parts that can be struck.
const (
	AtConsumer Part = "consumer"
	AtProducer Part = "producer"
	AtBroker   Part = "broker"
	AtDatabase Part = "database"
)

// Stage is a system under way, as a Strike sees it.
type Stage interface {
	// Broker is the one that the queue is on; nil for a queue in a process.
	Broker() *broker.Broker
	// Database is the PostgreSQL that effects are committed to; nil where they
	// are not.
	Database() *broker.Broker
	// Victim is the process that is meant: one that lives, for Inject, and for Heal
	// one that Inject has struck and that is still there.
	Victim(ctx context.Context, at Part) (Victim, error)
	// Start starts another one, for one that died.
	Start(ctx context.Context, at Part) (Victim, error)
}

// Victim is a process of a stage.
type Victim interface {
	// String names it, with its process id.
	String() string
	// Hand says what it holds, as in "which held 2 messages"; "" where it never
	// holds any.
	Hand() string
	// Signal is as Node.Signal.
	Signal(s os.Signal) error
	// Slow makes its handler slower, or as it was.
	Slow(slow bool) error
}

// Strikes lists every strike, in the order in which they are offered.
func Strikes() []Strike {
	return []Strike{
		{
			Name: "kill-consumer", Summary: "a consumer gets SIGKILL", At: AtConsumer,
			HealName: "start-consumer", HealSummary: "another consumer is started",
			Inject: signal(AtConsumer, syscall.SIGKILL, "kill -9 of %v"),
			Heal:   start(AtConsumer), Means: anything,
		},
		{
			Name: "freeze-consumer", Summary: "a consumer gets SIGSTOP: it holds what it has, and says nothing", At: AtConsumer,
			HealName: "thaw-consumer", HealSummary: "it gets SIGCONT, and goes on where it stood",
			Inject: signal(AtConsumer, syscall.SIGSTOP, "kill -STOP of %v"),
			Heal:   signal(AtConsumer, syscall.SIGCONT, "kill -CONT of %v"), Means: anything,
		},
		{
			Name: "slow-consumer", Summary: "a consumer's handler takes ten times as long, a second at least", At: AtConsumer,
			HealName: "hurry-consumer", HealSummary: "its handler is as fast as before",
			Inject: slow(true, "the handler of %v is slow from now on"),
			Heal:   slow(false, "the handler of %v is as fast as before"), Means: anything,
		},
		{
			Name: "kill-producer", Summary: "the producer gets SIGKILL: whatever had no answer is unknown", At: AtProducer,
			HealName: "start-producer", HealSummary: "another producer is started",
			Inject: signal(AtProducer, syscall.SIGKILL, "kill -9 of %v"),
			Heal:   start(AtProducer),
			Means: func(t Target) string {
				if t.Broker == "" {
					return "producer, queue and consumer are one process here: kill the consumer"
				}
				return ""
			},
		},
		{
			Name: "kill-broker", Summary: "the broker gets SIGKILL", At: AtBroker,
			HealName: "restart-broker", HealSummary: "it is started again, on the files that it left",
			Inject: func(ctx context.Context, s Stage) (string, error) {
				return "kill -9 of the broker", s.Broker().Kill(ctx)
			},
			Heal: func(ctx context.Context, s Stage) (string, error) {
				return "the broker was started again on its files", s.Broker().Restart(ctx)
			},
			Means: hasBroker,
		},
		{
			Name: "freeze-broker", Summary: "the broker gets SIGSTOP: connections stay open, and nobody answers", At: AtBroker,
			HealName: "thaw-broker", HealSummary: "it gets SIGCONT, and answers what had waited",
			Inject: func(ctx context.Context, s Stage) (string, error) {
				return "kill -STOP of the broker", s.Broker().Pause(ctx)
			},
			Heal: func(ctx context.Context, s Stage) (string, error) {
				return "kill -CONT of the broker", s.Broker().Resume(ctx)
			},
			Means: hasBroker,
		},
		{
			Name: "cut-power", Summary: "the broker's power goes: what was not synced to its disk is gone", At: AtBroker,
			HealName: "restore-power", HealSummary: "it is started from what was synced at that instant",
			Inject: cutPower,
			Heal: func(ctx context.Context, s Stage) (string, error) {
				return "the broker was started from what had been synced", s.Broker().RestartFrom(ctx, storage.Power)
			},
			Means: keepsSomething, Missing: storageMissing,
		},
		{
			Name: "pull-database", Summary: "the database gets SIGKILL: no effect can be committed", At: AtDatabase,
			HealName: "plug-database", HealSummary: "it is started again, on its files",
			Inject: func(ctx context.Context, s Stage) (string, error) {
				return "kill -9 of the database", s.Database().Kill(ctx)
			},
			Heal: func(ctx context.Context, s Stage) (string, error) {
				return "the database was started again on its files", s.Database().Restart(ctx)
			},
			Means: anything,
		},
	}
}

func anything(Target) string { return "" }

func signal(at Part, sig syscall.Signal, say string) func(context.Context, Stage) (string, error) {
	return func(ctx context.Context, s Stage) (string, error) {
		v, err := s.Victim(ctx, at)
		if err != nil {
			return "", err
		}
		said := fmt.Sprintf(say, v)
		if hand := v.Hand(); hand != "" && sig != syscall.SIGCONT { // asked while it can hold something
			said += ", " + hand
		}
		return said, v.Signal(sig)
	}
}

func slow(on bool, say string) func(context.Context, Stage) (string, error) {
	return func(ctx context.Context, s Stage) (string, error) {
		v, err := s.Victim(ctx, AtConsumer)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf(say, v), v.Slow(on)
	}
}

func start(at Part) func(context.Context, Stage) (string, error) {
	return func(ctx context.Context, s Stage) (string, error) {
		v, err := s.Start(ctx, at)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%v was started", v), nil
	}
}

func cutPower(ctx context.Context, s Stage) (string, error) {
	cut, err := s.Broker().CutPower(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("the broker's power was cut: %d bytes were written and not synced", cut.Dirty), nil
}
