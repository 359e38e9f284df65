package admission

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"queuelab/app/sale"
)

const (
	// lineFor is how long a picture of the line is good.
	lineFor = time.Second
	// linePage is about how many orders one step of taking it brings.
	linePage = 1000
	// linePictures bounds the pictures that are kept.
	linePictures = 1000
)

var (
	_ sale.Positioner = (*Redis)(nil)
	_ sale.Positioner = (*Memory)(nil)
)

// places keeps pictures of the lines: the orders that wait, by id, which is by
// the time of their clicks. All who ask within a second share one, and a long
// line, which takes longer to look at, is looked at less often. The zero value
// is ready.
type places struct {
	mu       sync.Mutex
	pictures map[sale.ID]*picture
}

type picture struct {
	mu     sync.Mutex // held while it is taken
	orders []sale.ID
	until  time.Time
}

func (p *places) of(voucher sale.ID) *picture {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.pictures[voucher]
	if c == nil {
		if p.pictures == nil || len(p.pictures) >= linePictures {
			p.pictures = map[sale.ID]*picture{}
		}
		c = &picture{}
		p.pictures[voucher] = c
	}
	return c
}

func (p *places) position(r sale.Reservation, take func() ([]sale.ID, error)) (int64, error) {
	c := p.of(r.VoucherID)
	c.mu.Lock()
	defer c.mu.Unlock()
	if began := time.Now(); !began.Before(c.until) {
		orders, err := take()
		if err != nil {
			return 0, err
		}
		slices.Sort(orders)
		c.orders = slices.Compact(orders)
		c.until = time.Now().Add(max(lineFor, 20*time.Since(began)))
	}
	// The order itself may be younger than the picture.
	n, _ := slices.BinarySearch(c.orders, r.OrderID)
	return int64(n), nil
}

// Position implements sale.Positioner.
func (g *Redis) Position(ctx context.Context, r sale.Reservation) (int64, error) {
	return g.places.position(r, func() ([]sale.ID, error) {
		bs, err := g.buckets(ctx, r.VoucherID)
		if err != nil {
			return nil, err
		}
		var orders []sale.ID
		for _, b := range bs {
			for cursor := uint64(0); ; {
				// The index has the same orders as the marks, without the bodies.
				entries, next, err := g.client.ZScan(ctx, g.key(b, "due"), cursor, "", linePage).Result()
				if err != nil {
					return nil, fmt.Errorf("read the line of voucher %s: %w", r.VoucherID, err)
				}
				for i := 0; i < len(entries); i += 2 { // each with its score
					if id, err := sale.ParseID(entries[i]); err == nil { // else it is nobody's
						orders = append(orders, id)
					}
				}
				if cursor = next; cursor == 0 {
					break
				}
			}
		}
		return orders, nil
	})
}

// Position implements sale.Positioner.
func (m *Memory) Position(_ context.Context, r sale.Reservation) (int64, error) {
	return m.places.position(r, func() ([]sale.ID, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		marks := m.voucher(r.VoucherID).marks
		orders := make([]sale.ID, 0, len(marks))
		for id := range marks {
			orders = append(orders, id)
		}
		return orders, nil
	})
}
