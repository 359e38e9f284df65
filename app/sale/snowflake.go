package sale

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	workerBits   = 10
	sequenceBits = 12
	// MaxWorker is the highest worker number of a Snowflake.
	MaxWorker   = 1<<workerBits - 1
	maxSequence = 1<<sequenceBits - 1
	// epochMillis is 2025-01-01 UTC; 41 bits of milliseconds last until 2094.
	epochMillis = 1735689600000
	// maxClockWait is how far back a clock may step for us to wait it out.
	maxClockWait = 100 * time.Millisecond
)

// ErrClock: the clock went back further than is worth waiting for.
var ErrClock = errors.New("the clock went back")

// ErrLease: the worker number is no longer known to be ours.
var ErrLease = errors.New("the lease on the worker number ran out")

// Snowflake makes ids of 41 bits of milliseconds, 10 bits of worker number
// and 12 bits of sequence. They are unique while no other Snowflake has the
// same worker number at the same time, which a Lease guarantees.
type Snowflake struct {
	worker int64
	lease  *Lease
	now    func() time.Time
	sleep  func(time.Duration)

	mu       sync.Mutex
	last     int64 // milliseconds since the epoch
	sequence int64
}

// NewSnowflake makes a generator for one worker number, 0 to MaxWorker. Ids
// are made only while lease holds; nil promises that nobody else has the
// number.
func NewSnowflake(worker int, lease *Lease) (*Snowflake, error) {
	return NewSnowflakeBy(time.Now, time.Sleep, worker, lease)
}

// NewSnowflakeBy is NewSnowflake by another clock than that of this machine.
func NewSnowflakeBy(now func() time.Time, sleep func(time.Duration), worker int, lease *Lease) (*Snowflake, error) {
	if worker < 0 || worker > MaxWorker {
		return nil, fmt.Errorf("worker number %d: want 0 to %d", worker, MaxWorker)
	}
	return &Snowflake{worker: int64(worker), lease: lease, now: now, sleep: sleep}, nil
}

// Next returns a new id, greater than all before it from this generator. It
// waits out a clock that stepped back by a little, and is ErrClock beyond
// that; it is ErrLease once the lease ran out.
func (s *Snowflake) Next() (ID, error) {
	for {
		id, wait, err := s.try()
		if err != nil || id != 0 {
			return id, err
		}
		// Unlocked: others may find that time has passed meanwhile.
		s.sleep(wait)
	}
}

func (s *Snowflake) try() (ID, time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if !s.lease.holds(now) {
		return 0, 0, ErrLease
	}
	ms := now.UnixMilli() - epochMillis
	if ms <= 0 {
		return 0, 0, fmt.Errorf("%w: it says %s", ErrClock, now.UTC().Format(time.DateOnly))
	}
	if back := time.Duration(s.last-ms) * time.Millisecond; back > maxClockWait {
		return 0, 0, fmt.Errorf("%w by %v", ErrClock, back)
	} else if back > 0 {
		return 0, back, nil
	}
	if ms == s.last {
		if s.sequence == maxSequence {
			return 0, time.Millisecond - time.Duration(now.Nanosecond()%int(time.Millisecond)), nil
		}
		s.sequence++
	} else {
		s.last, s.sequence = ms, 0
	}
	return ID(ms<<(workerBits+sequenceBits) | s.worker<<sequenceBits | s.sequence), 0, nil
}

// MaxCount bounds what is counted in one millisecond by CountedID.
const MaxCount = 1 << (workerBits + sequenceBits)

// CountedID is the id of n, below MaxCount, in a millisecond after 2025, for
// whoever counts in one place for all: of the size and order of a Snowflake's,
// and like one of it.
func CountedID(unixMillis, n int64) (ID, error) {
	ms := unixMillis - epochMillis
	if ms <= 0 || ms >= 1<<41 || n < 0 || n >= MaxCount {
		return 0, fmt.Errorf("%w: id %d of millisecond %d", ErrClock, n, unixMillis)
	}
	return ID(ms*MaxCount | n), nil
}
