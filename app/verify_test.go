package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite" // driver "sqlite"

	"queuelab/bench/broker/brokertest"
)

func wantVerify(t *testing.T, want int, words []string, args ...string) string {
	t.Helper()
	code, out := verify(t, args...)
	if code != want {
		t.Errorf("%v: got exit %d, want %d:\n%s", args, code, want, out)
	}
	for _, w := range words {
		if !strings.Contains(out, w) {
			t.Errorf("%v: got %q, want %q in it", args, out, w)
		}
	}
	return out
}

// Who only looks makes nothing: a name that is mistyped was a queue afterwards.
func TestVerifyMakesNoQueue(t *testing.T) {
	db, args := streams(t)
	start(t, t.TempDir(), args...).stop(t)
	u, err := url.Parse(args[5])
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("queue", "mistyped")
	u.RawQuery = q.Encode()
	wantVerify(t, 1, []string{"no instance of this database has had it", "queue=" + t.Name()[4:]}, "--db", db, "--redis", args[3], "--queue", u.String())
	o, err := redis.ParseURL(args[3])
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(o)
	defer c.Close()
	if keys, err := c.Keys(t.Context(), "*mistyped*").Result(); err != nil || len(keys) > 0 {
		t.Errorf("got keys %v, %v, want none", keys, err)
	}
	wantVerify(t, 0, []string{"nothing was compared", "balanced: 0 vouchers"}, args...)
}

func TestVerifySaysWhatItWants(t *testing.T) {
	wantVerify(t, 0, []string{"Examples:", "--repair", "Exit: 0 balanced"}, "--help")
	wantVerify(t, 2, []string{"--wait=-1s"}, "--wait=-1s")
	wantVerify(t, 2, []string{"is not an id"}, "12x")
	wantVerify(t, 1, []string{"refused"}, "--db", "postgres://u:secret@127.0.0.1:1/x")
	db := filepath.Join(t.TempDir(), "x.db")
	// A name that is mistyped must not be a sale that balances.
	wantVerify(t, 1, []string{"there is no such file", "correct the path"}, "--db", "sqlite:"+db)
	wantVerify(t, 1, []string{"there is no folder /nowhere"}, "--db", "sqlite:/nowhere/x.db")
	// Who only looks changes no schema.
	if err := os.WriteFile(db, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		wantVerify(t, 1, []string{"lacks 00001_sale.sql", "run seckill migrate"}, "--db", "sqlite:"+db)
	}
	if out, err := migrate(t, "--db", "sqlite:"+db); err != nil {
		t.Fatalf("got %q, %v", out, err)
	}
	wantVerify(t, 1, []string{"refused", "--redis"}, "--db", "sqlite:"+db, "--redis", "redis://127.0.0.1:1/0")
	wantVerify(t, 1, []string{"refused", "--queue (redis-streams alone"}, "--db", "sqlite:"+db, "--queue", "redis-streams")
	wantVerify(t, 1, []string{"no such voucher"}, "--db", "sqlite:"+db, "7")
	wantVerify(t, 0, []string{"balanced: 0 vouchers"}, "--db", "sqlite:"+db)
	// However many there are, none is left out.
	raw, err := sql.Open("sqlite", "file:"+db)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_, err = raw.ExecContext(t.Context(), `INSERT INTO vouchers (id, title, stock, stock_left, pay_value, actual_value, begin_ms, end_ms, created_ms)
		WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 1005) SELECT id, 'tea', 2, 2, 0, 0, 0, 9999999999999, 0 FROM n`)
	if err != nil {
		t.Fatal(err)
	}
	wantVerify(t, 0, []string{"balanced: 1005 vouchers"}, "--db", "sqlite:"+db)
	if _, err := raw.ExecContext(t.Context(), "UPDATE vouchers SET stock_left = 1 WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	wantVerify(t, 3, []string{"NOT balanced: 1005 vouchers"}, "--db", "sqlite:"+db, "--wait", "0s")
}

func TestVerifyLooksAtADatabaseWhoseGateItCannotSee(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir)
	d := newDoor(t, p.base, 10)
	d.rush(4)
	wantConfirmed(t, d.results(), 4)
	db := filepath.Join(dir, "seckill.db")
	wantVerify(t, 0, []string{"stock 10 = 6 left + 4 held", "not seen from here", "balanced: 1 vouchers"}, "--db", "sqlite:"+db)
	raw, err := sql.Open("sqlite", "file:"+db)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.ExecContext(t.Context(), "PRAGMA busy_timeout=5000; UPDATE vouchers SET stock_left = 5"); err != nil {
		t.Fatal(err)
	}
	out := wantVerify(t, 3, nil, "--db", "sqlite:"+db, "--json", "--repair", "--wait", "100ms")
	var got struct {
		Balanced bool
		Vouchers []struct{ Wrong []string }
		Drift    []struct{ Kind, Done string }
	}
	if err := json.Unmarshal([]byte(out[:strings.LastIndex(out, "}")+1]), &got); err != nil {
		t.Fatalf("got %q: %v", out, err)
	}
	if got.Balanced || len(got.Vouchers) != 1 || len(got.Vouchers[0].Wrong) != 1 || len(got.Drift) != 1 || got.Drift[0].Kind != "stock_sum_differs" || got.Drift[0].Done != "" {
		t.Errorf("got %+v, want the stock named, and nothing done about it", got)
	}
	p.stop(t)
}

