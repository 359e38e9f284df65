package web

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"queuelab/app/door"
)

func local(n int) door.Limiter { return door.NewLocal(door.Rate{N: n, Per: time.Hour}, 100) }

func TestABuyerMayAskSoOftenAndNobodyIsHeldByOthers(t *testing.T) {
	l := doorLab(t, true, func(_ *lab, d *door.Door) { d.Users = local(3) })
	v := l.voucher(9, -time.Hour, time.Hour)
	for i, want := range []int{202, 409, 409, 429, 429} {
		status, h, body := l.buy(v, "X-User-ID: alice")
		if status != want {
			t.Errorf("click %d: got %d %s, want %d", i+1, status, body, want)
		}
		if want == 429 {
			if n, err := strconv.Atoi(h.Get("Retry-After")); err != nil || n < 1 || n > 1200 || code(t, body) != "rate_limited" {
				t.Errorf("got %s, Retry-After %q, want rate_limited and at most 20 minutes", body, h.Get("Retry-After"))
			}
		}
	}
	if status, _, body := l.buy(v, "X-User-ID: bob"); status != 202 {
		t.Errorf("got %d %s for another buyer, want 202", status, body)
	}
	// What everybody reads from memory is not counted, nor what operators do.
	for _, path := range []string{"/api/vouchers", "/api/vouchers/" + v, "/api/time"} {
		if status, _, body := l.call("GET", path, "", "X-User-ID: alice"); status != 200 {
			t.Errorf("%s: got %d %s, want 200", path, status, body)
		}
	}
	for range 5 {
		if status, _, body := l.call("GET", "/api/payments", "", asOperator); status != 200 {
			t.Errorf("got %d %s for the operator, want 200", status, body)
		}
	}
}

func TestAnAddressIsTheOneThatTrustedProxiesSay(t *testing.T) {
	proxies, err := door.ParseProxies("127.0.0.0/8", "::1", "10.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name      string
		proxies   door.Proxies
		forwarded []string // of one request each
		want      int      // of the last
	}{
		{"one address", proxies, []string{"203.0.113.1", "203.0.113.1", "203.0.113.1"}, 429},
		{"other addresses", proxies, []string{"203.0.113.1", "203.0.113.1", "203.0.113.2"}, 404},
		{"forged ones before it", proxies, []string{"1.1.1.1, 203.0.113.1", "2.2.2.2, 203.0.113.1", "3.3.3.3, 203.0.113.1"}, 429},
		{"through a second proxy", proxies, []string{"203.0.113.1, 10.0.0.1", "203.0.113.1, 10.0.0.2", "203.0.113.1"}, 429},
		{"one IPv6 customer", proxies, []string{"2001:db8::1", "2001:db8::2", "2001:db8::3"}, 429},
		{"no trusted proxy", nil, []string{"203.0.113.1", "203.0.113.2", "203.0.113.3"}, 429},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := doorLab(t, true, func(_ *lab, d *door.Door) { d.Addresses, d.Proxies = local(2), tc.proxies })
			for i, f := range tc.forwarded {
				want := 404
				if i == len(tc.forwarded)-1 {
					want = tc.want
				}
				if status, _, body := l.call("GET", "/api/orders/1", "", "X-User-ID: alice", "X-Forwarded-For: "+f); status != want {
					t.Errorf("request %d: got %d %s, want %d", i+1, status, body, want)
				}
			}
		})
	}
}

// pathOf asks for a purchase token.
func (l *lab) pathOf(voucher, auth, body string) (int, string) {
	l.t.Helper()
	method := "GET"
	if body != "" {
		method = "POST"
	}
	status, h, answer := l.call(method, "/api/vouchers/"+voucher+"/path", body, auth)
	if got := h.Get("Cache-Control"); got != "no-store" {
		l.t.Errorf("got Cache-Control %q of a purchase token, want no-store", got)
	}
	return status, answer
}

func withPaths(l *lab, d *door.Door) { d.Paths = &door.Paths{Keys: d.Sessions.Keys, TTL: time.Minute} }

