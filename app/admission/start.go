package admission

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"queuelab/app/sale"
)

//go:embed start.lua
var startSource string

var (
	_ sale.Opener = (*Redis)(nil)
	_ sale.Opener = (*Memory)(nil)
)

// Open implements sale.Opener, in one round trip.
func (g *Redis) Open(ctx context.Context, starts ...sale.Signal) error {
	script := redis.NewScript(startSource)
	run := func() error {
		_, err := g.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, s := range starts {
				script.EvalSha(ctx, p, []string{g.key(s.Voucher, "sale")}, s.Opened.UnixMilli())
			}
			return nil
		})
		return err
	}
	err := run()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		if lerr := script.Load(ctx, g.client).Err(); lerr != nil {
			err = errors.Join(err, lerr)
		} else {
			err = run()
		}
	}
	if err != nil {
		return fmt.Errorf("start script: %w", err)
	}
	return nil
}

// Open implements sale.Opener.
func (m *Memory) Open(_ context.Context, starts ...sale.Signal) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range starts {
		v, at := m.voucher(s.Voucher), s.Opened
		if now := m.now(); now.Before(at) {
			at = now
		}
		if v.loaded && at.Before(v.begin) {
			v.begin = at
		}
	}
	return nil
}
