//go:build !linux

package storage

import "fmt"

// Available says with ErrUnavailable why there can be no such file system here.
func Available() error {
	return fmt.Errorf("%w: it is for Linux", ErrUnavailable)
}
