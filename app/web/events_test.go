package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"queuelab/app/sale"
)

// reading is a stream that a test reads.
type reading struct {
	t      testing.TB
	resp   *http.Response
	lines  *bufio.Scanner
	hangUp context.CancelFunc
}

type event struct{ name, data string }

func (e event) field(t testing.TB, name string) any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(e.data), &m); err != nil {
		t.Fatalf("got data %q: %v", e.data, err)
	}
	return m[name]
}

// read opens a stream, which ends with the test at the latest.
func (l *lab) read(path string, headers ...string) *reading {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.base+path, nil)
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
	r := &reading{t: l.t, resp: resp, lines: bufio.NewScanner(resp.Body), hangUp: cancel}
	l.t.Cleanup(func() {
		cancel()
		resp.Body.Close()
	})
	return r
}

// next returns the next event; an empty one when the stream is over.
func (r *reading) next() (e event) {
	r.t.Helper()
	for r.lines.Scan() {
		line := r.lines.Text()
		switch name, rest, _ := strings.Cut(line, ": "); {
		case name == "event":
			e.name = rest
		case name == "data":
			e.data = rest
		case line == "" && e.name != "":
			return e
		}
	}
	return event{}
}

// until returns the first event of that name for which is holds.
func (r *reading) until(name string, is func(event) bool) event {
	r.t.Helper()
	for {
		e := r.next()
		if e.name == "" {
			r.t.Fatalf("the stream ended before the %s that is wanted: %v", name, r.lines.Err())
		}
		if e.name == name && is(e) {
			return e
		}
	}
}

// ends wants the last event, and then nothing.
func (r *reading) ends(why string) {
	r.t.Helper()
	e := r.until("end", func(event) bool { return true })
	if got := e.field(r.t, "why"); got != why {
		r.t.Errorf("got the end %v, want %s", got, why)
	}
	if e := r.next(); e.name != "" {
		r.t.Errorf("got %+v after the end", e)
	}
}

func (l *lab) order(voucher, user string) string {
	l.t.Helper()
	status, _, body := l.buy(voucher, "X-User-ID: "+user)
	if status != 202 {
		l.t.Fatalf("got %d %s", status, body)
	}
	return field(l.t, body, "orderId")
}

func TestAStreamTellsThePlaceInTheLineAndTheDecision(t *testing.T) {
	for name, tell := range map[string]bool{"of this instance": true, "of another instance": false} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, "memory://orders", true)
			v := l.voucher(3, -time.Hour, time.Hour)
			first, second := l.order(v, "a"), l.order(v, "b")
			r := l.read("/api/orders/"+second+"/events", "X-User-ID: b")
			if got := r.resp.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/event-stream") {
				t.Errorf("got Content-Type %q", got)
			}
			if h := r.resp.Header; h.Get("Cache-Control") != "no-store" || h.Get("X-Accel-Buffering") != "no" {
				t.Errorf("got headers %v, want that nobody on the way keeps it", h)
			}
			e := r.next()
			if e.name != "order" || e.field(t, "status") != "queued" || e.field(t, "ahead") != 1.0 {
				t.Errorf("got %+v, want it queued with one ahead", e)
			}
			l.decide(first)
			id, _ := sale.ParseID(first)
			vid, _ := sale.ParseID(v)
			if err := l.gate.Settle(t.Context(), sale.Reservation{OrderID: id, VoucherID: vid, UserID: "a"}); err != nil {
				t.Fatal(err)
			}
			r.until("order", func(e event) bool { return e.field(t, "ahead") == 0.0 })
			o := l.decide(second)
			if tell {
				l.srv.o.Service.Results.Decided(o)
			}
			r.until("order", func(e event) bool { return e.field(t, "status") == "confirmed" })
			r.ends("decided")
			// Whoever comes later is told at once.
			r = l.read("/api/orders/"+second+"/events", "X-User-ID: b")
			r.until("order", func(e event) bool { return e.field(t, "status") == "confirmed" })
			r.ends("decided")
		})
	}
}

func TestAStreamHasAnEndEvenWithoutADecision(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	order := l.order(l.voucher(1, -time.Hour, time.Hour), "u")
	r := l.read("/api/orders/"+order+"/events?wait=50ms", "X-User-ID: u")
	if e := r.next(); e.name != "order" || e.field(t, "status") != "queued" {
		t.Errorf("got %+v, want it queued", e)
	}
	r.ends("deadline")
	_, _, body := l.call("GET", "/api/orders/"+order+"?wait=50ms", "", "X-User-ID: u")
	if !strings.Contains(body, `"status":"queued"`) || !strings.Contains(body, `"ahead":0`) {
		t.Errorf("got %s of a long poll, want it queued with none ahead", body)
	}
	v := l.voucher(1, -time.Hour, time.Hour)
	l.read("/api/events?wait=50ms&voucher=" + v).ends("deadline")
}

