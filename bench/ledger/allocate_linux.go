package ledger

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// populate makes the pages present as they are mapped, in the background, so
// that no append meets a page fault.
const populate = unix.MAP_POPULATE

// allocate reserves the file's blocks, so that a full disk is an error here and
// not a SIGBUS at some store.
func allocate(f *os.File, offset, size int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, offset, size)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EOPNOTSUPP):
			return writeZeros(f, offset, size)
		}
		return err
	}
}
