//go:build !linux

package broker

import "context"

// Init does nothing here: only Linux lets a process adopt the orphans of its
// descendants, and so brokers run in containers elsewhere.
func Init() {}

type native struct{ host }

func newNative(context.Context, kind, string) (*native, error) {
	return nil, unavailable("brokers run natively on Linux only", "start Docker and run this again: the compose files in compose/ are then used")
}
