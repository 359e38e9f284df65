package web

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"queuelab/app/door"
)

// doorLab is a lab whose door is set up before anybody comes; trust is that of
// newLab.
func doorLab(t testing.TB, trust bool, set func(l *lab, d *door.Door)) *lab {
	t.Helper()
	l := newLab(t, "memory://orders", trust)
	set(l, l.srv.o.Door)
	return l
}

func withPasswords(l *lab, d *door.Door) {
	d.Accounts, d.Passwords = l.store, door.NewPasswords()
	d.Sessions.Changes = &door.Changes{Accounts: l.store, Within: time.Hour, Log: slog.New(slog.DiscardHandler)}
}

func bearing(token string) string { return "Authorization: Bearer " + token }

// enter posts a name and a password.
func (l *lab) enter(path, user, password string, headers ...string) (int, http.Header, string) {
	l.t.Helper()
	return l.call("POST", path, `{"user":"`+user+`","password":"`+password+`"}`, headers...)
}

// operatorAccount makes one, as seckill operator add does, and logs it in.
func (l *lab) operatorAccount(name string) string {
	l.t.Helper()
	hash, err := l.srv.o.Door.Passwords.Hash(l.t.Context(), "correct horse")
	if err != nil {
		l.t.Fatal(err)
	}
	if err := l.store.PutAccount(l.t.Context(), door.Account{User: name, Hash: hash, Role: door.Operator, Created: time.Now()}); err != nil {
		l.t.Fatal(err)
	}
	if err := l.srv.o.Door.Sessions.Changes.Look(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
	status, _, body := l.enter("/api/login", name, "correct horse")
	if status != 200 || field(l.t, body, "role") != "operator" {
		l.t.Fatalf("got %d %s, want an operator", status, body)
	}
	return bearing(field(l.t, body, "token"))
}

func TestABuyerRegistersAndLogsIn(t *testing.T) {
	l := doorLab(t, false, withPasswords)
	if _, _, body := l.call("GET", "/api/session", ""); body != `{"login":"password","purchaseToken":false,"captcha":"off","payments":"stand-in","user":"","role":"","expiresAt":null}` {
		t.Errorf("got %s for nobody", body)
	}
	status, _, body := l.enter("/api/register", "alice", "correct horse")
	if status != 201 || field(t, body, "user") != "alice" || field(t, body, "role") != "buyer" {
		t.Fatalf("got %d %s, want a buyer", status, body)
	}
	v := l.voucher(2, -time.Hour, time.Hour)
	if status, _, body := l.buy(v, bearing(field(t, body, "token"))); status != 202 {
		t.Errorf("got %d %s with the token of the registration, want 202", status, body)
	}
	status, _, body = l.enter("/api/login", "alice", "correct horse")
	if status != 200 {
		t.Fatalf("got %d %s, want 200", status, body)
	}
	auth := bearing(field(t, body, "token"))
	if status, _, body := l.buy(v, auth); status != 409 || code(t, body) != "already_bought" {
		t.Errorf("got %d %s with the token of the login, want the same buyer", status, body)
	}
	_, _, body = l.call("GET", "/api/session", "", auth)
	if field(t, body, "user") != "alice" || field(t, body, "role") != "buyer" || field(t, body, "expiresAt") == "" {
		t.Errorf("got %s, want alice", body)
	}
}

func TestEveryRefusalAtTheDoorHasItsCodeAndStatus(t *testing.T) {
	l := doorLab(t, false, withPasswords)
	if status, _, body := l.enter("/api/register", "alice", "correct horse"); status != 201 {
		t.Fatalf("got %d %s", status, body)
	}
	for _, tc := range []struct {
		name, path, body string
		status           int
		code             string
	}{
		{"a name that is taken", "/api/register", `{"user":"alice","password":"another horse"}`, 409, "name_taken"},
		{"a short password", "/api/register", `{"user":"bob","password":"1234567"}`, 400, "invalid"},
		{"a long password", "/api/register", `{"user":"bob","password":"` + strings.Repeat("x", 129) + `"}`, 400, "invalid"},
		{"a password that is the name", "/api/register", `{"user":"bobbobbob","password":"BobBobBob"}`, 400, "invalid"},
		{"a name that is none", "/api/register", `{"user":"a b","password":"correct horse"}`, 400, "invalid"},
		{"a role that one takes", "/api/register", `{"user":"bob","password":"correct horse","role":"operator"}`, 400, "invalid"},
		{"a login without a password", "/api/login", `{"user":"alice"}`, 400, "invalid"},
		{"a login with a long password", "/api/login", `{"user":"alice","password":"` + strings.Repeat("x", 129) + `"}`, 400, "invalid"},
		{"a wrong password", "/api/login", `{"user":"alice","password":"another horse"}`, 401, "wrong_login"},
		{"a name of nobody", "/api/login", `{"user":"nobody","password":"correct horse"}`, 401, "wrong_login"},
		{"another name for SQL", "/api/login", `{"user":"alice'--","password":"correct horse"}`, 400, "invalid"},
	} {
		if status, _, body := l.call("POST", tc.path, tc.body); status != tc.status || code(t, body) != tc.code {
			t.Errorf("%s: got %d %s, want %d %s", tc.name, status, body, tc.status, tc.code)
		}
	}
	// Nobody took alice's account over.
	if status, _, body := l.enter("/api/login", "alice", "correct horse"); status != 200 {
		t.Errorf("got %d %s, want 200", status, body)
	}
}

// What a login says must not tell whether a name is somebody's: neither its
// answers nor its limits.
func TestNobodyIsRefusedLikeSomebody(t *testing.T) {
	l := doorLab(t, false, func(l *lab, d *door.Door) {
		withPasswords(l, d)
		d.Guesses = door.NewLocal(door.Rate{N: 2, Per: time.Hour}, 100)
	})
	if status, _, body := l.enter("/api/register", "alice", "correct horse"); status != 201 {
		t.Fatalf("got %d %s", status, body)
	}
	for try, want := range []int{401, 401, 429} {
		var answers [2]string
		for i, user := range []string{"alice", "nobody"} {
			status, h, body := l.enter("/api/login", user, "wrong horse")
			if status != want {
				t.Errorf("%s, try %d: got %d %s, want %d", user, try+1, status, body, want)
			}
			if (h.Get("Retry-After") != "") != (want == 429) {
				t.Errorf("%s, try %d: got Retry-After %q", user, try+1, h.Get("Retry-After"))
			}
			answers[i] = body
		}
		if answers[0] != answers[1] {
			t.Errorf("try %d: got %s for somebody and %s for nobody", try+1, answers[0], answers[1])
		}
	}
	// Over the limit, the right password is not tried either: else a guesser
	// could go on.
	if status, _, body := l.enter("/api/login", "alice", "correct horse"); status != 429 || code(t, body) != "rate_limited" {
		t.Errorf("got %d %s, want 429 rate_limited", status, body)
	}
	if status, _, body := l.enter("/api/register", "bob", "correct horse"); status != 201 {
		t.Errorf("got %d %s for another name, want 201", status, body)
	}
}

func TestTriesToLogInAreLimitedByNameAndByAddress(t *testing.T) {
	l := doorLab(t, false, func(l *lab, d *door.Door) {
		withPasswords(l, d)
		var err error
		if d.Proxies, err = door.ParseProxies("127.0.0.0/8", "::1"); err != nil {
			t.Fatal(err)
		}
		d.Callers = door.NewLocal(door.Rate{N: 3, Per: time.Hour}, 100)
		d.Names = door.NewLocal(door.Rate{N: 2, Per: time.Hour}, 100)
	})
	from := func(address, user string) int {
		status, _, _ := l.enter("/api/login", user, "wrong horse", "X-Forwarded-For: "+address)
		return status
	}
	for i, tc := range []struct {
		address, user string
		want          int
	}{
		{"203.0.113.1", "alice", 401},
		{"203.0.113.2", "alice", 401},
		{"203.0.113.3", "alice", 429}, // the name's
		{"203.0.113.3", "bob", 401},
		{"203.0.113.3", "carol", 401},
		{"203.0.113.3", "dave", 429}, // the address's
		{"203.0.113.4", "dave", 401},
	} {
		if got := from(tc.address, tc.user); got != tc.want {
			t.Errorf("try %d, %s from %s: got %d, want %d", i+1, tc.user, tc.address, got, tc.want)
		}
	}
	status, h, body := l.enter("/api/register", "erin", "correct horse", "X-Forwarded-For: 203.0.113.3")
	if status != 429 || code(t, body) != "rate_limited" || h.Get("Retry-After") == "" {
		t.Errorf("got %d %s, want the address to be limited for registrations too", status, body)
	}
}

// Anybody can use up the tries of anybody's name.
func TestWhoUsesUpTheTriesOfANameDoesNotKeepOutItsOwner(t *testing.T) {
	for _, withCaptcha := range []bool{false, true} {
		t.Run(fmt.Sprintf("captcha: %v", withCaptcha), func(t *testing.T) {
			l := doorLab(t, false, func(l *lab, d *door.Door) {
				withPasswords(l, d)
				d.Known = &door.LocalKnown{}
				d.Proxies, _ = door.ParseProxies("127.0.0.0/8", "::1")
				d.Guesses = door.NewLocal(door.Rate{N: 2, Per: time.Hour}, 100)
				d.Names = door.NewLocal(door.Rate{N: 2, Per: time.Hour}, 100)
				if withCaptcha {
					d.Captcha = &door.Captcha{When: door.Auto, Above: 1000, Keys: d.Sessions.Keys, Once: &door.LocalOnce{}, TTL: time.Minute}
				}
			})
			from := func(address, user, password, more string) (int, string) {
				t.Helper()
				status, _, body := l.call("POST", "/api/login", fmt.Sprintf(`{"user":%q,"password":%q%s}`, user, password, more), "X-Forwarded-For: "+address)
				if status == 200 {
					return status, ""
				}
				return status, code(t, body)
			}
			want := func(address, user, password, more string, status int, code string) {
				t.Helper()
				if got, said := from(address, user, password, more); got != status || said != code {
					t.Errorf("%s from %s with %q: got %d %s, want %d %s", user, address, password, got, said, status, code)
				}
			}
			if status, _, body := l.enter("/api/register", "alice", "correct horse", "X-Forwarded-For: 203.0.113.1"); status != 201 {
				t.Fatalf("got %d %s", status, body)
			}
			for _, user := range []string{"alice", "nobody"} {
				want("203.0.113.2", user, "wrong horse", "", 401, "wrong_login")
				want("203.0.113.3", user, "wrong horse", "", 401, "wrong_login")
			}
			refusal, status := "rate_limited", 429
			if withCaptcha {
				refusal, status = "captcha_required", 403
			}
			want("203.0.113.4", "alice", "wrong horse", "", status, refusal)
			want("203.0.113.4", "alice", "correct horse", "", status, refusal) // nobody learns that it is
			want("203.0.113.5", "nobody", "correct horse", "", status, refusal)
			want("203.0.113.1", "alice", "correct horse", "", 200, "")
			want("203.0.113.1", "alice", "wrong horse", "", 401, "wrong_login")
			want("203.0.113.1", "alice", "correct horse", "", 429, "rate_limited") // so is who comes from there
			ask := func(user string) (status int, ticket, answer string) {
				status, _, body := l.call("GET", "/api/login/captcha?form=text&user="+user, "")
				if status != 200 {
					return status, "", ""
				}
				var a, b int
				if _, err := fmt.Sscanf(field(t, body, "question"), "%d + %d", &a, &b); err != nil {
					t.Fatalf("got %s, want a sum: %v", body, err)
				}
				return status, field(t, body, "ticket"), fmt.Sprint(a + b)
			}
			if !withCaptcha {
				if status, _, _ := ask("alice"); status != 404 {
					t.Errorf("got %d for a captcha where there is none, want 404", status)
				}
				return
			}
			solved := func(user, off string) string {
				_, ticket, answer := ask(user)
				return fmt.Sprintf(`,"ticket":%q,"answer":%q`, ticket, answer+off)
			}
			want("203.0.113.6", "alice", "correct horse", solved("alice", "0"), 403, "captcha_wrong")
			want("203.0.113.6", "alice", "correct horse", solved("nobody", ""), 403, "captcha_wrong")
			want("203.0.113.7", "alice", "wrong horse", solved("alice", ""), 401, "wrong_login")
			want("203.0.113.7", "alice", "correct horse", solved("alice", ""), 200, "")
			want("203.0.113.7", "alice", "correct horse", solved("alice", ""), 429, "rate_limited")
			if status, _, _ := ask("a%20b"); status != 400 {
				t.Errorf("got %d for a name that is none, want 400", status)
			}
		})
	}
}

func TestAnOperatorsAccountOperatesAndDoesNotBuy(t *testing.T) {
	l := doorLab(t, false, withPasswords)
	ann := l.operatorAccount("ann")
	status, _, body := l.call("POST", "/api/vouchers", offer(1, -time.Hour, time.Hour), ann)
	if status != 201 {
		t.Fatalf("got %d %s, want 201", status, body)
	}
	v := field(t, body, "id")
	if status, _, body := l.buy(v, ann); status != 403 || code(t, body) != "forbidden" {
		t.Errorf("got %d %s, want 403 forbidden", status, body)
	}
	_, _, body = l.enter("/api/register", "alice", "correct horse")
	alice := bearing(field(t, body, "token"))
	for _, path := range []string{"/api/vouchers", "/api/orders/1/refund", "/api/dead-letters/x/discard"} {
		if status, _, body := l.call("POST", path, offer(1, 0, time.Hour), alice); status != 403 || code(t, body) != "forbidden" {
			t.Errorf("%s: got %d %s for a buyer, want 403 forbidden", path, status, body)
		}
		if status, _, body := l.call("POST", path, offer(1, 0, time.Hour), alice+"x"); status != 401 || code(t, body) != "unauthorized" {
			t.Errorf("%s: got %d %s for a token that is none, want 401 unauthorized", path, status, body)
		}
	}
	_, _, body = l.buy(v, alice)
	order := field(t, body, "orderId")
	if status, _, body := l.call("GET", "/api/orders/"+order, "", ann); status != 200 {
		t.Errorf("got %d %s, want the operator to see every order", status, body)
	}
	// Another password, and neither the old one nor its token is of use.
	l.operatorAccount("alice")
	if status, _, body := l.call("GET", "/api/orders/"+order, "", alice); status != 401 || code(t, body) != "unauthorized" || !strings.Contains(body, "log in again") {
		t.Errorf("got %d %s with the token of before, want 401 unauthorized and what to do", status, body)
	}
	if status, _, body := l.call("GET", "/api/orders/"+order, "", ann); status != 200 {
		t.Errorf("got %d %s, want other tokens to go on", status, body)
	}
	if status, _, body := l.enter("/api/login", "alice", "another horse"); status != 401 {
		t.Errorf("got %d %s, want 401", status, body)
	}
}

func TestWithoutAccountsAnyNameIsLetInAndNobodyRegisters(t *testing.T) {
	l := newLab(t, "memory://orders", false)
	_, _, body := l.call("GET", "/api/session", "", l.login("alice"))
	if field(t, body, "login") != "open" || field(t, body, "user") != "alice" {
		t.Errorf("got %s, want an open login", body)
	}
	if status, _, body := l.enter("/api/register", "alice", "correct horse"); status != 409 || code(t, body) != "invalid" {
		t.Errorf("got %d %s, want 409 invalid", status, body)
	}
}

func TestADatabaseThatIsAwayDoesNotSayThatThePasswordIsWrong(t *testing.T) {
	l := doorLab(t, false, withPasswords)
	if err := l.store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/login", "/api/register"} {
		if status, _, body := l.enter(path, "alice", "correct horse"); status != 503 || code(t, body) != "busy" {
			t.Errorf("%s: got %d %s, want 503 busy", path, status, body)
		}
	}
}
