package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"queuelab/app/admission"
	"queuelab/app/door"
	"queuelab/app/reconcile"
	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/app/store/storetest"
	"queuelab/backends/memory"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

func TestMain(m *testing.M) {
	brokertest.Main(m,
		goleak.IgnoreAnyFunction("gorm.io/gorm/internal/lru.NewLRU[...].func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// publishTimeout is long enough for a test process that gets no processor for
// a while, and short enough to wait for a queue that is full.
const publishTimeout = time.Second

const (
	operator    = "operator-secret"
	providerKey = "the payment provider's key, for tests"
)

// lab is a server on loopback over real parts, without a worker.
type lab struct {
	t     testing.TB
	base  string
	queue queue.Queue
	gate  sale.Gate
	store *store.Store
	srv   *Server
	down  error // what /readyz hears of the queue

	reconcile *reconcile.Reconciler // what it finds twice has stood for long enough
}

func newLab(t testing.TB, queueURL string, trust bool) *lab {
	t.Helper()
	s, err := store.Open(t.Context(), storetest.SQLite(t, filepath.Join(t.TempDir(), "x.db")))
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(queueURL)
	if err != nil {
		t.Fatal(err)
	}
	q, err := memory.Open(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := q.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	metrics := NewMetrics(q.(queue.Backlogger))
	gate := admission.NewMemory(nil)
	ids, err := sale.NewSnowflake(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := door.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	loader := sale.NewLoader(gate, s, q.(queue.Backlogger), time.Second, log)
	results := sale.NewResults(s, func(err error) { t.Error(err) })
	board := sale.NewBoard(gate)
	starter := &sale.Starter{Store: s, Gate: gate, Board: board, Log: log}
	l := &lab{t: t, queue: q, gate: gate, store: s}
	l.reconcile = comparison(l, loader)
	l.srv = New(Options{
		Reconcile: l.reconcile, Console: picture(l),
		Service: &sale.Service{IDs: ids, Gate: gate, Store: s, Life: s, Letters: s, Mine: s, Board: board, Starter: starter, Results: results, Loader: loader, Observer: metrics, Log: log,
			Outbox: &sale.Outbox{Publisher: pub, Timeout: publishTimeout, Observer: metrics}},
		Door: &door.Door{Sessions: &door.Sessions{Keys: keys, TTL: time.Hour}, Provider: &door.Provider{Key: []byte(providerKey), StandIn: true}}, OperatorToken: operator, TrustUserHeader: trust, Metrics: metrics, Log: log, Unavailable: store.Transient,
		Ready: map[string]func(context.Context) error{"queue": func(context.Context) error { return l.down }},
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.base = "http://" + ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { loader.Run(ctx) })
	wg.Go(func() { results.Run(ctx) })
	wg.Go(func() { board.Run(ctx) })
	wg.Go(func() { starter.Run(ctx) })
	wg.Go(func() {
		if err := l.srv.Serve(ln); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := l.srv.Stop(5 * time.Second); err != nil {
			t.Error(err)
		}
		cancel()
		wg.Wait()
		q.Close()
		s.Close()
	})
	return l
}

// call sends a request with header lines "Name: value".
func (l *lab) call(method, path, body string, headers ...string) (int, http.Header, string) {
	l.t.Helper()
	req, err := http.NewRequest(method, l.base+path, strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	for _, h := range headers {
		k, v, _ := strings.Cut(h, ": ")
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

func code(t testing.TB, body string) string {
	t.Helper()
	var b errorBody
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		t.Fatalf("got %q, want an error answer: %v", body, err)
	}
	if b.Error.Code != "" && b.Error.Message == "" {
		t.Errorf("got %q without a message for people", body)
	}
	return b.Error.Code
}

func field(t testing.TB, body, name string) string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatalf("got %q: %v", body, err)
	}
	s, ok := m[name].(string)
	if !ok {
		t.Fatalf("got %q, want a string %q in it", body, name)
	}
	return s
}

const asOperator = "Authorization: Bearer " + operator

func offer(stock any, begin, end time.Duration) string {
	now := time.Now()
	b, _ := json.Marshal(map[string]any{"title": "tea", "stock": stock, "payValue": 100, "actualValue": 500,
		"beginTime": now.Add(begin).Format(time.RFC3339Nano), "endTime": now.Add(end).Format(time.RFC3339Nano)})
	return string(b)
}

func (l *lab) voucher(stock int, begin, end time.Duration) string {
	l.t.Helper()
	status, _, body := l.call("POST", "/api/vouchers", offer(stock, begin, end), asOperator)
	if status != 201 {
		l.t.Fatalf("got %d %s", status, body)
	}
	return field(l.t, body, "id")
}

func (l *lab) login(user string) string {
	l.t.Helper()
	status, _, body := l.call("POST", "/api/login", `{"user":"`+user+`"}`)
	if status != 200 {
		l.t.Fatalf("got %d %s", status, body)
	}
	return "Authorization: Bearer " + field(l.t, body, "token")
}

func (l *lab) buy(voucher, auth string) (int, http.Header, string) {
	l.t.Helper()
	return l.call("POST", "/api/vouchers/"+voucher+"/orders", "", auth)
}

func TestEveryRefusalHasItsCodeAndStatus(t *testing.T) {
	l := newLab(t, "memory://orders", false)
	auth := l.login("alice")
	open := l.voucher(1, -time.Hour, time.Hour)
	status, h, body := l.buy(open, auth)
	if status != 202 {
		t.Fatalf("got %d %s", status, body)
	}
	order := field(t, body, "orderId")
	if got := h.Get("Location"); got != "/api/orders/"+order {
		t.Errorf("got Location %q", got)
	}
	for _, tc := range []struct {
		name, voucher, auth string
		status              int
		code                string
	}{
		{"the same buyer again", open, auth, 409, "already_bought"},
		{"another buyer of the last unit", open, l.login("bob"), 409, "sold_out"},
		{"before the sale", l.voucher(1, time.Hour, 2*time.Hour), auth, 403, "not_started"},
		{"after the sale", l.voucher(1, -2*time.Hour, -time.Hour), auth, 410, "ended"},
		{"a voucher that never was", "123", auth, 404, "not_found"},
		{"a voucher id that overflows", "99999999999999999999", auth, 404, "not_found"},
		{"a voucher id that is text", "tea", auth, 404, "not_found"},
		{"nobody", open, "X: y", 401, "unauthorized"},
		{"the operator does not buy", open, asOperator, 403, "forbidden"},
		{"a forged token", open, "Authorization: Bearer e30.e30", 401, "unauthorized"},
		{"a user header that nobody trusts", open, "X-User-ID: alice", 401, "unauthorized"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, h, body := l.buy(tc.voucher, tc.auth)
			if status != tc.status || code(t, body) != tc.code {
				t.Errorf("got %d %s, want %d %s", status, body, tc.status, tc.code)
			}
			if tc.code == "already_bought" && h.Get("Location") != "/api/orders/"+order {
				t.Errorf("got Location %q, want that of order %s", h.Get("Location"), order)
			}
		})
	}
}

func TestBadInputIsAnAnswerAndNeverAFailure(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	for _, tc := range []struct {
		name, method, path, body, auth string
		status                         int
		code                           string
	}{
		{"malformed JSON", "POST", "/api/vouchers", "{", asOperator, 400, "invalid"},
		{"no body", "POST", "/api/vouchers", "", asOperator, 400, "invalid"},
		{"JSON of another kind", "POST", "/api/vouchers", "[]", asOperator, 400, "invalid"},
		{"two objects", "POST", "/api/vouchers", offer(1, 0, time.Hour) + "{}", asOperator, 400, "invalid"},
		{"an unknown field", "POST", "/api/vouchers", `{"titel":"x"}`, asOperator, 400, "invalid"},
		{"stock 0", "POST", "/api/vouchers", offer(0, 0, time.Hour), asOperator, 400, "invalid"},
		{"stock below 0", "POST", "/api/vouchers", offer(-1, 0, time.Hour), asOperator, 400, "invalid"},
		{"absurd stock", "POST", "/api/vouchers", offer(10_000_001, 0, time.Hour), asOperator, 400, "invalid"},
		{"stock that overflows", "POST", "/api/vouchers", offer(json.Number("99999999999999999999"), 0, time.Hour), asOperator, 400, "invalid"},
		{"stock of half a unit", "POST", "/api/vouchers", offer(1.5, 0, time.Hour), asOperator, 400, "invalid"},
		{"stock as text", "POST", "/api/vouchers", offer("ten", 0, time.Hour), asOperator, 400, "invalid"},
		{"an end before its begin", "POST", "/api/vouchers", offer(1, time.Hour, 0), asOperator, 400, "invalid"},
		{"a time that is none", "POST", "/api/vouchers", `{"title":"x","stock":1,"beginTime":"tomorrow"}`, asOperator, 400, "invalid"},
		{"no operator", "POST", "/api/vouchers", offer(1, 0, time.Hour), "X: y", 401, "unauthorized"},
		{"a wrong operator", "POST", "/api/vouchers", offer(1, 0, time.Hour), asOperator + "x", 401, "unauthorized"},
		{"a body too large", "POST", "/api/vouchers", strings.Repeat(" ", maxBody+1), asOperator, 413, "too_large"},
		{"a login without a name", "POST", "/api/login", `{}`, "X: y", 400, "invalid"},
		{"a login with a wrong name", "POST", "/api/login", `{"user":"a b"}`, "X: y", 400, "invalid"},
		{"a user header with a wrong name", "POST", "/api/vouchers/1/orders", "", "X-User-ID: a b", 400, "invalid"},
		{"a user header that is too long", "POST", "/api/vouchers/1/orders", "", "X-User-ID: " + strings.Repeat("9", 65), 400, "invalid"},
		{"an order that never was", "GET", "/api/orders/123", "", asOperator, 404, "not_found"},
		{"an order id that overflows", "GET", "/api/orders/9223372036854775808", "", asOperator, 404, "not_found"},
		{"a wait that is none", "GET", "/api/orders/1?wait=soon", "", asOperator, 400, "invalid"},
		{"a wait below 0", "GET", "/api/orders/1?wait=-1s", "", asOperator, 400, "invalid"},
		{"an order for nobody", "GET", "/api/orders/1", "", "X: y", 401, "unauthorized"},
		{"no such address", "GET", "/api/nothing", "", "X: y", 404, "not_found"},
		{"no such method", "DELETE", "/api/vouchers", "", asOperator, 405, "method_not_allowed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, _, body := l.call(tc.method, tc.path, tc.body, tc.auth)
			if status != tc.status || code(t, body) != tc.code {
				t.Errorf("got %d %s, want %d %s", status, body, tc.status, tc.code)
			}
		})
	}
}

func TestAPackedBodyIsNotUnpacked(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, `{"user":"alice"}`, strings.Repeat(" ", maxBody/2))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	status, _, body := l.call("POST", "/api/login", packed.String(), "Content-Encoding: gzip")
	if status != http.StatusUnsupportedMediaType || code(t, body) != "unsupported_media" {
		t.Errorf("got %d %s, want 415 unsupported_media", status, body)
	}
}

func TestAFullQueueIsBusyAndGivesTheUnitBack(t *testing.T) {
	for _, full := range []string{"reject", "block"} {
		t.Run("full="+full, func(t *testing.T) {
			l := newLab(t, "memory://orders?capacity=2&full="+full, true)
			v := l.voucher(5, -time.Hour, time.Hour)
			for i := range 4 {
				status, h, body := l.buy(v, fmt.Sprintf("X-User-ID: %d", i))
				switch {
				case i < 2 && status != 202:
					t.Errorf("buyer %d: got %d %s, want 202", i, status, body)
				case i >= 2 && (status != 503 || code(t, body) != "busy" || h.Get("Retry-After") == ""):
					t.Errorf("buyer %d: got %d %s, Retry-After %q, want busy", i, status, body, h.Get("Retry-After"))
				}
			}
			id, err := sale.ParseID(v)
			if err != nil {
				t.Fatal(err)
			}
			if got, _, _ := l.gate.Left(t.Context(), id); got != 3 {
				t.Errorf("got %d left, want 3", got)
			}
			if rs, _ := l.gate.Stale(t.Context(), id, 0, 10); len(rs) != 2 {
				t.Errorf("got %d marks, want 2", len(rs))
			}
		})
	}
}

func TestALineThatIsFullSaysWhenToComeAgain(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	l.srv.o.Service.MaxInFlight = 2
	v := l.voucher(5, -time.Hour, time.Hour)
	for i := range 4 {
		status, h, body := l.buy(v, fmt.Sprintf("X-User-ID: %d", i))
		switch {
		case i < 2 && status != 202:
			t.Errorf("buyer %d: got %d %s, want 202", i, status, body)
		case i >= 2 && (status != 503 || code(t, body) != "busy" || h.Get("Retry-After") != "1"):
			t.Errorf("buyer %d: got %d %s, Retry-After %q, want busy for a second", i, status, body, h.Get("Retry-After"))
		}
	}
}

func TestAnOrderIsReadByItsBuyerAndTheOperatorOnly(t *testing.T) {
	l := newLab(t, "memory://orders", false)
	v := l.voucher(1, -time.Hour, time.Hour)
	alice := l.login("alice")
	_, _, body := l.buy(v, alice)
	order := field(t, body, "orderId")
	want := `{"orderId":"` + order + `","status":"queued","reason":""}`
	for _, auth := range []string{alice, asOperator} {
		if status, _, body := l.call("GET", "/api/orders/"+order, "", auth); status != 200 || body != want {
			t.Errorf("got %d %s, want %s", status, body, want)
		}
	}
	if status, _, body := l.call("GET", "/api/orders/"+order, "", l.login("eve")); status != 404 || code(t, body) != "not_found" {
		t.Errorf("got %d %s for another buyer, want 404", status, body)
	}
}

// decide does what a worker would, here or in another instance.
func (l *lab) decide(order string) sale.Order {
	l.t.Helper()
	id, err := sale.ParseID(order)
	if err != nil {
		l.t.Fatal(err)
	}
	vs, err := l.srv.o.Service.Loader.Recent(l.t.Context(), time.Now())
	if err != nil {
		l.t.Fatal(err)
	}
	r, ok, err := l.gate.Find(l.t.Context(), id, vs...)
	if err != nil || !ok {
		l.t.Fatalf("got %v, %v, want a mark", ok, err)
	}
	ds, err := l.store.Fulfil(l.t.Context(), []sale.Reservation{r})
	if err != nil {
		l.t.Fatal(err)
	}
	return ds[0].Order
}

func TestALongPollEndsWithTheDecision(t *testing.T) {
	for name, tell := range map[string]bool{"of this instance": true, "of another instance": false} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, "memory://orders", true)
			v := l.voucher(1, -time.Hour, time.Hour)
			_, _, body := l.buy(v, "X-User-ID: u")
			order := field(t, body, "orderId")
			answer := make(chan string, 1)
			go func() {
				_, _, body := l.call("GET", "/api/orders/"+order+"?wait=25s", "", "X-User-ID: u")
				answer <- body
			}()
			o := l.decide(order)
			if tell {
				l.srv.o.Service.Results.Decided(o)
			}
			if got := field(t, <-answer, "status"); got != "confirmed" {
				t.Errorf("got %s, want confirmed", got)
			}
		})
	}
}

