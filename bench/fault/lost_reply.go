package fault

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"queuelab/bench/proxy"
	"queuelab/queue"
)

// lostReplies is how many replies a trial loses, spread over half of its load.
const lostReplies = 4

// LostReplyPublish cuts off answers to publishes that the broker has carried
// out. To the producer they are unknown, and it publishes them again with the
// same ids: nothing is lost, and what was stored is stored twice.
func LostReplyPublish() Fault {
	return Fault{
		Name:    "lost-reply-publish",
		Summary: "the broker takes a publish, its reply is lost with the connection, and the producer publishes again",
		Trials:  3,
		Means: func(t Target) string {
			if t.Broker != "redis" && t.Caps.Confirm == queue.ConfirmNone {
				return "the broker does not answer a publish: there is no reply to lose"
			}
			return hasNetwork(t)
		},
		Run: func(ctx context.Context, s Scene) error {
			return overNetwork(ctx, s, func(p *proxy.Proxy) error {
				if _, err := s.Start(ctx, Role{Consumer: &Consumer{}}); err != nil {
					return err
				}
				producer, err := load(ctx, s, behind(s, p, Role{Producer: &Producer{Count: s.Target().Messages, Retries: 5}}))
				if err != nil {
					return err
				}
				// Spread over the time that the load takes, since a consumer may
				// lag behind it.
				t := s.Target()
				gap := time.Duration(float64(t.Messages) / (t.Rate / 2) / (2 * lostReplies) * float64(time.Second))
				lost, err := loseReplies(ctx, s, p, proxy.Published(t.Broker), func(int64) error { return pass(ctx, gap) })
				if !lost {
					return err
				}
				return s.Finish(ctx, producer)
			})
		},
	}
}

// LostReplyReceive cuts off answers that bring a message to a consumer. Where
// asking takes the message off the queue it is gone, and the consumer sees a
// broken connection at most; elsewhere it comes again.
func LostReplyReceive() Fault {
	return Fault{
		Name:    "lost-reply-receive",
		Summary: "the broker hands a message over, and the reply that carries it is lost with the connection",
		Trials:  3,
		Means: func(t Target) string {
			if t.Broker == "rabbitmq" || t.Broker == "nats" || t.Broker != "" && !t.Caps.Stored {
				return "the broker pushes messages: there is no reply to a receive; see reset"
			}
			return hasNetwork(t)
		},
		Run: func(ctx context.Context, s Scene) error {
			return overNetwork(ctx, s, func(p *proxy.Proxy) error {
				if _, err := s.Start(ctx, behind(s, p, Role{Consumer: &Consumer{}})); err != nil {
					return err
				}
				// Without an end of its own: after a lost reply some clients take their
				// time, and one reply may carry all that came meanwhile.
				producer, err := load(ctx, s, Role{Producer: &Producer{Count: 1 << 20}})
				if err != nil {
					return err
				}
				lost, err := loseReplies(ctx, s, p, proxy.Received(s.Target().Broker), func(i int64) error {
					return s.Delivered(ctx, int64(s.Target().Messages)*(i+1)/(2*lostReplies))
				})
				if err := errors.Join(err, producer.Stop(ctx)); !lost || err != nil {
					return err
				}
				return s.Finish(ctx)
			})
		},
	}
}

// loseReplies loses some under load, one after the other, and counts the
// messages that they were about. next waits for the time of the next one. It
// reports false where that proves nothing.
func loseReplies(ctx context.Context, s Scene, p *proxy.Proxy, which proxy.Match, next func(i int64) error) (bool, error) {
	var about atomic.Int64
	counted := func(request, reply []byte) bool {
		if !which(request, reply) {
			return false
		}
		about.Store(int64(proxy.Messages(s.Target().Broker, request)))
		return true
	}
	s.Asked()
	for i := range int64(lostReplies) {
		if err := next(i); err != nil {
			s.Invalid("%v", err)
			return false, ctx.Err()
		}
		late := time.NewTimer(10 * time.Second)
		select {
		case <-p.LoseReply(counted):
			late.Stop()
			if i == 0 {
				s.Confirmed()
			}
			s.Facts().Events += about.Load()
			continue
		case <-ctx.Done():
			late.Stop()
			return false, ctx.Err()
		case <-late.C:
		}
		if i == 0 {
			s.Invalid("no reply came through the proxy to be lost within 10s")
			return false, nil
		}
		s.Note("%d of %d replies were lost: the load was over", i, lostReplies)
		break
	}
	s.Healed()
	return true, nil
}