func TestStreamsEndWithTheServer(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	v := l.voucher(1, -time.Hour, time.Hour)
	order := l.read("/api/orders/"+l.order(v, "u")+"/events", "X-User-ID: u")
	page := l.read("/api/events?voucher=" + v)
	order.next()
	page.next()
	began := time.Now()
	// Less than a stream would go on, and than its sign of life.
	if err := l.srv.Stop(4 * time.Second); err != nil {
		t.Errorf("got %v after %v, want a stop within its time", err, time.Since(began))
	}
	order.ends("stopping")
	page.ends("stopping")
}

func TestEverybodyWhoWatchesIsToldOfTheEndAndOfTheStart(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	status, _, body := l.call("POST", "/api/vouchers", offerOf(t, 1, map[string]any{"start": "signal"}), asOperator)
	if status != 201 {
		t.Fatalf("got %d %s", status, body)
	}
	v := field(t, body, "id")
	other := l.voucher(1, -time.Hour, time.Hour)
	var rs []*reading
	for range 20 {
		r := l.read("/api/events?voucher=" + other + "," + v)
		for range 2 {
			if e := r.next(); e.name != "voucher" || e.field(t, "left") != 1.0 || e.field(t, "openedAt") != nil {
				t.Fatalf("got %+v, want one unit of each, and no start", e)
			}
		}
		rs = append(rs, r)
	}
	if status, _, body := l.buy(v, "X-User-ID: a"); status != 403 || code(t, body) != "not_started" {
		t.Errorf("got %d %s before the signal, want 403 not_started", status, body)
	}
	status, _, body = l.call("POST", "/api/vouchers/"+v+"/open", "", asOperator)
	if status != 200 || !strings.Contains(body, `"fired":true`) {
		t.Fatalf("got %d %s", status, body)
	}
	at := field(t, body, "openedAt")
	for _, r := range rs {
		if e := r.until("voucher", func(e event) bool { return e.field(t, "voucherId") == v }); e.field(t, "openedAt") != at {
			t.Errorf("got %+v, want a start at %s", e, at)
		}
	}
	if status, _, body := l.call("POST", "/api/vouchers/"+v+"/open", "", asOperator); status != 200 || !strings.Contains(body, `"fired":false`) || field(t, body, "openedAt") != at {
		t.Errorf("got %d %s for a second signal, want the first one's moment", status, body)
	}
	if _, _, body := l.call("GET", "/api/vouchers/"+v, ""); !strings.Contains(body, `"start":"signal"`) || !strings.Contains(body, at) || strings.Contains(body, "openFrom") {
		t.Errorf("got %s, want what opens it, when it did, and no plans", body)
	}
	l.order(v, "a")
	if status, _, body := l.buy(v, "X-User-ID: b"); status != 409 || code(t, body) != "sold_out" {
		t.Errorf("got %d %s, want 409 sold_out", status, body)
	}
	for _, r := range rs {
		r.until("voucher", func(e event) bool { return e.field(t, "voucherId") == v && e.field(t, "soldOut") == true })
	}
}

func TestStreamsAreBounded(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	v := l.voucher(1, -time.Hour, time.Hour)
	mine := func() *reading { return l.read("/api/events?voucher="+v, "X-User-ID: u") }
	first := mine()
	first.next()
	for range streamsEach {
		mine().next()
	}
	first.ends("replaced") // the newest count
	l.srv.streams.mu.Lock()
	l.srv.streams.most = l.srv.streams.all
	l.srv.streams.mu.Unlock()
	status, h, body := l.call("GET", "/api/events?wait=50ms&voucher="+v, "", "X-User-ID: w")
	if status != 503 || code(t, body) != "busy" || h.Get("Retry-After") == "" {
		t.Errorf("got %d %s, want 503 busy", status, body)
	}
	if _, _, body := l.call("GET", "/metrics", ""); !strings.Contains(body, "seckill_streams 4\n") {
		t.Errorf("got metrics without the four streams")
	}
}

func TestAReaderWhoIsGoneIsNoticed(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	v := l.voucher(1_000_000, -time.Hour, time.Hour)
	r := l.read("/api/events?voucher=" + v)
	r.next()
	r.hangUp()
	// Whatever there is to say finds out: here the start of the sale, again and again.
	id, _ := sale.ParseID(v)
	for deadline := time.Now().Add(20 * time.Second); l.srv.streams.count() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the stream is still there after 20 s")
		}
		if _, _, err := l.gate.Admit(t.Context(), sale.Reservation{OrderID: sale.ID(time.Now().UnixNano()), VoucherID: id, UserID: fmt.Sprint(time.Now().UnixNano())}); err != nil {
			t.Fatal(err)
		}
	}
}

