//go:build !linux

package ledger

import "os"

const populate = 0

func allocate(f *os.File, offset, size int64) error { return writeZeros(f, offset, size) }
