package fault

import (
	"context"
	"errors"
	"time"
)

// outage is longer than a consumer waits for a commit.
const (
	outage     = 3 * time.Second
	commitWait = time.Second
)

// DatabaseDown stops the database that effects are committed to. A commit that
// was under way has no answer, and is done when the database goes on.
func DatabaseDown() Fault {
	return Fault{
		Name:        "database-down",
		Summary:     "the database answers nobody for 3 s under load: a commit under way has no answer, and is done later",
		OwnDatabase: true,
		Means:       hasDatabase,
		Run: func(ctx context.Context, s Scene) error {
			return withoutDatabase(ctx, s, s.Database().Pause, s.Database().Resume)
		},
	}
}

// DatabaseKill kills it, and restarts it on its files.
func DatabaseKill() Fault {
	return Fault{
		Name:        "database-kill",
		Summary:     "the database gets SIGKILL under load and is restarted",
		Trials:      3, // a commit under way is answered or not, and is done once: any moment shows it
		OwnDatabase: true,
		Means:       hasDatabase,
		Run: func(ctx context.Context, s Scene) error {
			return withoutDatabase(ctx, s, s.Database().Kill, s.Database().Restart)
		},
	}
}

// hasDatabase is for faults of the database's process.
func hasDatabase(t Target) string {
	if t.Broker == "" {
		return "effects are committed to SQLite, in the service's process: there is no database to strike"
	}
	return ""
}

func withoutDatabase(ctx context.Context, s Scene, down, up func(context.Context) error) error {
	if _, err := s.Start(ctx, Role{Consumer: &Consumer{CommitTimeout: commitWait}}); err != nil {
		return err
	}
	producer, err := load(ctx, s, Role{Producer: &Producer{Count: s.Target().Messages}})
	if err != nil {
		return err
	}
	if loaded, err := underLoad(ctx, s); !loaded {
		return err
	}
	s.Asked()
	err = down(ctx)
	if err == nil {
		s.Confirmed()
		err = pass(ctx, outage)
	}
	if err := errors.Join(err, undo(ctx, up)); err != nil {
		return err
	}
	s.Healed()
	return s.Finish(ctx, producer)
}