// As if the instance that gave the signal had died before it told anybody.
func TestASignalThatIsOnlyInTheDatabaseOpensTheSale(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	_, _, body := l.call("POST", "/api/vouchers", offerOf(t, 1, map[string]any{"start": "signal"}), asOperator)
	v := field(t, body, "id")
	r := l.read("/api/events?voucher=" + v)
	id, err := sale.ParseID(v)
	if err != nil {
		t.Fatal(err)
	}
	if _, fired, err := l.store.OpenSale(t.Context(), id, true); err != nil || fired {
		t.Fatalf("got %v, %v of a signal that is not due", fired, err)
	}
	if _, fired, err := l.store.OpenSale(t.Context(), id, false); err != nil || !fired {
		t.Fatalf("got %v, %v, want the signal given", fired, err)
	}
	r.until("voucher", func(e event) bool { return e.field(t, "openedAt") != nil })
	l.order(v, "u")
}

func TestWhatNobodyMaySeeOrDoOnStreams(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	v := l.voucher(1, -time.Hour, time.Hour)
	order := l.order(v, "u")
	later := offerOf(t, 1, map[string]any{"start": "signal", "beginTime": time.Now().Add(time.Minute).Format(time.RFC3339)})
	_, _, body := l.call("POST", "/api/vouchers", later, asOperator)
	early := field(t, body, "id")
	over := offerOf(t, 1, map[string]any{"start": "signal", "endTime": time.Now().Add(-time.Minute).Format(time.RFC3339)})
	_, _, body = l.call("POST", "/api/vouchers", over, asOperator)
	late := field(t, body, "id")
	for _, tc := range []struct {
		name, method, path, auth string
		status                   int
		code                     string
	}{
		{"somebody else's order", "GET", "/api/orders/" + order + "/events", "X-User-ID: eve", 404, "not_found"},
		{"an order for nobody", "GET", "/api/orders/" + order + "/events", "X: y", 401, "unauthorized"},
		{"an order that never was", "GET", "/api/orders/123/events", asOperator, 404, "not_found"},
		{"a wait that is none", "GET", "/api/orders/" + order + "/events?wait=soon", "X-User-ID: u", 400, "invalid"},
		{"no voucher", "GET", "/api/events", "X: y", 400, "invalid"},
		{"a voucher that is none", "GET", "/api/events?voucher=" + v + ",tea", "X: y", 400, "invalid"},
		{"a voucher that never was", "GET", "/api/events?voucher=123", "X: y", 404, "not_found"},
		{"too many vouchers", "GET", "/api/events?voucher=" + strings.Repeat(v+",", 50) + v, "X: y", 400, "invalid"},
		{"orders of nobody", "GET", "/api/orders", "X: y", 401, "unauthorized"},
		{"a signal from a buyer", "POST", "/api/vouchers/" + early + "/open", "X-User-ID: u", 403, "forbidden"},
		{"a signal before its time", "POST", "/api/vouchers/" + early + "/open", asOperator, 403, "not_started"},
		{"a signal after the sale", "POST", "/api/vouchers/" + late + "/open", asOperator, 410, "ended"},
		{"a signal where the clock opens", "POST", "/api/vouchers/" + v + "/open", asOperator, 409, "wrong_state"},
		{"a signal for nothing", "POST", "/api/vouchers/123/open", asOperator, 404, "not_found"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, _, body := l.call(tc.method, tc.path, "", tc.auth)
			if status != tc.status || code(t, body) != tc.code {
				t.Errorf("got %d %s, want %d %s", status, body, tc.status, tc.code)
			}
		})
	}
	if got := l.srv.streams.count(); got != 0 {
		t.Errorf("got %v streams after refusals alone", got)
	}
}

func TestABuyerSeesOwnOrders(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	tea, pot := l.voucher(2, -time.Hour, time.Hour), l.voucher(2, -time.Hour, time.Hour)
	first, second := l.order(tea, "u"), l.order(pot, "u")
	l.order(tea, "w")
	l.decide(first)
	l.decide(second)
	_, _, body := l.call("GET", "/api/orders", "", "X-User-ID: u")
	want := fmt.Sprintf(`{"orders":[{"orderId":%q,"status":"confirmed","reason":"","voucherId":%q},{"orderId":%q,"status":"confirmed","reason":"","voucherId":%q}]}`, second, pot, first, tea)
	if body != want {
		t.Errorf("got %s, want %s", body, want)
	}
	if _, _, body := l.call("GET", "/api/orders", "", "X-User-ID: eve"); body != `{"orders":[]}` {
		t.Errorf("got %s, want none", body)
	}
}
