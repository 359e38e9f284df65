package kafka

import (
	"context"
	"fmt"

	kafkago "github.com/segmentio/kafka-go"
)

// client is what differs between the client libraries.
type client interface {
	// carrier connects to the broker at addr for produce requests. An error
	// means that nothing was sent.
	carrier(ctx context.Context, addr string) (carrier, error)

	// join begins to join the group for c: from then on it has c begin each
	// generation and ends it, fills the buffers of its partitions, and reports
	// failures to c. It returns at once.
	join(c *consumer) (member, error)
}

// carrier takes produce requests to one broker, one at a time.
type carrier interface {
	// produce sends one request and returns what the broker answered for each
	// batch, in their order; with acks=0, which is not answered, nil. sent is
	// false where certainly no byte of the request left. After an error the
	// carrier must be closed.
	produce(batches []batch) (answers []answered, sent bool, err error)

	// alive reports whether the broker has left the connection open, as far as
	// can be seen without asking it.
	alive() bool
	Close() error
}

// batch is what one request brings to one partition.
type batch struct {
	partition int
	parts     []*part
	size      int    // not less than the parts take
	sized     []byte // the record batch, after its size in 4 bytes
}

// bytes is the record batch.
func (b batch) bytes() []byte { return b.sized[4:] }

// answered is what a broker says to one batch. The zero value is that it says
// nothing.
type answered struct {
	said bool
	err  error // a kafkago.Error, possibly with what the broker adds
}

// member is the membership of a consumer in its group.
type member interface {
	// leave ends the generation, leaves the group and everything that join
	// began, within a bound of the order of the queue's timeout.
	leave()
}

// brokerTimeout is short enough that the broker gives up before we do.
func (q *topicQueue) brokerTimeout() int32 { return int32((q.timeout * 4 / 5).Milliseconds()) }

// sort puts what a broker said of a partition to the batch that it is about.
func sort(answers []answered, batches []batch, partition int32, code int16, message string) {
	for i, b := range batches {
		if b.partition != int(partition) {
			continue
		}
		answers[i].said = true
		if code != 0 {
			answers[i].err = codeError(code)
		}
		if code != 0 && message != "" {
			answers[i].err = fmt.Errorf("%w: %s", answers[i].err, message)
		}
	}
}

func codeError(code int16) error { return kafkago.Error(code) }
