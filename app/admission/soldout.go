package admission

import (
	"hash/maphash"
	"sync"
	"time"

	"queuelab/app/sale"
)

const (
	// soldOutFor is how long "sold out" is believed without asking again.
	soldOutFor = 100 * time.Millisecond
	// buyersFor is how long the buyers are at least known to whom this process
	// gave a unit.
	buyersFor = 30 * time.Second
)

// soldOut remembers for a moment which vouchers are sold out: most clicks of a
// sale come when it is over. Who has just bought one here is still asked for, so
// that a double click is not told that all is gone. The zero value is ready.
type soldOut struct {
	mu          sync.Mutex
	until       map[sale.ID]time.Time
	since       time.Time
	young, aged map[uint64]struct{} // buyers by hash: two that share one are asked for, as all are who are known
	seed        maphash.Seed
}

type buyer struct {
	voucher sale.ID
	user    string
}

// says reports whether a click needs no asking.
func (s *soldOut) says(c sale.Click, now time.Time) bool {
	if c.Again || c.Key != "" {
		return false // it may have an order
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	until, ok := s.until[c.VoucherID]
	if !ok {
		return false
	}
	if !now.Before(until) {
		delete(s.until, c.VoucherID)
		return false
	}
	if s.young == nil {
		return true
	}
	b := maphash.Comparable(s.seed, buyer{c.VoucherID, c.UserID})
	_, young := s.young[b]
	_, aged := s.aged[b]
	return !young && !aged
}

// note takes down what the gate answered.
func (s *soldOut) note(c sale.Click, v sale.Verdict, asked time.Time) {
	if v != sale.SoldOut && v != sale.Admitted {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v == sale.SoldOut {
		if s.until == nil {
			s.until = map[sale.ID]time.Time{}
		}
		s.until[c.VoucherID] = asked.Add(soldOutFor)
		return
	}
	if s.young == nil || asked.Sub(s.since) > buyersFor {
		if s.young == nil {
			s.seed = maphash.MakeSeed()
		}
		s.aged, s.young, s.since = s.young, map[uint64]struct{}{}, asked
	}
	s.young[maphash.Comparable(s.seed, buyer{c.VoucherID, c.UserID})] = struct{}{}
}

// forget is for whoever gave a unit back.
func (s *soldOut) forget(voucher sale.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.until, voucher)
}
