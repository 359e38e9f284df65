package broker

import (
	"context"
	"fmt"
	"time"
)

// Usage is what a broker has cost so far.
type Usage struct {
	// Known is false for a broker that belongs to somebody else or runs in a
	// container, and where the system does not let us see: the rest is then zero.
	Known bool
	// CPU is the user and system time, in steps of 10 ms, of all processes that
	// the broker ever had, its preparation included: only differences say what
	// work cost. It never goes back. A kill and a restart add what they take,
	// and lose what a child used whose parent did not care for its end.
	CPU time.Duration
	// MemoryBytes is resident now. A page that several processes share is
	// counted once, where the kernel tells; 0 for a broker that was killed.
	MemoryBytes int64
	// DiskBytes is what is allocated for the files in its directory, its log
	// included: a file with holes counts what it fills, as in du.
	DiskBytes int64
}

// Usage reads what the broker has used until now. It asks the kernel and not the
// broker, so that it neither waits for one that is paused nor costs it anything;
// it takes some milliseconds. A broker that cannot be seen is no error, but not
// Known; one that was stopped is an error.
func (b *Broker) Usage(ctx context.Context) (Usage, error) {
	if b.host == nil {
		return Usage{}, nil
	}
	u, err := Usage{}, ctx.Err()
	if err == nil {
		u, err = b.host.usage()
	}
	if err != nil {
		return Usage{}, fmt.Errorf("usage of %s: %w", b.kind.name, err)
	}
	return u, nil
}
