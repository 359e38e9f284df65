package admission_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"queuelab/app/sale"
)

var errDied = errors.New("the process died")

// mortal is a process that dies at one of its trips to Redis: before it, or after
// it so that what it did stays and the answer is lost.
type mortal struct {
	mu    sync.Mutex
	trips int  // that it has left
	done  bool // of the last one
}

// born makes it one that dies at its nth trip.
func (m *mortal) born(trips int, done bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trips, m.done = trips, done
}

func (m *mortal) step() (do, die bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trips--
	return m.trips > 0 || m.trips == 0 && m.done, m.trips <= 0
}

func (m *mortal) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (m *mortal) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) (err error) {
		do, die := m.step()
		if do {
			err = next(ctx, cmd)
		}
		if die {
			err = errDied
			cmd.SetErr(err)
		}
		return err
	}
}

func (m *mortal) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) (err error) {
		do, die := m.step()
		if do {
			err = next(ctx, cmds)
		}
		if die {
			err = errDied
			for _, c := range cmds {
				c.SetErr(err)
			}
		}
		return err
	}
}

// dying makes an instance that dies at its nth trip; with done what it did then
// was done.
func dying(c *redis.Client, buckets, trips int, done bool) bucketed {
	c.AddHook(&mortal{trips: trips, done: done})
	return inBuckets(c, buckets)
}

// Whatever is asked of a gate in buckets, and whenever those who move units die,
// it answers like a gate that has none of that. QUEUELAB_SOAK=1 tries more, and so
// does -rapid.checks=N.
func TestProcessesThatDieWhileTheyMoveUnitsLoseNoneAndDoubleNone(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	if old := checks.Value.String(); old == checks.DefValue && os.Getenv("QUEUELAB_SOAK") == "" {
		if err := checks.Value.Set("25"); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := checks.Value.Set(old); err != nil {
				t.Error(err)
			}
		}()
	}
	_, c := server(t)
	live := another(t, c, 4)
	process, mc := &mortal{}, client(t, c.Options().Addr, time.Second)
	mc.AddHook(process)
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{v: open(int64(rapid.IntRange(1, 6).Draw(rt, "stock")), func(v *sale.Voucher) { v.PerUser = 1 }),
			holds: map[string]sale.ID{}, marks: map[sale.ID]sale.Reservation{}, keys: map[string]sale.ID{}, counted: map[sale.ID]bool{}}
		m.stock = m.v.Stock
		if ok, err := live.Load(rt.Context(), m.v); err != nil || !ok {
			rt.Fatalf("load: got %v, %v", ok, err)
		}
		// dies does something with an instance that dies at some step of it, and
		// tells whether it did.
		dies := func(rt *rapid.T, do func(g bucketed) error) bool {
			process.born(rapid.IntRange(1, 9).Draw(rt, "dies at trip"), rapid.Bool().Draw(rt, "done"))
			err := do(inBuckets(mc, 4)) // a new process: it remembers nothing
			if err != nil && !errors.Is(err, errDied) {
				rt.Fatal(err)
			}
			return err != nil
		}
		some := func(rt *rapid.T) sale.Reservation {
			order := rapid.IntRange(1, 14).Draw(rt, "order")
			r := reservation(m.v, sale.ID(order), fmt.Sprint("u", order%7)) // an order is of one buyer for ever
			r.AtMillis = 1
			return r
		}
		rt.Repeat(map[string]func(*rapid.T){
			"click": func(rt *rapid.T) {
				c := sale.Click{Reservation: some(rt), Again: true}
				if _, waits := m.marks[c.OrderID]; waits && m.holds[unit(c.Reservation)] != c.OrderID {
					rt.Skip("the order lost its unit to one that was confirmed, and is about to fail")
				}
				var got sale.Answer
				died := dies(rt, func(g bucketed) (err error) { got, err = g.Click(rt.Context(), c); return err })
				if died {
					var err error
					if got, err = live.Click(rt.Context(), c); err != nil {
						rt.Fatal(err)
					}
				}
				if want := m.click(c); got != want {
					rt.Fatalf("click %+v (died: %v): got %+v, want %+v", c, died, got, want)
				}
			},
			"settle": func(rt *rapid.T) {
				r := some(rt)
				if dies(rt, func(g bucketed) error { return g.Settle(rt.Context(), r) }) {
					if err := live.Settle(rt.Context(), r); err != nil {
						rt.Fatal(err)
					}
				}
				m.settle(r)
			},
			"release": func(rt *rapid.T) {
				r := some(rt)
				if dies(rt, func(g bucketed) error { _, err := g.Release(rt.Context(), r); return err }) {
					if _, err := live.Release(rt.Context(), r); err != nil {
						rt.Fatal(err)
					}
				}
				m.release(r)
			},
			"level": func(rt *rapid.T) {
				if dies(rt, func(g bucketed) error { _, err := g.Level(rt.Context(), m.v.ID, m.v.Stock, m.v.Stock); return err }) {
					if _, err := live.Level(rt.Context(), m.v.ID, m.v.Stock, m.v.Stock); err != nil {
						rt.Fatal(err)
					}
				}
				m.stock = m.most()
			},
			"": func(rt *rapid.T) {
				b, err := live.Book(rt.Context(), m.v.ID)
				want := sale.Book{Loaded: true, Units: m.v.Stock, Left: m.stock, Buyers: int64(len(m.holds)), Marks: int64(len(m.marks))}
				if err != nil || b != want {
					rt.Fatalf("got %+v, %v, want %+v", b, err, want)
				}
			},
		})
	})
}

