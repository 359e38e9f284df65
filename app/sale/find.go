package sale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// maxPlaces is half of the orders whose voucher an instance remembers: the latest.
	maxPlaces = 1 << 15
	// maxSought is how many orders one look at all vouchers looks for, and
	// maxSearches how many such looks may stand in line.
	maxSought   = 256
	maxSearches = 16
)

// finder finds the reservations of orders that have no decision yet. Their marks
// are with their vouchers, so an order of which nothing is known costs a look at
// every voucher; the finder remembers the vouchers of orders, and looks for all
// others that are asked for meanwhile at once, with a rest after it: whoever asks
// for orders that never were takes a fifth of the gate's time at the most. The zero
// value is ready.
type finder struct {
	mu          sync.Mutex
	young, aged map[ID]ID // the voucher of an order
	line        []*search // the first is looked for next
	looking     bool
}

// search is one look for all who wait for done.
type search struct {
	orders []ID
	done   chan struct{}
	found  map[ID]Reservation // once done is closed, and err
	err    error
}

// note remembers the voucher of an order.
func (f *finder) note(order, voucher ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.young == nil || len(f.young) >= maxPlaces {
		f.aged, f.young = f.young, make(map[ID]ID)
	}
	f.young[order] = voucher
}

func (f *finder) place(order ID) (ID, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v, ok := f.young[order]
	if !ok {
		v, ok = f.aged[order]
	}
	return v, ok
}

// seek puts an order in line, and has look called unless it is at work; nil: too
// many are in line.
func (f *finder) seek(order ID, look func(*search)) *search {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.line {
		if slices.Contains(s.orders, order) {
			return s
		}
	}
	n := len(f.line)
	if n == 0 || len(f.line[n-1].orders) >= maxSought {
		if n == maxSearches {
			return nil
		}
		f.line = append(f.line, &search{done: make(chan struct{})})
		n++
	}
	s := f.line[n-1]
	s.orders = append(s.orders, order)
	if !f.looking {
		f.looking = true
		go f.work(look)
	}
	return s
}

// work looks until nobody is in line.
func (f *finder) work(look func(*search)) {
	for {
		f.mu.Lock()
		if len(f.line) == 0 {
			f.looking = false
			f.mu.Unlock()
			return
		}
		s := f.line[0]
		f.line = f.line[1:]
		f.mu.Unlock()
		began := time.Now()
		look(s)
		took := time.Since(began)
		close(s.done)
		time.Sleep(rest(took))
	}
}

// find looks for the reservation of an order that has no decision yet.
func (s *Service) find(ctx context.Context, order ID) (Reservation, bool, error) {
	if v, ok := s.finder.place(order); ok {
		return s.Gate.Find(ctx, order, v)
	}
	free := context.WithoutCancel(ctx) // it is for others too
	search := s.finder.seek(order, func(all *search) { s.search(free, all) })
	if search == nil {
		return Reservation{}, false, busy("too many ask for orders at once, try again in a moment", errors.New("too many orders of other instances are looked for"))
	}
	select {
	case <-ctx.Done():
		return Reservation{}, false, ctx.Err()
	case <-search.done:
	}
	r, ok := search.found[order]
	return r, ok, search.err
}

// search looks at every voucher of late.
func (s *Service) search(ctx context.Context, all *search) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	all.found = make(map[ID]Reservation, len(all.orders))
	// The list of a second ago has nearly always the voucher, and costs no query;
	// another instance may have created it just now.
	now, sought, seen := time.Now(), all.orders, map[ID]bool{}
	for _, asOf := range []time.Time{now.Add(-time.Second), now} {
		vouchers, err := s.Loader.Recent(ctx, asOf)
		if err != nil {
			all.err = err
			return
		}
		vouchers = slices.DeleteFunc(vouchers, func(v ID) bool { return seen[v] })
		found, err := s.Gate.FindAll(ctx, sought, vouchers...)
		if err != nil {
			all.err = err
			return
		}
		for order, r := range found {
			all.found[order] = r
			s.finder.note(order, r.VoucherID)
		}
		sought = slices.DeleteFunc(slices.Clone(sought), func(order ID) bool { _, ok := found[order]; return ok })
		if len(sought) == 0 {
			return
		}
		for _, v := range vouchers {
			seen[v] = true
		}
	}
}

func (s *Service) lookup(ctx context.Context, id ID) (Order, error) {
	if o, ok, err := s.decided(ctx, id); err != nil || ok {
		return o, err
	}
	r, ok, err := s.find(ctx, id)
	if err != nil {
		return Order{}, fmt.Errorf("look up order %s: %w", id, err)
	}
	if ok {
		return Order{Reservation: r, Status: Queued}, nil
	}
	if o, ok, err := s.underWay(ctx, id); err != nil || ok {
		return o, err
	}
	// Its mark may have been cleared between the two looks, by its commit.
	if o, ok, err := s.decided(ctx, id); err != nil || ok {
		return o, err
	}
	return Order{}, NoOrder()
}

func (s *Service) decided(ctx context.Context, id ID) (Order, bool, error) {
	os, err := s.Store.Orders(ctx, id)
	if err != nil || len(os) == 0 {
		return Order{}, false, err
	}
	return os[0], true, nil
}
