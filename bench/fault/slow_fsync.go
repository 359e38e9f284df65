package fault

import (
	"context"
	"errors"
	"time"
)

// slowSync is what a sync takes on the slow disk.
const slowSync = 1500 * time.Millisecond

// postponed is how long at most a Redis that syncs each second answers before it
// writes, while a sync is under way.
const postponed = 2 * time.Second

// SlowFsync makes the disk slow and kills the broker while a sync is under way:
// one that answers before it writes, since it waits for the disk, forgets what it
// answered for.
func SlowFsync() Fault {
	return Fault{
		Name:      "slow-fsync",
		Summary:   "each sync takes 1.5 s, and the broker gets SIGKILL in the middle of one, under load",
		Storage:   true,
		OwnBroker: true,
		Means:     keepsSomething,
		Missing:   storageMissing,
		Run:       slowDisk,
	}
}

func slowDisk(ctx context.Context, s Scene) (err error) {
	b := s.Broker()
	eachSecond, err := syncsEachSecond(ctx, b)
	if err != nil {
		return err
	}
	under, settled, err := struckLoad(ctx, s)
	if err != nil {
		return err
	}
	fast := func(ctx context.Context) error { return b.DelaySync(ctx, 0) }
	defer func() { err = errors.Join(err, undo(ctx, fast)) }()
	s.Asked()
	if err := b.DelaySync(ctx, slowSync); err != nil {
		return err
	}
	if err := inASync(ctx, s); err != nil {
		return err
	}
	if err := b.Kill(ctx); err != nil {
		return err
	}
	s.Confirmed()
	window := time.Since(settled)
	if eachSecond {
		window = min(window, postponed+slack)
	}
	s.Facts().Window = window.Milliseconds() + 1
	if err := under.Stop(ctx); err != nil {
		return err
	}
	if err := fast(ctx); err != nil {
		return err
	}
	return queueRestarted(ctx, s)
}

// inASync waits until this trial's part of a slow sync has passed. A broker that
// never syncs is killed all the same.
func inASync(ctx context.Context, s Scene) error {
	old, err := s.Broker().SyncStats(ctx)
	if err != nil {
		return err
	}
	err = until(ctx, 5*time.Second, 5*time.Millisecond, "a slow sync", func() (bool, error) {
		now, err := s.Broker().SyncStats(ctx)
		return now.SyncingSince > old.SyncingSince, err
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		s.Note("killed while nothing was synced: %v", err)
		return nil
	}
	return pass(ctx, time.Duration(s.Moment()*float64(slowSync)))
}