func TestBuyingNeedsAPurchaseTokenThatIsHandedOutDuringTheSale(t *testing.T) {
	l := doorLab(t, false, withPaths)
	open, other := l.voucher(1, -time.Hour, time.Hour), l.voucher(1, -time.Hour, time.Hour)
	alice, bob := l.login("alice"), l.login("bob")
	for _, tc := range []struct {
		name, voucher, auth string
		status              int
		code                string
	}{
		{"before the sale", l.voucher(1, time.Hour, 2*time.Hour), alice, 403, "not_started"},
		{"after the sale", l.voucher(1, -2*time.Hour, -time.Hour), alice, 410, "ended"},
		{"of a voucher that never was", "123", alice, 404, "not_found"},
		{"of a voucher that is none", "tea", alice, 404, "not_found"},
		{"for nobody", open, "X: y", 401, "unauthorized"},
		{"for the operator", open, asOperator, 403, "forbidden"},
	} {
		if status, body := l.pathOf(tc.voucher, tc.auth, ""); status != tc.status || code(t, body) != tc.code {
			t.Errorf("%s: got %d %s, want %d %s", tc.name, status, body, tc.status, tc.code)
		}
	}
	token := func(voucher, auth string) string {
		status, body := l.pathOf(voucher, auth, "")
		if status != 200 {
			t.Fatalf("got %d %s, want a token", status, body)
		}
		return "X-Purchase-Token: " + field(t, body, "token")
	}
	buy := func(header string) (int, string) {
		status, _, body := l.call("POST", "/api/vouchers/"+open+"/orders", "", alice, header)
		return status, body
	}
	for name, header := range map[string]string{"none": "X: y", "another buyer's": token(open, bob), "another voucher's": token(other, alice),
		"a login": "X-Purchase-Token: " + strings.TrimPrefix(alice, "Authorization: Bearer "), "a forged one": token(open, alice) + "A"} {
		if status, body := buy(header); status != 403 || code(t, body) != "purchase_token" {
			t.Errorf("%s: got %d %s, want 403 purchase_token", name, status, body)
		}
	}
	if status, body := buy(token(open, alice)); status != 202 {
		t.Errorf("got %d %s with a token, want 202", status, body)
	}
	// It is the way, not the unit.
	if status, _, body := l.call("POST", "/api/vouchers/"+open+"/orders", "", bob, token(open, bob)); status != 409 || code(t, body) != "sold_out" {
		t.Errorf("got %d %s with a token for what is sold, want 409 sold_out", status, body)
	}
	if _, _, body := l.call("GET", "/api/session", ""); !strings.Contains(body, `"purchaseToken":true`) {
		t.Errorf("got %s, want it to tell that buying needs a token", body)
	}
}

func TestWithoutPurchaseTokensTheWayIsFree(t *testing.T) {
	l := newLab(t, "memory://orders", false)
	if status, body := l.pathOf("1", l.login("alice"), ""); status != 200 || body != `{"required":false,"token":""}` {
		t.Errorf("got %d %s", status, body)
	}
}

