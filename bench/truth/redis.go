package truth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/bench/proxy"
)

const goRedis = "github.com/redis/go-redis/v9"

func redisExperiments() []Experiment {
	on := func(name, claim, remedy string, try func(context.Context, stand) (Seen, error)) Experiment {
		return Experiment{Name: name, Library: goRedis, Broker: "redis", Claim: claim, Remedy: remedy, try: try}
	}
	const noRetries = "Set MaxRetries to -1 and retry by yourself, with the same message id."
	return []Experiment{
		on("redis-lpush-twice", "An LPUSH whose reply is lost is sent again behind the caller's back: two messages, and no error.", noRetries,
			lostWrite(0, "lpush", pushOne, 2)),
		on("redis-lpush-once", "With MaxRetries -1 an LPUSH whose reply is lost stores one message and returns an error: the outcome is unknown.",
			"Publish again with the same id, and let the consumer's effect be unique by id.",
			lostWrite(-1, "lpush", pushOne, 1)),
		on("redis-xadd-twice", "An XADD whose reply is lost is sent again: two entries with different ids, and no error.", noRetries,
			lostWrite(0, "xadd", addOne, 2)),
		on("redis-stock-twice", "A script that takes one from the stock takes two when its reply is lost: one click, two units, no error.",
			"Give the script the order's id, so that the second run finds the first; or set MaxRetries to -1.", stockTwice),
		on("redis-publish-twice", "A PUBLISH whose reply is lost is sent again: each subscriber hears it twice.", noRetries, publishTwice),
		on("redis-publish-nobody", "A PUBLISH that nobody hears is no error: only the number of receivers, 0, tells.",
			"Look at the number that Publish returns, or use a queue that stores.", publishNobody),
		on("redis-brpop-empty", "A BRPOP whose reply is lost is sent again: the message is gone, and the caller is told that the list is empty.",
			"Move the message with BLMOVE, or read a stream with a group, so that it is stored until it is done.", popEmpty),
		on("redis-brpop-next", "A BRPOP whose reply is lost returns the next message and no error: nobody learns that one is missing.",
			"As above; and set MaxRetries to -1, so that at least the error shows.", popNext),
		on("redis-brpop-error", "With MaxRetries -1 a BRPOP whose reply is lost returns an error, and the message is gone all the same.",
			"As above: no setting of the client brings the message back.", popError),
		on("redis-slow-reply", "With a warm pool and a ReadTimeout shorter than a stall one LPUSH is sent several times, and then returns an error.",
			noRetries, slowReply),
		on("redis-cancel", "A cancelled context does not end a BRPOP: it goes on and takes a message for a caller who has gone.",
			"Block for a short time, in a loop; keep what comes after the cancel, and push it back.", cancelledPop),
	}
}

// redisAt is a client with the library's defaults but for its retries; 0 is the
// default there, which is three.
func redisAt(addr string, retries int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, MaxRetries: retries})
}

// redisStand is a client behind a proxy, connected, and one that is not.
type redisStand struct {
	proxy          *proxy.Proxy
	client, direct *redis.Client
}

func (s stand) redis(ctx context.Context, retries int) (*redisStand, error) {
	u, err := url.Parse(s.broker.URL())
	if err != nil {
		return nil, err
	}
	p, err := s.proxy()
	if err != nil {
		return nil, err
	}
	r := &redisStand{proxy: p, client: redisAt(p.Addr(), retries), direct: redisAt(u.Host, -1)}
	if err := r.client.Ping(ctx).Err(); err != nil {
		r.close(ctx, s.name)
		return nil, fmt.Errorf("connect: %w", err)
	}
	return r, nil
}

// close takes down the stand, and its key with it.
func (r *redisStand) close(ctx context.Context, key string) {
	_ = r.direct.Del(context.WithoutCancel(ctx), key).Err() // in a broker that is about to go, or full of others
	r.client.Close()
	r.direct.Close()
	r.proxy.Close()
}

func pushOne(ctx context.Context, c *redis.Client, key string) error {
	return c.LPush(ctx, key, "order 1").Err()
}

func addOne(ctx context.Context, c *redis.Client, key string) error {
	return c.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: []string{"order", "1"}}).Err()
}

// lostWrite writes once, loses the reply, and counts what is stored.
func lostWrite(retries int, command string, write func(context.Context, *redis.Client, string) error, copies int64) func(context.Context, stand) (Seen, error) {
	return func(ctx context.Context, s stand) (Seen, error) {
		r, err := s.redis(ctx, retries)
		if err != nil {
			return Seen{}, err
		}
		defer r.close(ctx, s.name)
		lost := r.proxy.LoseReply(proxy.RedisCommand(command))
		wrote := write(ctx, r.client, s.name)
		if err := happened(ctx, lost); err != nil {
			return Seen{}, err
		}
		kind, err := r.direct.Type(ctx, s.name).Result()
		if err != nil {
			return Seen{}, err
		}
		n := r.direct.LLen
		if kind == "stream" {
			n = r.direct.XLen
		}
		stored, err := n(ctx, s.name).Result()
		if err != nil {
			return Seen{}, err
		}
		return Seen{
			Holds:   stored == copies && (wrote == nil) == (copies > 1),
			What:    fmt.Sprintf("one call, %d stored, %s", stored, told(wrote)),
			Numbers: []Number{count("stored", stored)},
		}, nil
	}
}

