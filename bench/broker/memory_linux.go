package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

var _ memory = (*native)(nil)

func (n *native) limitMemory(ctx context.Context, more int64) error {
	_, err := n.sup.exchange(ctx, request{Op: opMemory, Room: more})
	return err
}

func (n *native) watermark(ctx context.Context, to string) (string, error) {
	if n.plan.watermark == nil {
		return "", fmt.Errorf("%w: it has no watermark", ErrNoMemoryLimit)
	}
	return n.plan.watermark(ctx, to)
}

func (n *native) ackTimeout(ctx context.Context, within time.Duration) error {
	if n.plan.ackTimeout == nil {
		return fmt.Errorf("%w: it has none", ErrNoAckTimeout)
	}
	return n.plan.ackTimeout(ctx, within)
}

// limitMemory limits the address space of the broker's own process, and not what
// the machine gives it: neither root nor a control group is needed for that. It
// dies without a core file, which nobody would look at.
func (s *supervisor) limitMemory(more int64) error {
	if s.broker == 0 {
		return errors.New("it does not run")
	}
	kib, err := kibOf(fmt.Sprintf("/proc/%d/status", s.broker), "VmSize:")
	if err != nil {
		return err
	}
	most := uint64(kib)<<10 + uint64(more)
	for what, limit := range map[int]uint64{unix.RLIMIT_AS: most, unix.RLIMIT_CORE: 0} {
		if err := unix.Prlimit(s.broker, what, &unix.Rlimit{Cur: limit, Max: limit}, nil); err != nil {
			return fmt.Errorf("limit the memory of process %d: %w", s.broker, err)
		}
	}
	return nil
}
