package admission_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/app/admission"
	"queuelab/app/sale"
)

// bucketed is a gate whose vouchers all have so many buckets.
type bucketed struct {
	*admission.Redis
	n int
}

func (g bucketed) Load(ctx context.Context, v sale.Voucher) (bool, error) {
	v.Buckets = g.n
	return g.Redis.Load(ctx, v)
}

// inBuckets makes a gate with so many buckets over a client.
func inBuckets(c redis.UniversalClient, n int) bucketed {
	g := admission.NewRedis(c)
	g.AskBuckets(func(context.Context, sale.ID) (int, error) { return n, nil })
	return bucketed{g, n}
}

// another makes one more instance of it.
func another(t *testing.T, c *redis.Client, n int) bucketed {
	t.Helper()
	return inBuckets(client(t, c.Options().Addr, time.Second), n)
}

// conformInBuckets runs all cases but those of the bound of orders in flight.
func conformInBuckets(t *testing.T, g bucketed) {
	each(t, func() sale.Gate { return g }, gateCases, clickCases, startCases)
	for name, run := range auditCases {
		t.Run(name, func(t *testing.T) { run(t, g) })
	}
}

func TestAGateInBucketsIsAGateLikeAnyOther(t *testing.T) {
	for _, n := range []int{16} {
		t.Run(fmt.Sprint(n, " buckets"), func(t *testing.T) {
			_, c := server(t)
			conformInBuckets(t, another(t, c, n))
		})
	}
	t.Run("with the queue", func(t *testing.T) {
		url, c := server(t)
		g := another(t, c, 5)
		into(t, g.Redis, openQueue(t, queueURL("redis+streams", url)))
		conformInBuckets(t, g)
	})
}

// sold counts units by the orders that hold them, so that none is sold twice.
type sold struct {
	mu     sync.Mutex
	orders map[sale.ID]bool
}

func (s *sold) add(t *testing.T, order sale.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.orders[order] {
		t.Errorf("order %v got a unit twice", order)
	}
	s.orders[order] = true
}

func TestOneUnitIn16BucketsIsSoldToWhoeverComes(t *testing.T) {
	_, c := server(t)
	g, other := another(t, c, 16), another(t, c, 16)
	v := open(1, nil)
	load(t, g, v)
	for i := range 40 {
		r := reservation(v, sale.ID(i+1), fmt.Sprint("u", i))
		admit(t, g, r, sale.Admitted, r.OrderID)
		wantBook(t, g, v, sale.Book{Loaded: true, Units: 1, Buyers: 1, Marks: 1})
		admit(t, other, reservation(v, sale.ID(1000+i), fmt.Sprint("late", i)), sale.SoldOut, 0)
		if ok, err := g.Release(t.Context(), r); err != nil || !ok {
			t.Fatalf("release: got %v, %v, want true", ok, err)
		}
	}
}

// Whoever is told that all is gone is told the truth: in the end no unit is left
// while anybody was.
func TestManyInstancesSellEveryUnitOnceOutOfBuckets(t *testing.T) {
	_, c := server(t)
	const instances, stock, clicks = 5, 37, 1500
	gates := make([]bucketed, instances)
	for i := range gates {
		gates[i] = another(t, c, 16)
	}
	v := open(stock, nil)
	var loads atomic.Int64
	var wg sync.WaitGroup
	for _, g := range gates { // all of them load it, at once
		wg.Go(func() {
			for range 50 {
				ok, err := g.Load(context.Background(), v)
				if ok {
					loads.Add(1)
				}
				if err == nil {
					return
				}
			}
			t.Error("the voucher was not loaded")
		})
	}
	wg.Wait()
	if loads.Load() != 1 {
		t.Errorf("got the voucher loaded by %d instances, want one", loads.Load())
	}
	wantLeft(t, gates[0], v, stock)
	s := &sold{orders: map[sale.ID]bool{}}
	var back atomic.Int64
	var next atomic.Int64
	for i := range 40 {
		wg.Go(func() {
			g := gates[i%instances]
			for n := next.Add(1); n <= clicks; n = next.Add(1) {
				r := reservation(v, sale.ID(n), fmt.Sprint("u", n))
				got, order, err := g.Admit(context.Background(), r)
				switch {
				case err != nil:
					t.Error(err)
				case got == sale.Admitted && order == r.OrderID:
					if n%5 == 0 { // it comes back, from whatever bucket it is in
						if ok, err := g.Release(context.Background(), r); err != nil || !ok {
							t.Errorf("release: got %v, %v, want true", ok, err)
						}
						back.Add(1)
						continue
					}
					s.add(t, order)
				case got != sale.SoldOut:
					t.Errorf("got %v, %v", got, order)
				}
			}
		})
	}
	wg.Wait()
	for i := 0; len(s.orders) < stock && i < 2*stock; i++ { // what came back last
		r := reservation(v, sale.ID(clicks+i+1), fmt.Sprint("v", i))
		if a, err := gates[i%instances].Click(t.Context(), sale.Click{Reservation: r, Again: true}); err == nil && a.Verdict == sale.Admitted {
			s.add(t, r.OrderID)
		}
	}
	if len(s.orders) != stock {
		t.Errorf("got %d units sold, want %d", len(s.orders), stock)
	}
	wantBook(t, gates[0], v, sale.Book{Loaded: true, Units: stock, Buyers: stock, Marks: stock})
	t.Logf("%d units came back meanwhile", back.Load())
}