func stockTwice(ctx context.Context, s stand) (Seen, error) {
	r, err := s.redis(ctx, 0)
	if err != nil {
		return Seen{}, err
	}
	defer r.close(ctx, s.name)
	if err := r.direct.Set(ctx, s.name, 10, 0).Err(); err != nil {
		return Seen{}, err
	}
	lost := r.proxy.LoseReply(proxy.RedisCommand("eval", "evalsha"))
	took := r.client.Eval(ctx, "return redis.call('DECR', KEYS[1])", []string{s.name}).Err()
	if err := happened(ctx, lost); err != nil {
		return Seen{}, err
	}
	left, err := r.direct.Get(ctx, s.name).Int64()
	if err != nil {
		return Seen{}, err
	}
	return Seen{
		Holds:   left == 8 && took == nil,
		What:    fmt.Sprintf("of 10 units one was asked for, %d are left, %s", left, told(took)),
		Numbers: []Number{count("taken", 10-left)},
	}, nil
}

func publishTwice(ctx context.Context, s stand) (Seen, error) {
	r, err := s.redis(ctx, 0)
	if err != nil {
		return Seen{}, err
	}
	defer r.close(ctx, s.name)
	sub := r.direct.Subscribe(ctx, s.name)
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil {
		return Seen{}, err
	}
	lost := r.proxy.LoseReply(proxy.RedisCommand("publish"))
	published := r.client.Publish(ctx, s.name, "order 1").Err()
	if err := happened(ctx, lost); err != nil {
		return Seen{}, err
	}
	// Its own last message ends the count.
	if err := r.direct.Publish(ctx, s.name, "end").Err(); err != nil {
		return Seen{}, err
	}
	heard := int64(0)
	for {
		m, err := sub.ReceiveMessage(ctx)
		if err != nil {
			return Seen{}, err
		}
		if m.Payload == "end" {
			break
		}
		heard++
	}
	return Seen{
		Holds:   heard == 2 && published == nil,
		What:    fmt.Sprintf("one call, heard %d times by one subscriber, %s", heard, told(published)),
		Numbers: []Number{count("heard", heard)},
	}, nil
}

func publishNobody(ctx context.Context, s stand) (Seen, error) {
	r, err := s.redis(ctx, 0)
	if err != nil {
		return Seen{}, err
	}
	defer r.close(ctx, s.name)
	n, err := r.client.Publish(ctx, s.name, "order 1").Result()
	return Seen{
		Holds:   n == 0 && err == nil,
		What:    fmt.Sprintf("%d receivers, %s", n, told(err)),
		Numbers: []Number{count("receivers", n)},
	}, nil
}

// pop fills a list with messages, loses the reply to one BRPOP, and returns what
// the caller got and how many are left.
func pop(ctx context.Context, s stand, retries int, messages ...any) (got string, left int64, popped error, err error) {
	r, err := s.redis(ctx, retries)
	if err != nil {
		return "", 0, nil, err
	}
	defer r.close(ctx, s.name)
	if err := r.direct.LPush(ctx, s.name, messages...).Err(); err != nil {
		return "", 0, nil, err
	}
	lost := r.proxy.LoseReply(proxy.RedisTook("brpop"))
	v, popped := r.client.BRPop(ctx, time.Second, s.name).Result()
	if err := happened(ctx, lost); err != nil {
		return "", 0, nil, err
	}
	if len(v) == 2 {
		got = v[1]
	}
	left, err = r.direct.LLen(ctx, s.name).Result()
	return got, left, popped, err
}

func popEmpty(ctx context.Context, s stand) (Seen, error) {
	_, left, popped, err := pop(ctx, s, 0, "A")
	return Seen{
		Holds:   left == 0 && errors.Is(popped, redis.Nil),
		What:    fmt.Sprintf("the list held A; the caller got redis.Nil=%v, and %d are left", errors.Is(popped, redis.Nil), left),
		Numbers: []Number{count("lost", 1-left)},
	}, err
}

func popNext(ctx context.Context, s stand) (Seen, error) {
	got, left, popped, err := pop(ctx, s, 0, "A", "B", "C")
	return Seen{
		Holds:   got == "B" && left == 1 && popped == nil,
		What:    fmt.Sprintf("the list held A, B, C; the caller got %q and %s, and %d are left", got, told(popped), left),
		Numbers: []Number{count("lost", 2-left)},
	}, err
}

func popError(ctx context.Context, s stand) (Seen, error) {
	got, left, popped, err := pop(ctx, s, -1, "A", "B", "C")
	return Seen{
		Holds:   got == "" && left == 2 && popped != nil && !errors.Is(popped, redis.Nil),
		What:    fmt.Sprintf("the list held A, B, C; the caller got %s, and %d are left", told(popped), left),
		Numbers: []Number{count("lost", 3-left)},
	}, err
}