func TestALongPollEndsWithTheServer(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	v := l.voucher(1, -time.Hour, time.Hour)
	_, _, body := l.buy(v, "X-User-ID: u")
	order := field(t, body, "orderId")
	l.srv.o.Service.Results.Close()
	if _, _, body := l.call("GET", "/api/orders/"+order+"?wait=30s", "", "X-User-ID: u"); field(t, body, "status") != "queued" {
		t.Errorf("got %s, want queued", body)
	}
}

// Fiber's strings point into a buffer that the next request overwrites: what
// is queued must be copies.
func TestQueuedNamesSurviveTheRequest(t *testing.T) {
	l := newLab(t, "memory://orders?capacity=4096", true)
	v := l.voucher(2000, -time.Hour, time.Hour)
	told := sync.Map{}
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			for i := range 250 {
				user := fmt.Sprintf("user-%d-%d", c, i)
				status, _, body := l.buy(v, "X-User-ID: "+user)
				if status != 202 {
					t.Errorf("got %d %s", status, body)
					return
				}
				told.Store(field(t, body, "orderId"), user)
			}
		})
	}
	wg.Wait()
	c, err := l.queue.Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ds, err := c.Receive(t.Context(), 4096)
	if err != nil || len(ds) != 2000 {
		t.Fatalf("got %d messages, %v, want 2000", len(ds), err)
	}
	wrong := 0
	for _, d := range ds {
		r, err := sale.DecodeReservation(d.Body)
		if err != nil {
			t.Fatal(err)
		}
		if want, ok := told.Load(d.ID); !ok || want != r.UserID || r.OrderID.String() != d.ID {
			wrong++
		}
	}
	if wrong > 0 {
		t.Errorf("got %d of %d messages with another buyer's name", wrong, len(ds))
	}
}

