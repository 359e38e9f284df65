package broker

import (
	"syscall"
	"time"

	"queuelab/bench/storage"
)

// supervisedVar is set in everything a supervisor runs. Its value is the
// broker's directory, so that people find what belongs together in /proc.
const supervisedVar = "QUEUELAB_BROKER_DIR"

// startingVar is set in the environment of what Init is for. A program that
// meets it in Start does not call Init, and would start itself without end.
const startingVar = "QUEUELAB_SUPERVISOR"

// The operations that a supervisor knows.
const (
	opRun    = "run"    // one command, answered once it has ended
	opServe  = "serve"  // commands that stay, the last one is the broker itself
	opKill   = "kill"   // answered once every process is gone
	opEnd    = "end"    // SIGTERM to the broker, or the Signal, answered once every process is gone
	opPause  = "pause"  // answered once every process stands still
	opResume = "resume" // answered once every process has been told
	opMemory = "memory" // the broker may take Room bytes of memory more than it has
	opAlone  = "alone"  // what is started from now on is in a network namespace of its own

	// Of the file system that the data are on.
	opDisk   = "disk"   // it is made, once, empty and owned by User
	opSettle = "settle" // what is written is synced
	opCut    = "cut"    // it is frozen and every process is killed
	opImage  = "image"  // it is made anew from Image, for the next opServe
	opDelay  = "delay"  // syncs take Delay longer
	opLimit  = "limit"  // there is space for Room bytes more, -1: for any
	opStats  = "stats"
)

// command is a program that a supervisor starts.
type command struct {
	Argv []string
	Env  []string // added to the supervisor's own
	User *account `json:",omitempty"` // nil: the same user
}

// account is the user that a command runs as.
type account struct{ UID, GID uint32 }

type request struct {
	ID       int
	Op       string
	Commands []command

	Signal syscall.Signal `json:",omitempty"` // of opEnd; 0: SIGTERM
	User   *account       `json:",omitempty"`
	Image  storage.Image  `json:",omitempty"`
	Delay  time.Duration  `json:",omitempty"`
	Room   int64          `json:",omitempty"`
}

// reply answers the request of that ID. The one with ID 0 comes first, unasked,
// and names the directory; a later one with ID 0 says how the broker ended that
// nobody had killed.
type reply struct {
	ID    int
	Dir   string
	Ended string
	Err   string

	Cut   *storage.Cut   `json:",omitempty"`
	Stats *storage.Stats `json:",omitempty"`
}
