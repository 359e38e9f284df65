package broker

import "os"

// The hidden first arguments that turn this binary into something else.
const (
	supervisorWord = "supervise-one-broker"
	guardWord      = "guard-one-container"
	natsWord       = "nats-server"
)

// Init must be the first thing in main, and in TestMain through
// brokertest.Main. Where this process was started to look after a broker it does
// that and never returns; everywhere else it does nothing.
//
// That job is a process of its own because the command that wants the broker may
// be killed at any moment. It holds one end of a pipe whose other end only the
// command holds, and clears up when the pipe ends.
func Init() {
	if len(os.Args) < 3 {
		return
	}
	switch os.Args[1] {
	case supervisorWord:
		os.Exit(supervise(os.Args[2]))
	case natsWord:
		os.Exit(serveNATS(os.Args[2:]))
	case guardWord:
		os.Exit(guard(os.Args[2:]))
	}
}