// Two buyers of two buckets lack units when orders come back: whoever gives the
// first one back dies while its unit is on its way to one of them, and must end
// that when it tries again, or the second one is sold while the other still lacks.
func TestAUnitOnItsWayToWhoLacksItArrivesWhenItsOrderIsGivenBackAgain(t *testing.T) {
	_, c := server(t)
	of := map[int][]string{} // users by their bucket
	for i := range 100 {
		u := fmt.Sprint("u", i)
		n := int(crc32.ChecksumIEEE([]byte(u)) % 4)
		of[n] = append(of[n], u)
	}
	process, mc := &mortal{}, client(t, c.Options().Addr, time.Second)
	mc.AddHook(process)
	live := another(t, c, 4)
	for _, withdraw := range []bool{false, true} {
		back := func(g bucketed, r sale.Reservation) error {
			if withdraw {
				_, err := g.Withdraw(t.Context(), r)
				return err
			}
			_, err := g.Release(t.Context(), r)
			return err
		}
		for trips := 1; trips < 9; trips++ {
			v := open(4, nil)
			load(t, live, v)
			var all []sale.Reservation
			for n := range 4 {
				r := reservation(v, sale.ID(n+1), of[n][0])
				admit(t, live, r, sale.Admitted, r.OrderID)
				all = append(all, r)
			}
			for n := range 2 { // known too late: there are more buyers than units
				if err := live.Settle(t.Context(), reservation(v, sale.ID(n+5), of[n][1])); err != nil {
					t.Fatal(err)
				}
			}
			process.born(trips, true)
			if err := back(inBuckets(mc, 4), all[2]); err != nil && !errors.Is(err, errDied) {
				t.Fatal(err)
			}
			for _, r := range []sale.Reservation{all[2], all[0]} {
				if err := back(live, r); err != nil {
					t.Fatal(err)
				}
			}
			want := sale.Book{Loaded: true, Units: 4, Buyers: 4, Marks: 2}
			if b, err := live.Book(t.Context(), v.ID); err != nil || b != want {
				t.Errorf("dead at trip %d, withdraw %v: got %+v, %v, want %+v", trips, withdraw, b, err, want)
			}
			admit(t, live, reservation(v, 9, of[3][1]), sale.SoldOut, 0)
		}
	}
}

func TestALoaderThatDiesLeavesAVoucherThatTheNextOneLoads(t *testing.T) {
	_, c := server(t)
	for trips := 1; trips < 12; trips++ {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("at trip %d, done %v", trips, done), func(t *testing.T) {
				v := open(7, nil)
				old := []sale.Reservation{reservation(v, 1, "a"), reservation(v, 2, "b")}
				live := another(t, c, 4)
				if err := live.Restore(t.Context(), old...); err != nil {
					t.Fatal(err)
				}
				first, err := dying(client(t, c.Options().Addr, time.Second), 4, trips, done).Load(t.Context(), v)
				if err == nil && !first {
					t.Fatal("got neither loaded nor an error")
				}
				if _, err := live.Load(t.Context(), v); err != nil {
					t.Fatal(err)
				}
				wantBook(t, live, v, sale.Book{Loaded: true, Units: 7, Left: 5, Buyers: 2})
				for i := range 5 {
					r := reservation(v, sale.ID(10+i), fmt.Sprint("u", i))
					admit(t, live, r, sale.Admitted, r.OrderID)
				}
				admit(t, live, reservation(v, 99, "late"), sale.SoldOut, 0)
			})
		}
	}
}

