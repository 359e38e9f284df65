package main

import (
	"context"
	"errors"
	"fmt"

	"queuelab/app/admission"
	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/app/worker"
)

// The ways of selling.
const (
	modeQueue      = "queue"
	modeSync       = "sync"
	modeQueueFirst = "queue-first"
)

// modeFlags choose the architecture. All instances of a sale must agree on it,
// and a voucher keeps to the one that it was made with.
type modeFlags struct {
	Mode     string `enum:"queue,sync,queue-first" default:"queue" placeholder:"HOW" help:"How a click becomes an order: queue (the gate takes a unit, and a consumer writes the order), sync (no queue: one transaction in the request, under a lock of its buyer in --redis, else in this process) or queue-first (buyers queue up, and the consumer decides about the stock). All instances must agree."`
	InFlight int64  `name:"max-in-flight" default:"10000" placeholder:"N" help:"With --mode=queue-first, how many orders of a voucher that is created without maxInFlight may wait for their decision; beyond that buyers are told to come again (503 with Retry-After). 0: any number, and then a rush fills the queue and Redis. In the other modes no more wait than there are units."`
	StockDB  string `name:"stock-db" placeholder:"URL" help:"Another database for the stock: an order is then decided in three transactions, with an outbox and an inbox. Default: the stock is beside the orders. All instances must agree."`
}

func (f *flags) checkMode() error {
	switch {
	case f.Mode == modeSync && f.Queue != "":
		return errors.New("--mode=sync has no queue: leave --queue out")
	case f.Mode == modeSync && f.StockDB != "":
		return errors.New("--mode=sync is one transaction, and --stock-db has it in two databases: leave one of them out")
	case f.InFlight < 0 || f.InFlight > sale.MaxStock:
		return fmt.Errorf("--max-in-flight=%d: want 0 to %d", f.InFlight, int64(sale.MaxStock))
	case f.StockDB != "" && f.StockDB == f.DB:
		return errors.New("--stock-db is the database of the orders: give another one, or leave it out")
	}
	return nil
}

// sellers is a gate that can do without stock.
type sellers interface {
	Stockless(tell func(ctx context.Context, voucher sale.ID) (int64, error))
}

// stockless has the gate leave the stock to the database where the mode says so.
func (s *service) stockless() error {
	if s.f.Mode == modeQueue {
		return nil
	}
	gate, ok := s.gate.(sellers)
	if !ok {
		return errors.New("--mode=" + s.f.Mode + ": this gate cannot do without stock")
	}
	gate.Stockless(func(ctx context.Context, id sale.ID) (int64, error) {
		v, err := s.store.Voucher(ctx, id)
		return v.Left, err
	})
	return nil
}

// seller is how the service sells; nil: by gate and queue.
func (s *service) seller(front *sale.Service) sale.Seller {
	switch s.f.Mode {
	case modeQueueFirst:
		front.MaxInFlight = s.f.InFlight
		return &sale.QueueFirst{Service: front}
	case modeSync:
		sync := &sale.Sync{Service: front, Store: s.store, Lock: &admission.MemoryLock{}}
		if gate, ok := s.gate.(*admission.Redis); ok {
			sync.Lock = gate.Locks()
		}
		return sync
	}
	return nil
}

// relay goes on with what is left in the outbox; nil: there is none.
func (s *service) relay() *worker.Relay {
	if s.f.StockDB == "" {
		return nil
	}
	return &worker.Relay{Store: s.store, Gate: s.gate, Results: s.results, Log: s.log}
}

// openStore opens the database, or both. Without migrate it leaves their schemas
// as they are, and refuses those that are older than this build.
func openStore(ctx context.Context, f *flags, migrate bool) (s *store.Store, err error) {
	if !migrate {
		if err := checkSchema(ctx, f); err != nil {
			return nil, err
		}
	}
	switch two := f.StockDB != ""; {
	case two && migrate:
		s, err = store.OpenTwo(ctx, f.DB, f.StockDB)
	case two:
		s, err = store.OpenTwoAsIs(ctx, f.DB, f.StockDB)
	case migrate:
		s, err = store.Open(ctx, f.DB)
	default:
		s, err = store.OpenAsIs(ctx, f.DB)
	}
	if err != nil {
		return nil, away(err, "the database", "--db")
	}
	return s, nil
}
