package truth

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/bench/proxy"
)

// slowReply holds replies back for longer than the client waits. The pool is
// warm, as in every service: new connections would die in their handshakes, and
// hide it.
func slowReply(ctx context.Context, s stand) (Seen, error) {
	const timeout, stall = 100 * time.Millisecond, 700 * time.Millisecond
	r, err := s.redis(ctx, 0)
	if err != nil {
		return Seen{}, err
	}
	defer r.close(ctx, s.name)
	client := redis.NewClient(&redis.Options{Addr: r.proxy.Addr(), ReadTimeout: timeout})
	defer client.Close()
	var warm []*redis.Conn
	for range 4 {
		c := client.Conn()
		if err := c.Ping(ctx).Err(); err != nil {
			return Seen{}, err
		}
		warm = append(warm, c)
	}
	for _, c := range warm {
		if err := c.Close(); err != nil {
			return Seen{}, err
		}
	}
	r.proxy.Set(proxy.ToClient, proxy.Rule{Delay: stall})
	pushed := client.LPush(ctx, s.name, "order 1").Err()
	stored, err := r.direct.LLen(ctx, s.name).Result()
	return Seen{
		Holds:   pushed != nil && stored > 1,
		What:    fmt.Sprintf("with a ReadTimeout of %v and a stall of %v one call stored %d and returned %s", timeout, stall, stored, told(pushed)),
		Numbers: []Number{count("stored", stored)},
	}, err
}

func cancelledPop(ctx context.Context, s stand) (Seen, error) {
	r, err := s.redis(ctx, 0)
	if err != nil {
		return Seen{}, err
	}
	defer r.close(ctx, s.name)
	popping, cancel := context.WithCancel(ctx)
	defer cancel()
	type popped struct {
		value []string
		err   error
	}
	done := make(chan popped, 1)
	go func() {
		v, err := r.client.BRPop(popping, 5*time.Second, s.name).Result()
		done <- popped{v, err}
	}()
	if err := r.blocked(ctx); err != nil {
		return Seen{}, err
	}
	cancelled := time.Now()
	cancel()
	select {
	case p := <-done:
		return Seen{What: fmt.Sprintf("the cancel ended it, with %s", told(p.err)), Numbers: []Number{millis("after the cancel", time.Since(cancelled))}}, nil
	case <-time.After(300 * time.Millisecond): // it goes on
	}
	if err := r.direct.LPush(ctx, s.name, "order 1").Err(); err != nil {
		return Seen{}, err
	}
	p := <-done
	left, err := r.direct.LLen(ctx, s.name).Result()
	return Seen{
		Holds:   len(p.value) == 2 && p.err == nil && left == 0,
		What:    fmt.Sprintf("a message that came after the cancel went to the cancelled call, with %s; %d are left", told(p.err), left),
		Numbers: []Number{millis("after the cancel", time.Since(cancelled))},
	}, err
}

// blocked waits until the server has a blocked client.
func (r *redisStand) blocked(ctx context.Context) error {
	for {
		info, err := r.direct.InfoMap(ctx, "clients").Result()
		if err != nil {
			return err
		}
		if info["Clients"]["blocked_clients"] != "0" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for a blocked client: %w", ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}
