package fault

import (
	"context"
	"errors"
	"time"
)

// fullFor is how long the disk stays full.
const fullFor = time.Second

// DiskFull lets the disk run full under load and then gives the space back, lets
// the broker write what it has kept for that, and restarts it.
func DiskFull() Fault {
	return Fault{
		Name:      "disk-full",
		Summary:   "the disk is full for a second under load; the broker is restarted once there is space",
		Trials:    3,
		Storage:   true,
		OwnBroker: true,
		Means:     keepsSomething,
		Missing:   storageMissing,
		Run:       fillDisk,
	}
}

func fillDisk(ctx context.Context, s Scene) (err error) {
	b := s.Broker()
	under, settled, err := struckLoad(ctx, s)
	if err != nil {
		return err
	}
	if err := pass(ctx, time.Duration(s.Moment()*float64(fullFor))); err != nil {
		return err
	}
	old, err := b.SyncStats(ctx)
	if err != nil {
		return err
	}
	empty := func(ctx context.Context) error { return b.FillDisk(ctx, false) }
	defer func() { err = errors.Join(err, undo(ctx, empty)) }()
	s.Asked()
	if err := b.FillDisk(ctx, true); err != nil {
		return err
	}
	err = until(ctx, 5*time.Second, 20*time.Millisecond, "a write that finds no space", func() (bool, error) {
		now, err := b.SyncStats(ctx)
		return now.Refused > old.Refused, err
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		s.Note("the broker did not feel it: %v", err)
	}
	s.Confirmed()
	s.Facts().Window = time.Since(settled).Milliseconds() + 1
	if err := pass(ctx, fullFor); err != nil {
		return err
	}
	if err := errors.Join(under.Stop(ctx), empty(ctx)); err != nil {
		return err
	}
	if err := errors.Join(b.Ready(ctx), s.Written(ctx)); err != nil {
		s.Note("it did not get well by itself: %v", err)
	}
	// One that answers may still have no working queue: what it has on its disk
	// shows after a restart.
	if err := b.Kill(ctx); err != nil {
		return err
	}
	return queueRestarted(ctx, s)
}
