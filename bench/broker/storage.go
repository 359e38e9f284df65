package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"queuelab/bench/storage"
)

// ErrNoStorage means that a broker's data cannot be, or are not, on a file
// system that can lose power. It comes wrapped, with what is missing.
var ErrNoStorage = errors.New("the broker's data are on no file system that can lose power, sync slowly or be full")

// StorageAvailable says with ErrNoStorage why Options.Storage is not to be had
// here; nil: it is, for a broker that is installed.
func StorageAvailable() error {
	if err := storage.Available(); err != nil {
		return fmt.Errorf("%w: %w", ErrNoStorage, err)
	}
	return nil
}

// disk is a host whose broker has its data on package storage's file system.
type disk interface {
	settle(ctx context.Context) error
	cut(ctx context.Context) (storage.Cut, error)
	launchFrom(ctx context.Context, image storage.Image) error
	delaySync(ctx context.Context, by time.Duration) error
	fill(ctx context.Context, full bool) error
	syncStats(ctx context.Context) (storage.Stats, error)
}

// SettleStorage makes durable all that the broker has written until now: a fault
// that comes later is about what was written after it.
func (b *Broker) SettleStorage(ctx context.Context) error {
	return b.onDisk(ctx, "settle the storage of", disk.settle)
}

// CutPower stops the file system at one instant and then kills every process of
// the broker. It returns once all are gone, with what was so at that instant. The
// broker can then be restarted from either image, from both in turn: RestartFrom.
func (b *Broker) CutPower(ctx context.Context) (c storage.Cut, err error) {
	err = b.onDisk(ctx, "cut the power of", func(d disk, ctx context.Context) (err error) {
		c, err = d.cut(ctx)
		return err
	})
	return c, err
}

// RestartFrom starts the broker on an image of the last cut, at the same path and
// port, and returns once it answers. One that runs is killed before, and what it
// wrote since the cut is gone. The image stays as it was.
func (b *Broker) RestartFrom(ctx context.Context, image storage.Image) error {
	return b.onDisk(ctx, "restart from the image "+string(image)+" of", func(d disk, ctx context.Context) error {
		if err := d.launchFrom(ctx, image); err != nil {
			return err
		}
		return b.launch(ctx)
	})
}

// DelaySync makes each sync of the broker's that begins from now on take so much
// longer. When the broker is killed those under way end at once.
func (b *Broker) DelaySync(ctx context.Context, by time.Duration) error {
	return b.onDisk(ctx, "slow the syncs of", func(d disk, ctx context.Context) error { return d.delaySync(ctx, by) })
}

// FillDisk leaves no space to make a file longer than it is, but for a last part
// of a write; or gives the space back.
func (b *Broker) FillDisk(ctx context.Context, full bool) error {
	return b.onDisk(ctx, "fill the disk of", func(d disk, ctx context.Context) error { return d.fill(ctx, full) })
}

// SyncStats are what the file system has done since the broker was started from
// an image or from nothing.
func (b *Broker) SyncStats(ctx context.Context) (s storage.Stats, err error) {
	err = b.onDisk(ctx, "ask the storage of", func(d disk, ctx context.Context) (err error) {
		s, err = d.syncStats(ctx)
		return err
	})
	return s, err
}

func (b *Broker) onDisk(ctx context.Context, what string, f func(disk, context.Context) error) error {
	return b.do(ctx, what, func(h host, ctx context.Context) error {
		if d, ok := h.(disk); ok && b.kind.storage {
			return f(d, ctx)
		}
		return fmt.Errorf("%w: it was started without Options.Storage", ErrNoStorage)
	})
}
