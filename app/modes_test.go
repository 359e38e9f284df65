package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/bench/broker/brokertest"
)

// sellsExactly holds a sale in which each buyer clicks at two doors at once, and
// wants what every way of selling owes: each unit sold once, one to a buyer, and
// nobody waiting.
func sellsExactly(t *testing.T, p *process, db string, stock, buyers int) {
	t.Helper()
	a := newDoor(t, p.base, stock)
	b := &entrance{t: t, voucher: a.voucher, told: map[string]string{}, patience: a.patience}
	b.base.Store(p.base)
	var wg sync.WaitGroup
	wg.Go(func() { a.rush(buyers) })
	wg.Go(func() { b.rush(buyers) })
	wg.Wait()
	answers := map[string]int{}
	for _, d := range []*entrance{a, b} {
		for status, n := range d.results() {
			answers[status] += n
		}
	}
	all, told := 0, len(a.told)+len(b.told)
	for _, n := range answers {
		all += n
	}
	if all != told || answers["confirmed"]+answers["failed"] != told {
		t.Errorf("got answers %v for %d buyers who were told of an order, want each confirmed or failed", answers, told)
	}
	a.told = withConfirmed(t, p, a, b)
	if len(a.told) != stock {
		t.Errorf("got %d buyers with a confirmed order, want %d", len(a.told), stock)
	}
	a.audit(db, stock)
	p.stop(t)
}

// withConfirmed are the buyers whose order was confirmed, at whichever door they
// were told of it.
func withConfirmed(t *testing.T, p *process, doors ...*entrance) map[string]string {
	t.Helper()
	confirmed := map[string]string{}
	for _, d := range doors {
		for user, order := range maps.All(d.told) {
			status, b, err := call(p.base, "GET", "/api/orders/"+order, "", user)
			if err != nil || status != 200 {
				t.Fatalf("order %s of %s: got %d %s, %v", order, user, status, b, err)
			}
			if !strings.Contains(string(b), `"confirmed"`) {
				continue
			}
			if had, ok := confirmed[user]; ok && had != order {
				t.Errorf("buyer %s has two orders, %s and %s", user, had, order)
			}
			confirmed[user] = order
		}
	}
	return confirmed
}

func TestEveryWayOfSellingSellsExactlyTheStockWithNothingInstalled(t *testing.T) {
	for _, args := range [][]string{{"--mode", "queue"}, {"--mode", "sync"}, {"--mode", "queue-first"}, {"--stock-db", "sqlite:stock.db"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			dir := t.TempDir()
			sellsExactly(t, start(t, dir, args...), "sqlite:"+filepath.Join(dir, "seckill.db"), 50, 200)
		})
	}
}

func TestEveryWayOfSellingSellsExactlyTheStockOnServers(t *testing.T) {
	for _, mode := range []string{"sync", "queue-first", "two databases"} {
		t.Run(mode, func(t *testing.T) {
			db, args := streamsNamed(t, strings.ReplaceAll(mode, " ", "-"))
			switch mode {
			case "two databases":
				args = append(args, "--stock-db", postgres(t))
			case "sync":
				args = []string{"--db", db, "--redis", brokertest.Start(t, "redis", "aof-everysec").URL(), "--mode", mode}
			default:
				args = append(args, "--mode", mode)
			}
			sellsExactly(t, start(t, t.TempDir(), args...), db, 100, 400)
		})
	}
}

func streamsNamed(t *testing.T, name string) (db string, args []string) {
	t.Helper()
	db = postgres(t)
	r := brokertest.Start(t, "redis", "aof-everysec")
	return db, []string{"--db", db, "--redis", r.URL(), "--queue", r.QueueURL("redis+streams", "modes-"+name, "claim=1s")}
}