func TestBucketsTogetherAllowNoMoreInFlightThanTheVoucher(t *testing.T) {
	_, c := server(t)
	g := another(t, c, 4)
	v := open(1000, func(v *sale.Voucher) { v.MaxInFlight = 10 })
	load(t, g, v)
	in := map[string]sale.Reservation{}
	for i := range 400 {
		r := reservation(v, sale.ID(i+1), fmt.Sprint("u", i))
		if got, _, err := g.Admit(t.Context(), r); err != nil || got != sale.Admitted && got != sale.Crowded {
			t.Fatalf("got %v, %v", got, err)
		} else if got == sale.Admitted {
			in[r.UserID] = r
		}
	}
	if len(in) != 10 {
		t.Errorf("got %d in, want 10", len(in))
	}
	wantLeft(t, g, v, 990)
}

// bucketKeys lists the sale keys of a voucher's buckets.
func bucketKeys(v sale.Voucher, n int) []string {
	keys := []string{voucherKey(v, "sale")}
	for i := 1; i < n; i++ {
		keys = append(keys, fmt.Sprintf("seckill:{%s.%d}:sale", v.ID, i))
	}
	return keys
}

func TestAProcessThatNeverLoadedAVoucherKnowsItsBuckets(t *testing.T) {
	_, c := server(t)
	g := another(t, c, 16)
	v := open(50, nil)
	load(t, g, v)
	var bought []sale.Reservation
	for i := range 20 {
		r := reservation(v, sale.ID(i+1), fmt.Sprint("u", i))
		admit(t, g, r, sale.Admitted, r.OrderID)
		bought = append(bought, r)
	}
	t.Run("from Redis, without a database", func(t *testing.T) {
		fresh := admission.NewRedis(client(t, c.Options().Addr, time.Second))
		fresh.AskBuckets(func(context.Context, sale.ID) (int, error) { return 0, fmt.Errorf("away") })
		for _, r := range bought {
			admit(t, fresh, reservation(v, 1000+r.OrderID, r.UserID), sale.AlreadyBought, r.OrderID)
		}
		wantLeft(t, fresh, v, 30)
	})
	t.Run("from the database, after Redis lost everything", func(t *testing.T) {
		if err := c.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		fresh := another(t, c, 16)
		if err := fresh.Settle(t.Context(), bought[:10]...); err != nil {
			t.Fatal(err)
		}
		if err := another(t, c, 16).Restore(t.Context(), bought[5:]...); err != nil {
			t.Fatal(err)
		}
		admit(t, fresh, reservation(v, 99, "w"), sale.NotLoaded, 0)
		load(t, g, v)
		wantLeft(t, fresh, v, 30)
		for _, r := range bought {
			admit(t, fresh, reservation(v, 1000+r.OrderID, r.UserID), sale.AlreadyBought, r.OrderID)
		}
	})
	t.Run("or says that nobody can tell", func(t *testing.T) {
		if err := c.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		fresh := admission.NewRedis(client(t, c.Options().Addr, time.Second))
		fresh.AskBuckets(func(context.Context, sale.ID) (int, error) { return 0, fmt.Errorf("away") })
		if err := fresh.Settle(t.Context(), bought...); err == nil || !strings.Contains(err.Error(), "away") {
			t.Errorf("got %v, want the database's error", err)
		}
	})
}

// As when one node of a cluster comes back without its data.
func TestABucketThatLostItsKeysRefillsNothing(t *testing.T) {
	_, c := server(t)
	const n = 4
	for lost := range n {
		t.Run(fmt.Sprint("bucket ", lost), func(t *testing.T) {
			g := another(t, c, n)
			v := open(20, nil)
			load(t, g, v)
			var bought []sale.Reservation
			for i := range 11 { // with moves: not all in equal parts
				r := reservation(v, sale.ID(i+1), fmt.Sprint("x", i*i))
				admit(t, g, r, sale.Admitted, r.OrderID)
				bought = append(bought, r)
			}
			key := bucketKeys(v, n)[lost]
			tag := strings.TrimSuffix(key, "sale")
			for _, what := range []string{"sale", "buyers", "marks", "due", "keys"} {
				if err := c.Del(t.Context(), tag+what).Err(); err != nil {
					t.Fatal(err)
				}
			}
			fresh := another(t, c, n)
			if _, ok, err := fresh.Left(t.Context(), v.ID); ok || err != nil {
				t.Fatalf("got loaded %v, %v, want false", ok, err)
			}
			if err := fresh.Restore(t.Context(), bought...); err != nil {
				t.Fatal(err)
			}
			load(t, fresh, v)
			if again, err := g.Load(t.Context(), v); again || err != nil {
				t.Fatalf("got loaded again %v, %v", again, err)
			}
			b, err := fresh.Book(t.Context(), v.ID)
			if err != nil || b.Units != 20 || b.Left != 9 || b.Buyers != 11 {
				t.Fatalf("got %+v, %v, want 9 of 20 left", b, err)
			}
			for i := range 9 {
				r := reservation(v, sale.ID(100+i), fmt.Sprint("y", i))
				admit(t, fresh, r, sale.Admitted, r.OrderID)
			}
			admit(t, fresh, reservation(v, 999, "z"), sale.SoldOut, 0)
		})
	}
}
