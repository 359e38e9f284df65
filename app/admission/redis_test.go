package admission_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"queuelab/app/admission"
	"queuelab/app/sale"
	"queuelab/bench/broker/brokertest"
)

// server is a real Redis, the same for all tests of the package, emptied.
func server(t *testing.T) (url string, c *redis.Client) {
	t.Helper()
	url = brokertest.Start(t, "redis", "no-persistence").URL()
	c = client(t, strings.TrimPrefix(strings.TrimSuffix(url, "/0"), "redis://"), time.Second)
	if err := c.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	return url, c
}

func client(t *testing.T, addr string, timeout time.Duration) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: timeout, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}})
	t.Cleanup(func() { c.Close() })
	return c
}

func gate(t *testing.T) (*admission.Redis, *redis.Client) {
	t.Helper()
	url, c := server(t)
	g, err := admission.OpenRedis(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g, c
}

// dump reads every key, so that "nothing was changed" can be said.
func dump(t *testing.T, c *redis.Client) map[string]string {
	t.Helper()
	all := map[string]string{}
	keys, err := c.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if all[k], err = c.Dump(t.Context(), k).Result(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestARefusedClickWritesNothing(t *testing.T) {
	g, c := gate(t)
	v := open(1, nil)
	admit(t, g, reservation(v, 1, "u"), sale.NotLoaded, 0)
	if got := dump(t, c); len(got) != 0 {
		t.Errorf("got keys %v after a click on nothing, want none", got)
	}
	load(t, g, v)
	admit(t, g, reservation(v, 1, "u"), sale.Admitted, 1)
	before := dump(t, c)
	admit(t, g, reservation(v, 2, "u"), sale.AlreadyBought, 1)
	admit(t, g, reservation(v, 3, "v"), sale.SoldOut, 0)
	if d := cmp.Diff(before, dump(t, c)); d != "" {
		t.Errorf("keys (-before +after):\n%s", d)
	}
}

func TestAScriptThatFailsHasDoneNothing(t *testing.T) {
	for _, what := range []string{"sale", "buyers", "marks", "due", "keys"} {
		t.Run("the key "+what+" has the wrong type", func(t *testing.T) {
			g, c := gate(t)
			v := open(5, nil)
			load(t, g, v)
			if err := c.Set(t.Context(), voucherKey(v, what), "x", 0).Err(); err != nil {
				t.Fatal(err)
			}
			before := dump(t, c)
			if got, _, err := g.Admit(t.Context(), reservation(v, 1, "u")); err == nil {
				t.Errorf("got %v, want an error", got)
			}
			if d := cmp.Diff(before, dump(t, c)); d != "" {
				t.Errorf("keys (-before +after):\n%s", d)
			}
		})
	}
	t.Run("the memory is full", func(t *testing.T) {
		g, c := gate(t)
		v := open(5, nil)
		load(t, g, v)
		before := dump(t, c)
		if err := c.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
			t.Fatal(err)
		}
		_, _, err := g.Admit(t.Context(), reservation(v, 1, "u"))
		if err := c.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
			t.Fatal(err)
		}
		if err == nil || !strings.Contains(err.Error(), "OOM") {
			t.Errorf("got %v, want OOM", err)
		}
		if d := cmp.Diff(before, dump(t, c)); d != "" {
			t.Errorf("keys (-before +after):\n%s", d)
		}
	})
}

func TestScriptsAreLoadedAgainAfterAFlush(t *testing.T) {
	g, c := gate(t)
	v := open(2, nil)
	load(t, g, v)
	for i := range 2 {
		if err := c.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		admit(t, g, reservation(v, sale.ID(i+1), fmt.Sprint("u", i)), sale.Admitted, sale.ID(i+1))
	}
	wantLeft(t, g, v, 0)
}

func TestARedisThatRestartsEmptySellsNothing(t *testing.T) {
	g, c := gate(t)
	v := open(2, nil)
	load(t, g, v)
	if err := c.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	admit(t, g, reservation(v, 1, "u"), sale.NotLoaded, 0)
}

// slowProxy forwards to addr, and holds back what the server says until it is
// let go, once told to.
func slowProxy(t *testing.T, addr string) (string, *atomic.Bool) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var hold atomic.Bool
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); ln.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", addr)
			if err != nil {
				in.Close()
				continue
			}
			stop := context.AfterFunc(ctx, func() { in.Close(); out.Close() })
			wg.Go(func() { io.Copy(out, in); out.Close() })
			wg.Go(func() {
				defer stop()
				defer in.Close()
				b := make([]byte, 4096)
				for {
					n, err := out.Read(b)
					if err != nil || hold.Load() {
						return // the reply is lost, the command was done
					}
					if _, err := in.Write(b[:n]); err != nil {
						return
					}
				}
			})
		}
	})
	return ln.Addr().String(), &hold
}

