package admission

import (
	"context"

	"queuelab/app/sale"
)

// left tells what is left of a voucher; nil: the gate itself knows.
type left func(ctx context.Context, voucher sale.ID) (int64, error)

// Stockless has the gate hold no stock: it keeps buyers, marks and the sale
// window, and whoever takes the orders from the queue decides about the stock.
// tell is what is left then. It is to be called before the first Load; a
// voucher that is loaded already stays as it was.
func (g *Redis) Stockless(tell func(ctx context.Context, voucher sale.ID) (int64, error)) {
	g.left = tell
}

// Stockless is as that of Redis.
func (m *Memory) Stockless(tell func(ctx context.Context, voucher sale.ID) (int64, error)) {
	m.left = tell
}

// offer is what the gate is loaded with.
func (l left) offer(v sale.Voucher) sale.Voucher {
	if l != nil {
		v.Stock, v.Left = sale.NoStock, sale.NoStock
	}
	return v
}

// instead is what is left where the gate's own number says nothing.
func (l left) instead(ctx context.Context, voucher sale.ID, n int64, loaded bool) (int64, bool, error) {
	if l == nil || !loaded {
		return n, loaded, nil
	}
	n, err := l(ctx, voucher)
	return n, loaded, err
}
