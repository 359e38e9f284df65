package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/bench/broker/brokertest"
)

var httpClient = &http.Client{Timeout: 40 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableKeepAlives: false}}

func call(base, method, path, body, user string) (int, []byte, error) {
	req, err := http.NewRequest(method, base+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if user != "" {
		req.Header.Set("X-User-ID", user)
	} else {
		req.Header.Set("Authorization", "Bearer "+operatorToken)
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, b, err
}

// entrance sells one voucher to many buyers. base may move while a service is
// restarted.
type entrance struct {
	t       *testing.T
	base    atomic.Value
	voucher string

	// patience is how long a buyer clicks.
	patience time.Duration
	// own: every click of these buyers comes through here, so that an order which a
	// buyer has already is that of a click whose answer was lost.
	own bool

	mu    sync.Mutex
	told  map[string]string // buyer to order
	count atomic.Int64
}

func newDoor(t *testing.T, base string, stock int) *entrance {
	t.Helper()
	d := &entrance{t: t, told: map[string]string{}, patience: 40 * time.Second}
	d.base.Store(base)
	now := time.Now()
	body := fmt.Sprintf(`{"title":"tea","stock":%d,"payValue":1,"actualValue":2,"beginTime":%q,"endTime":%q}`,
		stock, now.Add(-time.Hour).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339))
	status, b, err := call(base, "POST", "/api/vouchers", body, "")
	var a struct{ ID string }
	if err != nil || status != 201 || json.Unmarshal(b, &a) != nil || a.ID == "" {
		t.Fatalf("create a voucher: got %d %s, %v", status, b, err)
	}
	d.voucher = a.ID
	t.Cleanup(httpClient.CloseIdleConnections)
	return d
}

// rush lets every buyer click until there is an answer that is not "busy".
func (d *entrance) rush(buyers int) {
	all := make(chan string, buyers)
	for n := range buyers {
		all <- fmt.Sprint(n + 1)
	}
	close(all)
	d.serve(all)
}

// serve lets buyers click, 32 at a time, until no more come.
func (d *entrance) serve(buyers <-chan string) {
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for user := range buyers {
				d.click(user)
			}
		})
	}
	wg.Wait()
}

func (d *entrance) click(user string) {
	deadline := time.Now().Add(d.patience)
	for time.Now().Before(deadline) {
		status, b, err := call(d.base.Load().(string), "POST", "/api/vouchers/"+d.voucher+"/orders", "", user)
		var a struct {
			OrderID string
			Error   struct{ Code, Message string }
		}
		if err == nil {
			err = json.Unmarshal(b, &a)
		}
		switch {
		case err != nil || status == 503 || status == 502:
			time.Sleep(20 * time.Millisecond)
			continue
		case status == 202:
			d.note(user, a.OrderID)
		case d.own && a.Error.Code == "already_bought":
			_, order, _ := strings.Cut(a.Error.Message, "order ")
			d.note(user, order)
		case status != 409:
			d.t.Errorf("buyer %s: got %d %s", user, status, b)
		}
		return
	}
	d.t.Errorf("buyer %s is busy for ever", user)
}

func (d *entrance) note(user, order string) {
	d.mu.Lock()
	d.told[user] = order
	d.mu.Unlock()
	d.count.Add(1)
}

// results asks for everybody's decision and returns who has which.
func (d *entrance) results() map[string]int {
	var mu sync.Mutex
	got := map[string]int{}
	users := make(chan string)
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for u := range users {
				status, b, err := call(d.base.Load().(string), "GET", "/api/orders/"+d.told[u]+"?wait=30s", "", u)
				var a struct{ Status string }
				if err != nil || status != 200 || json.Unmarshal(b, &a) != nil {
					a.Status = fmt.Sprintf("%d %v", status, err)
				}
				mu.Lock()
				got[a.Status]++
				mu.Unlock()
			}
		})
	}
	for u := range d.told {
		users <- u
	}
	close(users)
	wg.Wait()
	return got
}

// audit wants exactly the stock in the database, one each.
func (d *entrance) audit(db string, stock int) {
	d.t.Helper()
	s, err := store.Open(d.t.Context(), db)
	if err != nil {
		d.t.Fatal(err)
	}
	defer s.Close()
	id, err := sale.ParseID(d.voucher)
	if err != nil {
		d.t.Fatal(err)
	}
	var sold []sale.Order
	// An order whose buyer got no answer may still be on its way.
	waitFor(d.t, fmt.Sprintf("%d orders", stock), func() bool {
		if sold, err = s.HeldOrders(d.t.Context(), id, 0, 10*stock); err != nil {
			d.t.Fatal(err)
		}
		return len(sold) >= stock
	})
	users := map[string]bool{}
	for _, o := range sold {
		users[o.UserID] = true
		if told, ok := d.told[o.UserID]; ok && told != o.OrderID.String() {
			d.t.Errorf("buyer %s was told order %s and has %s", o.UserID, told, o.OrderID)
		}
	}
	v, err := s.Voucher(d.t.Context(), id)
	if err != nil || len(sold) != stock || len(users) != stock || v.Left != 0 {
		d.t.Errorf("got %d orders of %d buyers and %d left, %v, want %d, %d and 0", len(sold), len(users), v.Left, err, stock, stock)
	}
}

