//go:build !linux

package broker

import "context"

func newMember(context.Context, kind, place, func(layout) (plan, error)) (*member, error) {
	return nil, unavailable("clusters run natively, on Linux only", "use one that runs elsewhere, by its URL")
}

func connect([]*member, [][]int, int, ...int) (*network, error) { return nil, ErrNoNetwork }

// NetworkAvailable says what this machine lacks for Options.Network.
func NetworkAvailable() error { return ErrNoNetwork }