func TestAnAnswerThatIsLostTakesNothingTwice(t *testing.T) {
	_, c := server(t)
	addr, hold := slowProxy(t, c.Options().Addr)
	g := admission.NewRedis(client(t, addr, 10*time.Second))
	v := open(5, nil)
	load(t, g, v)
	r := reservation(v, 1, "u")
	// Both scripts are known to the server before an answer is lost: the lost one
	// would otherwise say NOSCRIPT.
	if _, err := g.Release(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if err := g.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	hold.Store(true)
	if got, _, err := g.Admit(t.Context(), r); err == nil {
		t.Fatalf("got %v over a proxy that loses the answer, want an error", got)
	}
	wantDone := func(want int64) {
		t.Helper()
		direct := admission.NewRedis(client(t, c.Options().Addr, time.Second))
		eventually(t, "the lost click was done", func() bool {
			n, _, err := direct.Left(t.Context(), v.ID)
			return err == nil && n == want
		})
	}
	wantDone(4)
	hold.Store(false)
	admit(t, g, r, sale.Admitted, 1)
	wantLeft(t, g, v, 4)
	if n := c.HLen(t.Context(), "seckill:{"+v.ID.String()+"}:marks").Val(); n != 1 {
		t.Errorf("got %d marks, want 1", n)
	}
	hold.Store(true)
	if _, err := g.Release(t.Context(), r); err == nil {
		t.Fatal("got no error over a proxy that loses the answer")
	}
	wantDone(5)
	hold.Store(false)
	if again, err := g.Release(t.Context(), r); err != nil || again {
		t.Errorf("got %v, %v, want false", again, err)
	}
	wantLeft(t, g, v, 5)
}

func TestClicksThatShareALostAnswerAreEachAskedAgain(t *testing.T) {
	_, c := server(t)
	addr, hold := slowProxy(t, c.Options().Addr)
	g := admission.NewRedis(client(t, addr, 10*time.Second))
	v := open(30, nil)
	load(t, g, v)
	if err := g.Check(t.Context()); err != nil { // the script is known
		t.Fatal(err)
	}
	round := func(again bool, check func(c sale.Click, a sale.Answer, err error)) {
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				c := sale.Click{Reservation: reservation(v, sale.ID(i+1), fmt.Sprint("u", i)), Again: again}
				a, err := g.Click(context.Background(), c)
				check(c, a, err)
			})
		}
		wg.Wait()
	}
	hold.Store(true)
	round(false, func(_ sale.Click, a sale.Answer, err error) {
		if err == nil {
			t.Errorf("got %+v over a proxy that loses the answer, want an error", a)
		}
	})
	hold.Store(false)
	var sold atomic.Int64
	for range 2 {
		sold.Store(0)
		round(true, func(c sale.Click, a sale.Answer, err error) {
			switch {
			case err == nil && a.Verdict == sale.Admitted && a.Order == c.OrderID:
				sold.Add(1)
			case err != nil || a.Verdict != sale.SoldOut:
				t.Errorf("click %d: got %+v, %v", c.OrderID, a, err)
			}
		})
		if sold.Load() != 30 {
			t.Errorf("got %d sold, want 30", sold.Load())
		}
	}
	wantLeft(t, g, v, 0)
	for what, n := range map[string]int64{"marks": c.HLen(t.Context(), voucherKey(v, "marks")).Val(), "buyers": c.HLen(t.Context(), voucherKey(v, "buyers")).Val()} {
		if n != 30 {
			t.Errorf("got %d %s, want 30", n, what)
		}
	}
}

