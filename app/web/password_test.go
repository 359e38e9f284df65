package web

import "testing"

func TestABuyerChangesThePassword(t *testing.T) {
	l := doorLab(t, false, withPasswords)
	_, _, body := l.enter("/api/register", "alice", "correct horse")
	auth := bearing(field(t, body, "token"))
	for _, tc := range []struct {
		name, body, auth string
		status           int
		code             string
	}{
		{"nobody", `{"old":"correct horse","new":"another horse"}`, "X: y", 401, "unauthorized"},
		{"another password than the old one", `{"old":"wrong horse","new":"another horse"}`, auth, 403, "wrong_login"},
		{"a new one that is too short", `{"old":"correct horse","new":"short"}`, auth, 400, "invalid"},
		{"no old one", `{"new":"another horse"}`, auth, 400, "invalid"},
	} {
		if status, _, body := l.call("POST", "/api/password", tc.body, tc.auth); status != tc.status || code(t, body) != tc.code {
			t.Errorf("%s: got %d %s, want %d %s", tc.name, status, body, tc.status, tc.code)
		}
	}
	if status, _, body := l.call("POST", "/api/password", `{"old":"correct horse","new":"another horse"}`, auth); status != 200 || field(t, body, "token") == "" {
		t.Fatalf("got %d %s, want a token", status, body)
	}
	if err := l.srv.o.Door.Sessions.Changes.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, _, body := l.call("GET", "/api/orders", "", auth); status != 401 {
		t.Errorf("got %d %s with the token of before, want 401", status, body)
	}
	for password, want := range map[string]int{"correct horse": 401, "another horse": 200} {
		if status, _, body := l.enter("/api/login", "alice", password); status != want {
			t.Errorf("%s: got %d %s, want %d", password, status, body, want)
		}
	}
}