// A move that its process did not end is nobody's loss: its units are left, and
// whoever comes next gets them.
func TestUnitsOnTheirWayAreLeft(t *testing.T) {
	_, c := server(t)
	seen := 0
	for trips := 1; trips < 9; trips++ {
		v := open(1, nil)
		live := another(t, c, 16)
		load(t, live, v)
		r := reservation(v, 1, "u1") // not of the first bucket
		mc := client(t, c.Options().Addr, time.Second)
		if _, err := dying(mc, 16, trips, true).Click(t.Context(), sale.Click{Reservation: r}); err == nil {
			continue
		}
		b, err := live.Book(t.Context(), v.ID)
		if err != nil || b.Units != 1 || b.Left+b.Buyers != 1 {
			t.Fatalf("dead at trip %d: got %+v, %v, want one unit, left or sold", trips, b, err)
		}
		moving := 0
		for _, k := range bucketKeys(v, 16) {
			for f := range c.HGetAll(t.Context(), k).Val() {
				if len(f) > 4 && f[:4] == "out:" {
					moving++
				}
			}
		}
		if moving > 0 && b.Left == 1 {
			seen++
		}
		if b.Left == 1 {
			admit(t, live, reservation(v, 2, "another"), sale.Admitted, 2)
		}
		admit(t, live, reservation(v, 3, "third"), sale.SoldOut, 0)
		wantBook(t, live, v, sale.Book{Loaded: true, Units: 1, Buyers: 1, Marks: 1})
	}
	if seen == 0 {
		t.Error("no unit was seen on its way: the test tests nothing")
	}
}

// pausing lets something else happen before its nth trip to Redis.
type pausing struct {
	mortal
	meanwhile func()
}

func (p *pausing) wait() {
	if do, _ := p.step(); !do && p.meanwhile != nil {
		meanwhile := p.meanwhile
		p.meanwhile = nil
		meanwhile()
	}
}

func (p *pausing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { p.wait(); return next(ctx, cmd) }
}

func (p *pausing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { p.wait(); return next(ctx, cmds) }
}

// Wherever one of two stands still, and wherever the other dies meanwhile.
func TestTwoThatMoveUnitsBetweenTheSameBucketsLoseNoneAndDoubleNone(t *testing.T) {
	_, c := server(t)
	const stock = 4    // two and two: each needs a move of its own
	var users []string // of the second bucket
	for i := 0; len(users) < 5; i++ {
		if u := fmt.Sprint("u", i); crc32.ChecksumIEEE([]byte(u))%2 == 1 {
			users = append(users, u)
		}
	}
	slow, other := &pausing{}, &mortal{}
	a, b := client(t, c.Options().Addr, time.Second), client(t, c.Options().Addr, time.Second)
	a.AddHook(slow)
	b.AddHook(other)
	live := another(t, c, 2)
	for pause := 1; pause < 8; pause++ {
		for trips := 1; trips < 10; trips++ {
			for _, done := range []bool{false, true} {
				v := open(stock, nil)
				load(t, live, v)
				for i := range 2 {
					admit(t, live, reservation(v, sale.ID(i+1), users[i]), sale.Admitted, sale.ID(i+1))
				}
				mine := sale.Click{Reservation: reservation(v, 3, users[2]), Again: true}
				others := sale.Click{Reservation: reservation(v, 4, users[3]), Again: true}
				slow.born(pause, false)
				slow.meanwhile = func() {
					other.born(trips, done)
					if _, err := inBuckets(b, 2).Click(t.Context(), others); err != nil && !errors.Is(err, errDied) {
						t.Error(err)
					}
				}
				got, err := inBuckets(a, 2).Click(t.Context(), mine)
				if err != nil || got != admitted(3, 0) {
					t.Errorf("paused at %d, dead at %d: got %+v, %v", pause, trips, got, err)
				}
				if got, err := live.Click(t.Context(), others); err != nil || got != admitted(4, 0) {
					t.Errorf("paused at %d, dead at %d: got %+v, %v", pause, trips, got, err)
				}
				wantBook(t, live, v, sale.Book{Loaded: true, Units: stock, Buyers: 4, Marks: 4})
				admit(t, live, reservation(v, 5, users[4]), sale.SoldOut, 0)
			}
		}
	}
}