func voucherKey(v sale.Voucher, what string) string { return "seckill:{" + v.ID.String() + "}:" + what }

func TestWhatIsWrongWithOneClickDoesNotFailItsNeighbours(t *testing.T) {
	g, c := gate(t)
	good, broken := open(1000, nil), open(1000, nil)
	load(t, g, good)
	load(t, g, broken)
	if err := c.HSet(t.Context(), voucherKey(good, "buyers"), "bad", "no order id").Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.Set(t.Context(), voucherKey(broken, "due"), "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 300 {
		r, fails := reservation(good, sale.ID(i+1), fmt.Sprint("u", i)), false
		switch i % 3 {
		case 1:
			r.UserID, fails = "bad", true
		case 2:
			r.VoucherID, fails = broken.ID, true
		}
		wg.Go(func() {
			got, _, err := g.Admit(context.Background(), r)
			if fails != (err != nil) || !fails && got != sale.Admitted {
				t.Errorf("click %d of %s: got %v, %v", r.OrderID, r.UserID, got, err)
			}
		})
	}
	wg.Wait()
	wantLeft(t, g, good, 900)
	wantLeft(t, g, broken, 1000)
}

// A script that names its keys honestly runs in a cluster, where Redis checks
// scripts with a shebang.
func TestScriptsDeclareTheirKeysForACluster(t *testing.T) {
	c := cluster(t)
	tag := func(whats ...string) []string {
		for i, w := range whats {
			whats[i] = "seckill:{1}:" + w
		}
		return whats
	}
	now := time.Now().UnixMilli()
	for _, s := range []struct {
		files string
		keys  []string
		args  []any
	}{
		{"load.lua", tag("sale", "buyers"), []any{5, 5, 0, now + 3_600_000, 2, 0}},
		{"admit.lua", tag("sale", "buyers", "marks", "due", "keys"), []any{"", 2, "u", "1", 0, "k", "{}", "u", "2", 1, "", "{}"}},
		{"admit.lua", append(tag("sale", "buyers", "marks", "due", "keys"), "list:{1}"), []any{"lpush", 1, "v", "3", 0, "", "{}", 1, "message"}},
		{"stale.lua", tag("marks", "due"), []any{0, 10}},
		{"back.lua withdraw.lua", tag("sale", "buyers", "marks", "due", "keys"), []any{"u", "1"}},
		{"settle.lua", tag("sale", "buyers", "marks", "due"), []any{"u#1", "2"}},
		{"back.lua release.lua", tag("sale", "buyers", "marks", "due", "keys"), []any{"u#1", "2"}},
	} {
		src := "#!lua\n"
		for _, file := range strings.Fields(s.files) {
			part, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			src += string(part)
		}
		got, err := c.Eval(t.Context(), src, s.keys, s.args...).Result()
		if err != nil {
			t.Errorf("%s: %v", s.files, err)
		}
		if got == nil {
			t.Errorf("%s: got nothing, want an answer", s.files)
		}
	}
	// The check itself works: keys of two vouchers are refused.
	err := c.Eval(t.Context(), "return 1", []string{"seckill:{1}:sale", "seckill:{2}:sale"}).Err()
	if err == nil || !strings.Contains(err.Error(), "CROSSSLOT") {
		t.Errorf("got %v for keys of two vouchers, want CROSSSLOT", err)
	}
}

func TestOpenRedisSaysWhatIsWrong(t *testing.T) {
	url, c := server(t)
	if err := c.ConfigSet(t.Context(), "requirepass", "right").Err(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.ConfigSet(context.Background(), "requirepass", "").Err(); err != nil {
			t.Error(err)
		}
	}()
	for name, raw := range map[string]string{
		"no server":      "redis://127.0.0.1:1/0",
		"wrong password": strings.Replace(url, "redis://", "redis://:secret@", 1),
		"no scheme":      "127.0.0.1:6379",
		"bad escape":     "redis://:se%cret@127.0.0.1:1/0",
		"bad database":   "redis://127.0.0.1:1/x",
	} {
		g, err := admission.OpenRedis(t.Context(), raw)
		if err == nil {
			g.Close()
			t.Errorf("%s: got no error", name)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got the password in %q", name, err)
		}
	}
}