// postgres makes a database of its own.
func postgres(t testing.TB) string {
	t.Helper()
	base := brokertest.Start(t, "postgres", "").URL()
	db, err := sql.Open("pgx", base)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	name := strings.ToLower(fmt.Sprintf("t%d", time.Now().UnixNano()))
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

func streams(t *testing.T) (db string, args []string) {
	t.Helper()
	db = postgres(t)
	r := brokertest.Start(t, "redis", "aof-everysec")
	return db, []string{"--db", db, "--redis", r.URL(), "--queue", r.QueueURL("redis+streams", t.Name()[4:], "claim=1s")}
}

func wantConfirmed(t *testing.T, got map[string]int, want int) {
	t.Helper()
	all := 0
	for _, n := range got {
		all += n
	}
	if all != want || got["confirmed"] != want {
		t.Errorf("got results %v, want %d confirmed", got, want)
	}
}

func TestZeroInstallSellsExactlyTheStock(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir)
	d := newDoor(t, p.base, 200)
	d.rush(1000)
	wantConfirmed(t, d.results(), 200)
	p.stop(t)
	d.audit("sqlite:"+filepath.Join(dir, "seckill.db"), 200)
}

func TestARestartOfZeroInstallKeepsTheSale(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir)
	d := newDoor(t, p.base, 10)
	d.rush(6)
	// Whoever was told an order has it after a stop in order, without waiting.
	p.stop(t)
	p = start(t, dir)
	d.base.Store(p.base)
	wantConfirmed(t, d.results(), 6)
	d.rush(20)
	wantConfirmed(t, d.results(), 10)
	p.stop(t)
	d.audit("sqlite:"+filepath.Join(dir, "seckill.db"), 10)
}

func TestStreamsAndPostgresSellExactlyTheStock(t *testing.T) {
	db, args := streams(t)
	p := start(t, t.TempDir(), args...)
	d := newDoor(t, p.base, 200)
	d.rush(1000)
	wantConfirmed(t, d.results(), 200)
	p.stop(t)
	d.audit(db, 200)
}

func TestTwoInstancesShareASale(t *testing.T) {
	db, args := streams(t)
	a, b := start(t, t.TempDir(), args...), start(t, t.TempDir(), args...)
	d := newDoor(t, a.base, 100)
	var wg sync.WaitGroup
	wg.Go(func() { d.rush(300) })
	e := &entrance{t: t, voucher: d.voucher, told: map[string]string{}, patience: d.patience}
	e.base.Store(b.base)
	wg.Go(func() { e.rush(300) }) // the same buyers, at the other door
	wg.Wait()
	if got := d.count.Load() + e.count.Load(); got != 100 {
		t.Errorf("got %d orders told, want 100", got)
	}
	// Each door's orders are read at the other one.
	d.base.Store(b.base)
	e.base.Store(a.base)
	wantConfirmed(t, d.results(), int(d.count.Load()))
	wantConfirmed(t, e.results(), int(e.count.Load()))
	a.stop(t)
	b.stop(t)
	for u, o := range e.told {
		d.told[u] = o
	}
	d.audit(db, 100)
}

func TestADatabaseKilledMidSaleLosesNoOrder(t *testing.T) {
	db, args := streams(t)
	p := start(t, t.TempDir(), args...)
	d := newDoor(t, p.base, 100)
	var wg sync.WaitGroup
	wg.Go(func() { d.rush(400) })
	waitFor(t, "the sale is under way", func() bool { return d.count.Load() >= 20 })
	pg := brokertest.Start(t, "postgres", "")
	if err := pg.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the sale goes on without it", func() bool { return d.count.Load() >= 60 })
	if err := pg.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	wantConfirmed(t, d.results(), 100)
	d.audit(db, 100)
	p.stop(t)
}

func TestAnAtMostOnceQueueWithMarksLosesNoOrder(t *testing.T) {
	db := postgres(t)
	r := brokertest.Start(t, "redis", "aof-everysec")
	args := []string{"--db", db, "--redis", r.URL(), "--queue", r.QueueURL("redis+list", t.Name()[4:], ""), "--allow-lossy"}
	p := start(t, t.TempDir(), args...)
	d := newDoor(t, p.base, 60)
	var wg sync.WaitGroup
	wg.Go(func() { d.rush(200) })
	waitFor(t, "the sale is under way", func() bool { return d.count.Load() >= 20 })
	p.kill()
	p = start(t, t.TempDir(), args...)
	d.base.Store(p.base)
	wg.Wait()
	wantConfirmed(t, d.results(), int(d.count.Load()))
	d.audit(db, 60)
	p.stop(t)
}

func TestABroadcastIsOneOrderWhoeverHearsIt(t *testing.T) {
	db := postgres(t)
	r := brokertest.Start(t, "redis", "aof-everysec")
	args := []string{"--db", db, "--redis", r.URL(), "--queue", r.QueueURL("redis+pubsub", t.Name()[4:], ""), "--allow-lossy"}
	a, b := start(t, t.TempDir(), args...), start(t, t.TempDir(), args...)
	d := newDoor(t, a.base, 30)
	d.rush(90)
	wantConfirmed(t, d.results(), 30)
	d.audit(db, 30)
	b.stop(t)
	a.stop(t)
}
