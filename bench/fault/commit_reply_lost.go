package fault

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"time"

	"queuelab/bench/proxy"
)

// CommitReplyLost cuts off the answer to one commit that the database has done.
// To the consumer it failed, and it tries again: without something that makes
// effects unique the second one stands beside the first.
func CommitReplyLost() Fault {
	return Fault{
		Name:    "commit-reply-lost",
		Summary: "the database has committed an effect and the consumer never hears of it",
		Trials:  3,
		Means:   hasDatabase,
		Run: func(ctx context.Context, s Scene) error {
			u, err := url.Parse(s.DatabaseURL(""))
			if err != nil {
				return fmt.Errorf("URL of the database: %w", err)
			}
			p, err := proxy.New("127.0.0.1:0", u.Host, proxy.Plain)
			if err != nil {
				return err
			}
			defer p.Close()
			return commitReplyLost(ctx, s, p)
		},
	}
}

func commitReplyLost(ctx context.Context, s Scene, p *proxy.Proxy) error {
	if _, err := s.Start(ctx, Role{Consumer: &Consumer{Effects: s.DatabaseURL(p.Addr())}}); err != nil {
		return err
	}
	producer, err := load(ctx, s, Role{Producer: &Producer{Count: s.Target().Messages}})
	if err != nil {
		return err
	}
	if loaded, err := underLoad(ctx, s); !loaded {
		return err
	}
	s.Asked()
	// The tag of a finished INSERT leaves PostgreSQL with what follows the commit,
	// and not before it.
	lost := p.LoseReply(func(_, reply []byte) bool { return bytes.Contains(reply, []byte("INSERT 0 ")) })
	waiting := time.NewTimer(10 * time.Second)
	defer waiting.Stop()
	select {
	case <-lost:
	case <-waiting.C:
		s.Invalid("no commit came through the proxy within 10s of being asked for")
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	s.Confirmed()
	s.Facts().Events = 1
	s.Healed()
	return s.Finish(ctx, producer)
}
