package redisconn

import (
	"context"

	"github.com/redis/go-redis/v9"

	"queuelab/queue"
)

// valueField is the one field of an entry that holds a whole message.
const valueField = "m"

// Entry is one entry of a stream that holds a message as one value.
type Entry struct {
	ID    string
	Value string // "" where the entry was deleted, or is somebody else's
}

// Adds makes the commands that append messages to streams, each as one value.
// stream names a message's stream; options stand between it and the id, such as
// MAXLEN.
func Adds(msgs []queue.Message, stream func(queue.Message) *string, options ...any) []*redis.StringCmd {
	size := 5 + len(options)
	cmds, args := make([]*redis.StringCmd, len(msgs)), make([]any, 0, size*len(msgs))
	for i, v := range Envelopes(msgs) {
		args = append(append(args, "xadd", stream(msgs[i])), options...)
		args = append(args, "*", valueField, v)
		cmds[i] = redis.NewStringCmd(context.Background(), args[i*size:len(args):len(args)]...)
	}
	return cmds
}

// Streams reads an answer to XREAD or XREADGROUP, and calls each with every
// stream in it; with none when nothing came in time.
func (r *Reply) Streams(each func(stream string, es []Entry)) error {
	streams, err := r.Array()
	for i := 0; i < streams && err == nil; i++ {
		var name string
		if _, err = r.Array(); err == nil {
			name, err = r.Text()
		}
		n := 0
		if err == nil {
			n, err = r.Array()
		}
		es := make([]Entry, max(n, 0))
		for j := range es {
			if err == nil {
				es[j], err = r.entry()
			}
		}
		if err == nil {
			each(name, es)
		}
	}
	return err
}

func (r *Reply) entry() (e Entry, err error) {
	if _, err = r.Array(); err == nil {
		e.ID, err = r.Text()
	}
	fields := 0
	if err == nil {
		fields, err = r.Array()
	}
	for i := 0; i < fields && err == nil; i += 2 {
		var name, value string
		if name, err = r.Text(); err == nil {
			value, err = r.Text()
		}
		if name == valueField {
			e.Value = value
		}
	}
	return e, err
}
