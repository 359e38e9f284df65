package admission

import (
	"context"
	"fmt"

	"queuelab/app/sale"
)

var (
	_ sale.Opener = (*Redis)(nil)
	_ sale.Opener = (*Memory)(nil)
)

// Open implements sale.Opener, in one round trip.
func (g *Redis) Open(ctx context.Context, starts ...sale.Signal) error {
	var calls []call
	for _, s := range starts {
		bs, err := g.buckets(ctx, s.Voucher)
		if err != nil {
			return err
		}
		for _, b := range bs {
			calls = append(calls, run(ctx, g.scripts.start, g.keys(b)[:1], s.Opened.UnixMilli()))
		}
	}
	if len(calls) == 0 {
		return nil
	}
	if err := g.exec(ctx, calls...); err != nil {
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