func TestAPurchaseTokenCostsACaptchaWhereThereIsOne(t *testing.T) {
	l := doorLab(t, false, func(l *lab, d *door.Door) {
		withPaths(l, d)
		d.Captcha = &door.Captcha{When: door.Always, Keys: d.Sessions.Keys, Once: &door.LocalOnce{}, TTL: time.Minute}
	})
	v := l.voucher(1, -time.Hour, time.Hour)
	alice := l.login("alice")
	if status, body := l.pathOf(v, alice, ""); status != 403 || code(t, body) != "captcha_required" {
		t.Fatalf("got %d %s, want 403 captcha_required", status, body)
	}
	ask := func() (ticket, question string) {
		status, _, body := l.call("GET", "/api/vouchers/"+v+"/captcha?form=text", "", alice)
		if status != 200 || field(t, body, "image") != "" {
			t.Fatalf("got %d %s, want a question", status, body)
		}
		return field(t, body, "ticket"), field(t, body, "question")
	}
	solved := func(ticket, question string, off int) string {
		var a, b int
		if _, err := fmt.Sscanf(question, "%d + %d", &a, &b); err != nil {
			t.Fatalf("got %q, want a sum: %v", question, err)
		}
		return fmt.Sprintf(`{"ticket":%q,"answer":"%d"}`, ticket, a+b+off)
	}
	wrong := func(name, auth, body string) {
		t.Helper()
		if status, answer := l.pathOf(v, auth, body); status != 403 || code(t, answer) != "captcha_wrong" {
			t.Errorf("%s: got %d %s, want 403 captcha_wrong", name, status, answer)
		}
	}
	ticket, question := ask()
	wrong("a wrong answer", alice, solved(ticket, question, 1))
	wrong("a second guess", alice, solved(ticket, question, 0))
	ticket, question = ask()
	wrong("another buyer", l.login("bob"), solved(ticket, question, 0))
	status, body := l.pathOf(v, alice, solved(ticket, question, 0))
	if status != 200 {
		t.Fatalf("got %d %s for the answer, want a token", status, body)
	}
	if status, _, answer := l.call("POST", "/api/vouchers/"+v+"/orders", "", alice, "X-Purchase-Token: "+field(t, body, "token")); status != 202 {
		t.Errorf("got %d %s, want 202", status, answer)
	}
	wrong("the answer again", alice, solved(ticket, question, 0))
	wrong("a forged ticket", alice, `{"ticket":"a.b.c","answer":"1"}`)
	for _, bad := range []string{`{"ticket":1}`, `{"answer":"1","x":2}`, `[]`} {
		if status, answer := l.pathOf(v, alice, bad); status != 400 || code(t, answer) != "invalid" {
			t.Errorf("%s: got %d %s, want 400 invalid", bad, status, answer)
		}
	}
	_, _, body = l.call("GET", "/api/vouchers/"+v+"/captcha", "", alice)
	picture, ok := strings.CutPrefix(field(t, body, "image"), "data:image/png;base64,")
	if b, err := base64.StdEncoding.DecodeString(picture); !ok || err != nil || len(b) < 100 || field(t, body, "question") != "" {
		t.Errorf("got %.80s, %v, want a picture and no question", body, err)
	}
	for _, tc := range []struct {
		path, auth string
		status     int
	}{{v + "/captcha?form=sound", alice, 400}, {v + "/captcha", "X: y", 401}, {"tea/captcha", alice, 404}} {
		if status, _, body := l.call("GET", "/api/vouchers/"+tc.path, "", tc.auth); status != tc.status {
			t.Errorf("%s: got %d %s, want %d", tc.path, status, body, tc.status)
		}
	}
	if _, _, body := l.call("GET", "/api/session", ""); field(t, body, "captcha") != "on" {
		t.Errorf("got %s, want it to tell of the captcha", body)
	}
	none := newLab(t, "memory://orders", true)
	if status, _, body := none.call("GET", "/api/vouchers/1/captcha", "", "X-User-ID: alice"); status != 404 || code(t, body) != "not_found" {
		t.Errorf("got %d %s where there is none, want 404", status, body)
	}
}

func TestHeadersAreBoundedAndTheAnswerSaysSo(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	if status, _, body := l.call("GET", "/api/orders/1", "", "X-User-ID: alice", "X-Long: "+strings.Repeat("x", maxHeader-1024)); status != 404 {
		t.Errorf("got %d %s with headers that fit, want 404", status, body)
	}
	req, err := http.NewRequest(http.MethodGet, l.base+"/api/time", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Long", strings.Repeat("x", maxHeader))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge || code(t, string(b)) != "too_large" {
		t.Errorf("got %d %s, %v, want 431 too_large", resp.StatusCode, b, err)
	}
}

func TestEveryAnswerTellsBrowsersAndCachesWhatTheyMayDo(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	for path, cache := range map[string]string{"/api/orders/1": "no-store", "/api/nothing": "no-store", "/api/session": "no-store",
		"/api/time": "no-store", "/healthz": "no-store", "/api/vouchers": "public, max-age=1, stale-while-revalidate=5, stale-if-error=600"} {
		_, h, _ := l.call("GET", path, "", "X-User-ID: alice")
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": cache} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: got %s %q, want %q", path, name, got, want)
			}
		}
	}
}
