package broker

import (
	"context"
	"errors"
	"fmt"
)

// newHost takes the broker that is installed here, else a container.
func newHost(ctx context.Context, k kind, setting string) (host, error) {
	n, err := newNative(ctx, k, setting)
	if err == nil {
		return n, nil
	}
	if !errors.Is(err, ErrUnavailable) {
		return nil, err
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
