package queue

import "context"

// ScriptEnqueuer is implemented by a Queue in Redis that takes a message with
// one command, so that a script of somebody else's can do that as well, in one
// atomic step with whatever else it does.
type ScriptEnqueuer interface {
	// ScriptEnqueue says how. It is nil where the queue, as it was opened, needs
	// more than the command to accept a message: a wait for replicas, or the word
	// of a Sentinel about where the server is.
	ScriptEnqueue(ctx context.Context) (*ScriptEnqueue, error)
}

// ScriptEnqueue is the one command that puts a message into a queue. A script
// that has Key as its KEYS[1] and the results of Args as its ARGV does
//
//	redis.call(COMMAND, KEYS[1], unpack(ARGV))
//
// and the message is in the queue, as if it had been published, when the script
// has ended without an error; it is then as safe as Capabilities.Confirm says. The
// command fails before it writes anything when the key holds something else, or
// the server's memory is full and no other write came before it in the script.
// After a lost answer to the script the outcome is unknown, like a publish's.
type ScriptEnqueue struct {
	// Server names the server and its database, as "RUN-ID/0", with the run_id of
	// the INFO command: only a script that runs there may use Key.
	Server string
	// Key is to be among the script's KEYS. In a cluster the part in braces decides
	// its slot, and so that of all other keys of the script.
	Key     string
	Command string
	// Args are the arguments after the key: texts, bytes, numbers, and pointers to
	// such that stay valid. The message's body may be changed afterwards.
	Args func(m Message) []any
}