// drifts are the kinds that a service says stand.
func drifts(t *testing.T, p *process) []string {
	t.Helper()
	status, b, err := call(p.base, "GET", "/api/operator/drift", "", "")
	var got struct{ Drift []struct{ Kind string } }
	if err == nil {
		err = json.Unmarshal(b, &got)
	}
	if err != nil || status != 200 {
		t.Fatalf("drift: got %d %s, %v", status, b, err)
	}
	var kinds []string
	for _, d := range got.Drift {
		kinds = append(kinds, d.Kind)
	}
	return kinds
}

func TestWithoutAQueueTheDatabaseIsComparedWithItself(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, "--mode", "sync", "--reconcile", "1s")
	d := newDoor(t, p.base, 10)
	d.rush(4)
	wantConfirmed(t, d.results(), 4)
	db := filepath.Join(dir, "seckill.db")
	args := []string{"--mode", "sync", "--db", "sqlite:" + db}
	wantVerify(t, 0, []string{"stock 10 = 6 left + 4 held", "gate      none in this mode", "balanced: 1 vouchers"}, args...)
	if got := drifts(t, p); len(got) != 0 {
		t.Errorf("got drift %v, want none", got)
	}
	raw, err := sql.Open("sqlite", "file:"+db)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.ExecContext(t.Context(), "PRAGMA busy_timeout=5000; UPDATE vouchers SET stock_left = 5"); err != nil {
		t.Fatal(err)
	}
	wantVerify(t, 3, []string{"drift: stock_sum_differs", "NOT balanced"}, args...)
	waitFor(t, "the service names it", func() bool { return slices.Equal(drifts(t, p), []string{"stock_sum_differs"}) })
	p.stop(t)
}

func TestWhereBuyersQueueFirstGateAndDatabaseAreComparedWithoutStock(t *testing.T) {
	_, args := streams(t)
	args = append(args, "--mode", "queue-first")
	p := start(t, t.TempDir(), args...)
	d := newDoor(t, p.base, 10)
	d.rush(4)
	wantConfirmed(t, d.results(), 4)
	wantVerify(t, 0, []string{"stock 10 = 6 left + 4 held", "no stock in this mode, 4 buyers (0 in flight)", "balanced: 1 vouchers"}, args...)
	if got := drifts(t, p); len(got) != 0 {
		t.Errorf("got drift %v, want none", got)
	}
	o, err := redis.ParseURL(brokertest.Start(t, "redis", "aof-everysec").URL())
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(o)
	defer c.Close()
	if n, err := c.HDel(t.Context(), fmt.Sprintf("seckill:{%s}:buyers", d.voucher), "1").Result(); err != nil || n != 1 {
		t.Fatalf("got %d, %v, want a buyer who is forgotten", n, err)
	}
	short := slices.Concat(args, []string{"--wait", "500ms"})
	wantVerify(t, 3, []string{"drift: order_without_buyer", "order " + d.told["1"], "NOT balanced"}, short...)
	wantVerify(t, 0, []string{"repaired: order_without_buyer", "balanced"}, append(short, "--repair")...)
	d.rush(20)
	if got := d.results(); got["confirmed"] != 10 {
		t.Errorf("got %v, want 10 confirmed and the others failed", got)
	}
	wantVerify(t, 0, []string{"stock 10 = 0 left + 10 held", "10 buyers (0 in flight)"}, args...)
	p.stop(t)
}

func TestVerifyPutsRightWhatItCan(t *testing.T) {
	db, args := streams(t)
	p := start(t, t.TempDir(), args...)
	d := newDoor(t, p.base, 10)
	d.rush(4)
	wantConfirmed(t, d.results(), 4)
	wantVerify(t, 0, []string{"units 10 = 6 left + 4 buyers (0 in flight)"}, args...)

	o, err := redis.ParseURL(brokertest.Start(t, "redis", "aof-everysec").URL())
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(o)
	defer c.Close()
	key := func(what string) string { return fmt.Sprintf("seckill:{%s}:%s", d.voucher, what) }
	// A buyer is forgotten, and units come from nowhere.
	if err := c.HDel(t.Context(), key("buyers"), "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.HIncrBy(t.Context(), key("sale"), "stock", 3).Err(); err != nil {
		t.Fatal(err)
	}
	short := slices.Concat(args, []string{"--wait", "500ms"})
	wantVerify(t, 3, []string{"drift: order_without_buyer", "order " + d.told["1"], "drift: stock_differs", "NOT balanced", "WRONG"}, short...)
	wantVerify(t, 0, []string{"repaired: order_without_buyer", "balanced"}, append(short, "--repair")...)
	wantVerify(t, 0, []string{"units 10 = 6 left + 4 buyers"}, args...)
	d.rush(20)
	wantConfirmed(t, d.results(), 10)
	p.stop(t)
	d.audit(db, 10)
}
