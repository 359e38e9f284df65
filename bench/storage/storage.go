// Package storage is a file system for brokers to be broken on: it can lose
// power, sync slowly and be full. It is a FUSE file system on Linux, which
// needs root and /dev/fuse, and keeps two images of one directory: all that was
// written, which is what is left when a process is killed, and only what was
// synced, which is what is left when the power goes. One cut at one instant
// leaves both.
//
// # What survives a power cut
//
// The synced image is the state of the greatest loss that a careful journalling
// file system, such as ext4 or XFS, may show; what a real one shows lies between
// the two images, since it also writes by itself, in any order.
//
//   - Content and size of a file become durable by fsync or fdatasync of that
//     file, and by nothing else: not by closing it, and not by waiting. A file
//     that was never synced and whose name survives is there, and empty.
//   - Names are kept by a journal, in order. A sync of any file or directory
//     makes durable every name that was given, changed or taken away before it,
//     in the whole file system, its own among them. So a rename is never undone
//     while something later survives, and no file is synced and without a name.
//     POSIX promises less: there the directory has to be synced.
//   - An fdatasync of a file that has its size and its name on the disk already
//     writes its content only, and does not take the journal along.
//   - Truncation belongs to the content: what was cut off comes back unless the
//     file was synced afterwards.
//   - Owner, mode and times are never lost.
//   - Pages that were written through mmap count as written once the kernel
//     hands them over: at msync, fsync, munmap, the end of the process, or
//     by itself. The image of the killed process has all of them.
//
// Nothing here ever reaches a real disk on purpose, so that a sync takes as long
// as copying what is dirty: no latency that was measured on it means anything.
//
// # The mount
//
// It is made in a mount namespace of the process that serves it, see Private, so
// that only the children of that process see it and that it vanishes with them,
// however they end.
package storage

import (
	"errors"
	"time"
)

// ErrUnavailable means that there can be no such file system here. It comes
// wrapped, with what is missing.
var ErrUnavailable = errors.New("no file system that can lose power")

// Image is one of the two states that a cut leaves.
type Image string

// The images.
const (
	Crash Image = "crash" // all that was written: the process was killed
	Power Image = "power" // what was synced: the power went
)

// Stats are what has happened since the file system was made, or since the last
// Settle where it says so.
type Stats struct {
	Syncs   int64 // done, of files and directories
	Syncing int   // under way now
	// SyncingSince is when the oldest of those began, as CLOCK_MONOTONIC in
	// nanoseconds; 0: none is under way.
	SyncingSince int64
	Longest      time.Duration // that a sync took since the last Settle
	Written      int64         // bytes
	Dirty        int64         // bytes that are written and not synced, in files that have a name
	Refused      int64         // writes that found no space, wholly or in part
}

// Cut says what was so at the instant of a cut.
type Cut struct {
	At      int64         // CLOCK_MONOTONIC in nanoseconds
	Dirty   int64         // as in Stats; 0: both images are the same, but for names
	Syncs   int64         // as in Stats
	Syncing int           // these never ended
	Longest time.Duration // as in Stats, those that never ended included
}
