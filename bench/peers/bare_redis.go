package peers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"queuelab/queue"
)

// bareRedis is a client with the settings that our backends have, so that a
// ratio is not that of two settings: no retries, and no notifications.
func bareRedis(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, MaxRetries: -1, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}})
}

// Where our backends keep a queue of that name, as their packages document it.
func listKey(queue string) string   { return "list:{" + queue + "}" }
func streamKey(queue string) string { return "stream:{" + queue + "}" }
func channel(queue string) string   { return "pubsub:0:{" + queue + "}" }

// blockFor is how long a bare loop's command waits for a message.
const blockFor = time.Second

// bareStream reads and acks once.
func bareStream(ctx context.Context, c *redis.Client, w where, batch int, seen func([]byte)) (int, error) {
	key := streamKey(w.queue)
	read, err := c.XReadGroup(ctx, &redis.XReadGroupArgs{Group: w.group, Consumer: "bare", Streams: []string{key, ">"},
		Count: int64(batch), Block: blockFor}).Result()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("XREADGROUP: %w", err)
	}
	var ids []string
	for _, m := range read[0].Messages {
		ids = append(ids, m.ID)
		if seen != nil {
			b, _ := m.Values["body"].(string)
			seen([]byte(b))
		}
	}
	if err := c.XAck(ctx, key, w.group, ids...).Err(); err != nil {
		return 0, fmt.Errorf("XACK: %w", err)
	}
	return len(ids), nil
}

// redisLine publishes one message with one command, and receives one likewise.
func (w where) redisLine(ctx context.Context) (*line, error) {
	out, in := bareRedis(w.host), bareRedis(w.host)
	l := &line{settled: nothingUnderWay, close: func() { _, _ = in.Close(), out.Close() }}
	switch w.scheme {
	case "redis+list":
		l.publish = func(ctx context.Context, m queue.Message) error {
			return out.LPush(ctx, listKey(w.queue), m.Body).Err()
		}
		l.receive = func(ctx context.Context, seen func([]byte)) error {
			got, err := in.BRPop(ctx, blockFor, listKey(w.queue)).Result()
			if errors.Is(err, redis.Nil) {
				return nil
			}
			if err == nil {
				seen([]byte(got[1]))
			}
			return err
		}
	case "redis+streams":
		l.publish = func(ctx context.Context, m queue.Message) error {
			return out.XAdd(ctx, &redis.XAddArgs{Stream: streamKey(w.queue), Values: []any{"id", m.ID, "body", m.Body}}).Err()
		}
		l.receive = func(ctx context.Context, seen func([]byte)) error {
			_, err := bareStream(ctx, in, w, 1, seen)
			return err
		}
	case "redis+pubsub":
		sub := in.Subscribe(ctx, channel(w.queue))
		if _, err := sub.Receive(ctx); err != nil {
			l.close()
			return nil, fmt.Errorf("subscribe: %w", err)
		}
		l.publish = func(ctx context.Context, m queue.Message) error {
			return out.Publish(ctx, channel(w.queue), m.Body).Err()
		}
		l.receive = func(ctx context.Context, seen func([]byte)) error {
			got, err := sub.ReceiveTimeout(ctx, blockFor)
			var waited net.Error
			if errors.As(err, &waited) && waited.Timeout() {
				return nil
			}
			if m, ok := got.(*redis.Message); ok {
				seen([]byte(m.Payload))
			}
			return err
		}
		l.close = func() { _, _, _ = sub.Close(), in.Close(), out.Close() }
	}
	return l, nil
}

// A consumer of Pub/Sub must not be fed faster than it reads, or the broker cuts
// it off. It tells in a key of the same Redis how far it has come.

func progressKey(queue string) string { return "peers:seen:{" + queue + "}" }

const (
	progressEvery = 2 * time.Millisecond
	progressRoom  = 20_000 // messages published and not yet seen, at most
)

func tellProgress(ctx context.Context, raw string, count *atomic.Int64) {
	w, err := parseWhere(raw)
	if err != nil {
		return
	}
	c := bareRedis(w.host)
	defer c.Close()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for last := int64(-1); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if n := count.Load(); n != last {
			// One that is lost delays the feeder until the next.
			if c.Set(ctx, progressKey(w.queue), n, time.Hour).Err() == nil {
				last = n
			}
		}
	}
}