func TestLostKeysAreLoadedAgain(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	now := time.Now()
	v := sale.Voucher{ID: 77, Title: "made by another instance", Stock: 1, Left: 1, Begin: now.Add(-time.Hour), End: now.Add(time.Hour), Created: now}
	if err := l.store.CreateVoucher(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		status, _, body := l.buy("77", "X-User-ID: u")
		if status == 202 {
			return
		}
		if status != 503 || code(t, body) != "busy" || time.Now().After(deadline) {
			t.Fatalf("got %d %s, want busy and then 202", status, body)
		}
	}
}

func TestAStopDoesNotWaitForConnectionsThatAskNothing(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	c, err := net.Dial("tcp", strings.TrimPrefix(l.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	waiting := func() int {
		l.srv.mu.Lock()
		ln := l.srv.ln
		l.srv.mu.Unlock()
		if ln == nil {
			return 0
		}
		ln.mu.Lock()
		defer ln.mu.Unlock()
		return len(ln.conns)
	}
	for deadline := time.Now().Add(10 * time.Second); waiting() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the connection was not seen within 10 s")
		}
	}
	// Shorter than the read timeout, which would end the connection as well.
	if err := l.srv.Stop(2 * time.Second); err != nil {
		t.Errorf("got %v, want a stop within its time", err)
	}
}