func TestAServiceKilledBetweenTwoDatabasesLosesNoUnit(t *testing.T) {
	const stock = 150
	db, args := streamsNamed(t, "killed")
	other := postgres(t)
	args = append(args, "--stock-db", other)
	p := start(t, t.TempDir(), args...)
	d := newDoor(t, p.base, stock)
	var wg sync.WaitGroup
	wg.Go(func() { d.rush(4 * stock) })
	for _, at := range []int64{stock / 5, stock / 2} {
		waitFor(t, "the sale is under way", func() bool { return d.count.Load() >= at })
		p.kill()
		p = start(t, t.TempDir(), args...)
		d.base.Store(p.base)
	}
	wg.Wait()
	wantConfirmed(t, d.results(), int(d.count.Load()))
	d.audit(db, stock)
	s, err := store.Open(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id, err := sale.ParseID(d.voucher)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the stock says the same", func() bool {
		v, err := s.Voucher(t.Context(), id)
		return err == nil && v.Left == 0
	})
	p.stop(t)
}

func TestAServiceKilledInASaleWithoutGateStockLosesNoOrder(t *testing.T) {
	for _, mode := range []string{"sync", "queue-first"} {
		t.Run(mode, func(t *testing.T) {
			const stock = 150
			db, args := streamsNamed(t, "killed-"+mode)
			if mode == "sync" {
				args = args[:4] // the database and the Redis
			}
			args = append(args, "--mode", mode)
			p := start(t, t.TempDir(), args...)
			d := newDoor(t, p.base, stock)
			var wg sync.WaitGroup
			wg.Go(func() { d.rush(4 * stock) })
			waitFor(t, "the sale is under way", func() bool { return d.count.Load() >= stock/3 })
			p.kill()
			p = start(t, t.TempDir(), args...)
			d.base.Store(p.base)
			wg.Wait()
			got := d.results()
			if n := got["confirmed"] + got["failed"]; n != len(d.told) {
				t.Errorf("got answers %v for %d buyers who were told of an order, want each confirmed or failed", got, len(d.told))
			}
			d.told = withConfirmed(t, p, d)
			d.audit(db, stock)
			p.stop(t)
		})
	}
}

func TestWaysOfSellingThatExcludeEachOtherAreOneSentence(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"sync with a queue":               {[]string{"--mode", "sync", "--queue", "memory"}, "has no queue"},
		"sync over two databases":         {[]string{"--mode", "sync", "--stock-db", "sqlite:b.db"}, "one transaction"},
		"one database twice":              {[]string{"--db", "sqlite:a.db", "--stock-db", "sqlite:a.db"}, "another one"},
		"a line longer than any stock":    {[]string{"--mode", "queue-first", "--max-in-flight", "10000001"}, "0 to 10000000"},
		"a way that nobody knows":         {[]string{"--mode", "later"}, "--mode"},
		"a database that cannot be found": {[]string{"--db", "sqlite:" + filepath.Join(t.TempDir(), "a.db"), "--stock-db", "postgres://nobody@127.0.0.1:1/x"}, "the stock"},
	} {
		t.Run(name, func(t *testing.T) {
			var out lockedBuffer
			err := run(t.Context(), append([]string{"--listen", "127.0.0.1:0"}, tc.args...), &out, &out)
			if err == nil || !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Errorf("got %v, want a sentence with %q", err, tc.want)
			}
		})
	}
}

func TestALineIsBoundedByItself(t *testing.T) {
	for _, tc := range []struct {
		want string
		args []string
	}{
		{`"maxInFlight":10000`, []string{"--mode", "queue-first"}},
		{`"maxInFlight":7`, []string{"--mode", "queue-first", "--max-in-flight", "7"}},
		{`"maxInFlight":0`, []string{"--mode", "queue-first", "--max-in-flight", "0"}},
		{`"maxInFlight":0`, nil}, // no more wait there than there are units
	} {
		p := start(t, t.TempDir(), tc.args...)
		d := newDoor(t, p.base, 5)
		status, b, err := call(p.base, "GET", "/api/vouchers/"+d.voucher, "", "u")
		if err != nil || status != 200 || !strings.Contains(string(b), tc.want) {
			t.Errorf("%v: got %d %s, %v, want %s", tc.args, status, b, err, tc.want)
		}
		p.stop(t)
	}
}
