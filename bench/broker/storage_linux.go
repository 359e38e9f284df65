package broker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"queuelab/bench/storage"
)

// Where the data and their bytes are in a broker's directory. Only the broker
// itself sees what is mounted.
const (
	diskName  = "disk"
	bytesName = "storage"
)

// room is what a full disk still takes, so that the write that meets its end is
// cut in two, as on a real one.
const room = 512

func (n *native) settle(ctx context.Context) error { return n.sup.ask(ctx, opSettle) }

func (n *native) cut(ctx context.Context) (storage.Cut, error) {
	r, err := n.sup.exchange(ctx, request{Op: opCut})
	if err == nil && r.Cut == nil {
		err = errors.New("the supervisor did not say what was cut")
	}
	if err != nil {
		return storage.Cut{}, err
	}
	return *r.Cut, nil
}

func (n *native) launchFrom(ctx context.Context, image storage.Image) error {
	_, err := n.sup.exchange(ctx, request{Op: opImage, Image: image})
	return err
}

func (n *native) delaySync(ctx context.Context, by time.Duration) error {
	_, err := n.sup.exchange(ctx, request{Op: opDelay, Delay: by})
	return err
}

func (n *native) fill(ctx context.Context, full bool) error {
	left := int64(-1)
	if full {
		left = room
	}
	_, err := n.sup.exchange(ctx, request{Op: opLimit, Room: left})
	return err
}

func (n *native) syncStats(ctx context.Context) (storage.Stats, error) {
	r, err := n.sup.exchange(ctx, request{Op: opStats})
	if err == nil && r.Stats == nil {
		err = errors.New("the supervisor did not say what was synced")
	}
	if err != nil {
		return storage.Stats{}, err
	}
	return *r.Stats, nil
}

// onDisk answers what concerns the file system. Mounts are made and taken away
// on the thread that forks, since only that one and its children see them.
func (s *supervisor) onDisk(q request) (r reply, err error) {
	if s.disk == nil && q.Op != opDisk && q.Op != opImage {
		return r, errors.New("the power was cut: the broker can only be restarted from an image")
	}
	switch q.Op {
	case opDisk:
		if err := storage.Private(); err != nil {
			return r, err
		}
		s.onADisk = true
		return r, s.mount("", q.User)
	case opSettle:
		return r, s.disk.Settle()
	case opDelay:
		s.disk.Delay(q.Delay)
	case opLimit:
		s.disk.Limit(q.Room)
	case opStats:
		st := s.disk.Stats()
		r.Stats = &st
	case opCut:
		c, err := s.cut()
		r.Cut = &c
		return r, err
	case opImage:
		if q.Image != storage.Crash && q.Image != storage.Power {
			return r, fmt.Errorf("there is no image %q", q.Image)
		}
		from := filepath.Join(s.dir, bytesName, string(q.Image))
		if _, err := os.Stat(from); err != nil {
			return r, errors.New("the power was not cut yet: there are no images")
		}
		s.quiet = true
		s.killAll()
		if err := s.unmount(); err != nil {
			return r, err
		}
		return r, s.mount(from, nil)
	}
	return r, nil
}

func (s *supervisor) mount(from string, owner *account) error {
	at := filepath.Join(s.dir, diskName)
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	u := account{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	if owner != nil {
		u = *owner
	}
	d, err := storage.New(filepath.Join(s.dir, bytesName), from, u.UID, u.GID)
	if err != nil {
		return err
	}
	if err := d.Mount(at); err != nil {
		return err
	}
	s.disk = d
	return nil
}

// unmount is for when no process of the broker is left.
func (s *supervisor) unmount() error {
	if s.disk == nil {
		return nil
	}
	if err := s.disk.Unmount(); err != nil {
		return err
	}
	s.disk = nil
	return nil
}

// cut freezes the file system before it kills, so that both images are of one
// instant, and lays the images out.
func (s *supervisor) cut() (storage.Cut, error) {
	s.quiet = true
	d := s.disk
	c := d.Freeze()
	for _, pid := range children() {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	d.Release() // or they could not die
	s.killAll()
	if err := s.unmount(); err != nil {
		return c, err
	}
	for _, image := range []storage.Image{storage.Crash, storage.Power} {
		if err := d.Lay(image, filepath.Join(s.dir, bytesName, string(image))); err != nil {
			return c, err
		}
	}
	return c, nil
}