func TestADatabaseThatIsAwayIsBusyAndNotAFailure(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	v := l.voucher(1, -time.Hour, time.Hour)
	if err := l.store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tc := range [][3]string{{"GET", "/api/vouchers", ""}, {"POST", "/api/vouchers", offer(1, 0, time.Hour)}, {"GET", "/api/orders/1", ""},
		{"POST", "/api/vouchers/123/orders", ""}} {
		auth := asOperator
		if strings.HasSuffix(tc[1], "/orders") {
			auth = "X-User-ID: u"
		}
		status, h, body := l.call(tc[0], tc[1], tc[2], auth)
		if status != 503 || code(t, body) != "busy" || h.Get("Retry-After") == "" {
			t.Errorf("%s %s: got %d %s, want 503 busy", tc[0], tc[1], status, body)
		}
	}
	// The sale itself goes on: gate and queue need no database.
	if status, _, body := l.buy(v, "X-User-ID: u"); status != 202 {
		t.Errorf("got %d %s, want 202", status, body)
	}
}

func TestReadiness(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	if status, _, body := l.call("GET", "/readyz", ""); status != 200 {
		t.Errorf("got %d %s, want 200", status, body)
	}
	l.down = errors.New("dial tcp 10.0.0.1: secret address")
	if status, _, body := l.call("GET", "/readyz", ""); status != 503 || strings.Contains(body, "10.0.0.1") || field(t, body, "queue") != "failed" {
		t.Errorf("got %d %s, want 503 about the queue, without its address", status, body)
	}
	l.down = nil
	l.srv.Refuse()
	if status, _, body := l.call("GET", "/readyz", ""); status != 503 {
		t.Errorf("got %d %s while stopping, want 503", status, body)
	}
	if status, _, body := l.call("GET", "/healthz", ""); status != 200 {
		t.Errorf("got %d %s, want 200", status, body)
	}
}

func TestMetricsCountWhatHappened(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	v := l.voucher(1, -time.Hour, time.Hour)
	l.buy(v, "X-User-ID: a")
	l.buy(v, "X-User-ID: b")
	_, _, body := l.call("GET", "/metrics", "")
	for _, want := range []string{
		`seckill_admissions_total{code="admitted"} 1`,
		`seckill_admissions_total{code="sold_out"} 1`,
		`seckill_publishes_total{by="click",outcome="accepted"} 1`,
		`seckill_queue_messages{state="ready"} 1`,
		`seckill_http_request_seconds_count{method="POST",route="/api/vouchers/:id/orders",status="409"} 1`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("got metrics without %s", want)
		}
	}
}
