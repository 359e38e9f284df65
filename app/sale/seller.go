package sale

import "context"

// Seller decides what becomes of a click: there is one for each way of selling.
// A Service without one sells at its gate and queues what that admitted.
type Seller interface {
	// Sell takes a click with an order id of its own. The order that it returns is
	// the click's, or the one that the same Key got before; either way it will be
	// decided, or is. Errors are those of Service.BuyOnce.
	Sell(ctx context.Context, c Click) (ID, error)
}

// TwoStores is a Store whose orders and stock are in two databases.
type TwoStores interface {
	// UnderWay finds an order that has no decision yet because its unit has not
	// been asked for, or the answer has not come back.
	UnderWay(ctx context.Context, id ID) (Reservation, bool, error)
}

// underWay is for an order that the gate knows nothing of: one that lost its keys
// meanwhile, say.
func (s *Service) underWay(ctx context.Context, id ID) (Order, bool, error) {
	two, ok := s.Store.(TwoStores)
	if !ok {
		return Order{}, false, nil
	}
	r, ok, err := two.UnderWay(ctx, id)
	return Order{Reservation: r, Status: Queued}, ok, err
}
