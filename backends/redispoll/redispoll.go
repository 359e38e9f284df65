// Package redispoll is a queue on a Redis List that consumers poll: LPUSH, and
// RPOP in a loop. It is what many begin with; redislist waits where this asks.
//
// # Delivery
//
// At most once, as with redislist: RPOP removes what it delivers, Ack only settles
// in this process and never fails, Nack is queue.ErrUnsupported. Consumers compete,
// and one consumer sees the messages in publish order.
//
// While the list is empty a waiting consumer asks again every interval: a message
// waits for half of it on average, and the server answers 1/interval questions a
// second for each consumer that has nothing to do. No connection is blocked, so no
// time limit of a server or a proxy ends one, and no client ever waits for a reply
// that somebody else decides about.
//
// # URL
//
//	redis+poll://[user:password@]host[:6379][/db]?queue=orders
//
//	queue=NAME      the list is poll:{NAME}; required
//	interval=D      between two questions that found nothing; 0s to 1s, default
//	                10ms. 0s is the busy loop, and keeps a processor busy
//	batch=N         most messages popped at once, 1 to 1000; default 1. What a
//	                killed consumer loses is a batch
//	pipeline=N      most messages of concurrent publishes in one LPUSH; default 512
//	timeout=D       to connect, and for an answer; default 3s
//	retries=N       this, wait=N, sentinel=H:P,… and master=NAME are as with redislist
//	preset=latency  interval=1ms
//	preset=throughput  batch=100
//
// # Crash behaviour
//
// A consumer that is killed loses what it had popped. A pop whose reply is lost is
// an error and a lost message. A consumer that has silently vanished takes
// nothing: it no longer asks. What a killed broker keeps is its own setting, as
// with redislist.
package redispoll

import (
	"context"
	"net/url"
	"time"

	"queuelab/backends/internal/params"
	"queuelab/backends/internal/redisconn"
	"queuelab/queue"
)

type poll struct {
	redisconn.List
	batch    int
	interval time.Duration
}

// Open opens the queue that u names. It verifies that the server answers and
// reads how it keeps its data.
func Open(ctx context.Context, u *url.URL) (queue.Queue, error) {
	p := params.New(u)
	p.Preset(map[string]map[string]string{
		"latency":    {"interval": "1ms"},
		"throughput": {"batch": "100"},
	})
	q := &poll{
		batch: p.Int("batch", 1, 1, 1000),
		// Close waits for a pause to end, as it does for a block.
		interval: p.Duration("interval", 10*time.Millisecond, 0, redisconn.Block),
	}
	var err error
	if q.List, err = redisconn.OpenList(ctx, "redis-poll", "poll", u, p); err != nil {
		return nil, err
	}
	q.Pop = q.pop
	return q, nil
}

// pop asks once, and pauses when there is nothing.
func (q *poll) pop(p *redisconn.Popper, most int) ([]redisconn.Popped, error) {
	reply, err := p.Do("rpop", q.Key, min(most, q.batch))
	if err != nil {
		return nil, err
	}
	values, err := reply.Texts()
	if err != nil {
		return nil, err
	}
	if len(values) == 0 && q.interval > 0 {
		p.Pause(q.interval)
	}
	popped := make([]redisconn.Popped, len(values))
	for i, v := range values {
		popped[i] = redisconn.Popped{Key: q.Key, Value: v}
	}
	return popped, nil
}
