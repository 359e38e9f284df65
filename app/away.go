package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
)

// away says what to do about something that does not answer; an error of another
// kind stays as it is.
func away(err error, what, flag string) error {
	var dial *net.OpError
	if !errors.As(err, &dial) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w; start %s there, or give the address of one that runs with %s", err, what, flag)
}

// awayQueue is away for a queue by the name that was given: a bare one does not
// tell where it is looked for.
func awayQueue(err error, name string) error {
	flag := "--queue"
	if !strings.Contains(name, "://") {
		flag += " (" + name + " alone is the URL above)"
	}
	return away(fmt.Errorf("queue: %w", err), "its broker", flag)
}
