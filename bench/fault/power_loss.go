package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"queuelab/bench/ledger"
	"queuelab/bench/storage"
)

// slack is what a promise in time is given beside what was measured.
const slack = 100 * time.Millisecond

// PowerLoss cuts the power at one instant of a load, with a frozen backlog from
// before and no consumer. The broker is then started twice, from each of the
// images of that instant: from all that it had written, as a killed process
// leaves it, and from what it had synced, as the power leaves it. Both are read
// back, the second one into the ledger.
func PowerLoss() Fault {
	return Fault{
		Name:      "power-loss",
		Summary:   "the power goes under load: the broker comes back with what it had synced",
		Storage:   true,
		OwnBroker: true,
		Means:     keepsSomething,
		Missing:   storageMissing,
		Run:       losePower,
	}
}

func losePower(ctx context.Context, s Scene) (err error) {
	b := s.Broker()
	eachSecond, err := syncsEachSecond(ctx, b)
	if err != nil {
		return err
	}
	under, settled, err := struckLoad(ctx, s)
	if err != nil {
		return err
	}
	// Anywhere in the second of a broker that syncs once in each, and not in the
	// first one of this load.
	if err := pass(ctx, time.Second+time.Duration(s.Moment()*float64(time.Second))); err != nil {
		return err
	}
	s.Asked()
	cut, err := b.CutPower(ctx)
	defer func() {
		if ctx.Err() != nil { // the next trial wants a broker that runs
			err = errors.Join(err, undo(ctx, func(ctx context.Context) error { return b.RestartFrom(ctx, storage.Power) }))
		}
	}()
	if err != nil {
		return err
	}
	s.StruckAt(cut.At)
	s.Confirmed()
	since := time.Since(settled)
	if eachSecond {
		// Counted back from the confirmation, which is later than the cut.
		since = min(since, time.Second+cut.Longest+slack+time.Duration(ledger.Now()-cut.At))
	}
	f := s.Facts()
	f.Window = since.Milliseconds() + 1
	f.DirtyBytes = cut.Dirty
	if cut.Dirty == 0 {
		s.Note("nothing written was unsynced at the cut, so that it was as a kill: what is confirmed had been synced")
	}
	s.Note("%d bytes were written and not synced at the cut; %d syncs since the start, the longest %v", cut.Dirty, cut.Syncs, cut.Longest.Round(time.Microsecond))
	// Stopped before the broker is back, which would take its messages.
	if err := under.Stop(ctx); err != nil {
		return err
	}
	accepted, err := s.AcceptedIDs()
	if err != nil {
		return err
	}

	if err := b.RestartFrom(ctx, storage.Crash); err != nil {
		return fmt.Errorf("restart the broker as a killed process leaves it: %w", err)
	}
	if err := killLoss(ctx, s, accepted); err != nil {
		return err
	}
	if err := b.RestartFrom(ctx, storage.Power); err != nil {
		if ctx.Err() != nil {
			return err
		}
		s.Invalid("the broker did not come back from a power loss: %v", err)
		return nil
	}
	return queueReadBack(ctx, s)
}

// killLoss reads the image of the killed process.
func killLoss(ctx context.Context, s Scene, accepted map[string]bool) error {
	f := s.Facts()
	if s.Target().Caps.DropsOldest {
		f.CrashUnknown = 1
		s.Note("what a mere kill would have lost is not known: the queue drops messages by its own will")
		return nil
	}
	lost, err := readOut(ctx, s, accepted)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		f.CrashUnknown = 1
		s.Note("what a mere kill would have lost is not known: %v", err)
	default:
		f.CrashLost = lost
	}
	return nil
}
