package broker

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// newHost takes the broker that is installed here, else a container.
func newHost(ctx context.Context, k kind, setting string) (host, error) {
	if os.Getenv(startingVar) != "" {
		return nil, errors.New("this program starts brokers and does not call broker.Init first thing in main")
	}
	if k.assemble != nil {
		if k.storage {
			return nil, fmt.Errorf("%w: a cluster has none", ErrNoStorage)
		}
		return k.assemble(ctx, k, setting)
	}
	if k.storage {
		if err := StorageAvailable(); err != nil {
			return nil, err
		}
	}
	n, err := newNative(ctx, k, setting)
	if err == nil {
		return n, nil
	}
	if !errors.Is(err, ErrUnavailable) {
		return nil, err
	}
	if k.storage {
		return nil, fmt.Errorf("%w: it has to run natively: %w", ErrNoStorage, err)
	}
	c, cerr := newContainer(ctx, k, setting)
	if cerr == nil {
		return c, nil
	}
	if errors.Is(cerr, errNoEngine) {
		return nil, fmt.Errorf("%w (and %w)", err, cerr)
	}
	return nil, cerr
}
