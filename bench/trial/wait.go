package trial

import (
	"context"
	"fmt"
	"time"
)

// waitFor polls a fact until it holds, it fails, or the deadline passes.
func waitFor(ctx context.Context, what string, deadline, every time.Duration, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	for {
		ok, err := holds()
		if err != nil || ok {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %v", what, deadline)
		case <-time.After(every):
		}
	}
}
