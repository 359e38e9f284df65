package store

import (
	"context"
	"fmt"
	"time"
)

// now is the database's clock in SQL, in Unix milliseconds. Where two instances
// must agree on whether a time has come, it is the one that both ask.
func (s *Store) now() string {
	if s.name == "postgres" {
		return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
	}
	return "CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER)"
}

// Never is later than all that is due.
const Never = time.Duration(1<<63 - 1)

// Due says how long it is until something is to be done: zero or less is now,
// Never is not at all.
type Due struct {
	Unpaid   time.Duration // see Expire
	GiveBack time.Duration // see ToGiveBack
	Replay   time.Duration // see ToReplay
}

// Due looks for the next of what is due, by the database's clock.
func (s *Store) Due(ctx context.Context) (Due, error) {
	var at struct{ Unpaid, GiveBack, Replay *int64 }
	err := s.read.WithContext(ctx).Raw("SELECT " +
		"(SELECT MIN(pay_by_ms) FROM orders WHERE status = 'confirmed' AND pay_by_ms > 0) - " + s.now() + " AS unpaid, " +
		"(SELECT MIN(give_back_ms) FROM orders WHERE give_back = 1) - " + s.now() + " AS give_back, " +
		"(SELECT MIN(due_ms) FROM dead_letters WHERE state = 'replaying') - " + s.now() + " AS replay").Scan(&at).Error
	if err != nil {
		return Due{}, fmt.Errorf("look for what is due: %w", err)
	}
	in := func(ms *int64) time.Duration {
		if ms == nil {
			return Never
		}
		return time.Duration(*ms) * time.Millisecond
	}
	return Due{Unpaid: in(at.Unpaid), GiveBack: in(at.GiveBack), Replay: in(at.Replay)}, nil
}
