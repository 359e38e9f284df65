package web

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func FuzzBodies(f *testing.F) {
	l := doorLab(f, true, withPasswords)
	f.Add("/api/vouchers", offer(1, 0, time.Hour))
	f.Add("/api/vouchers", `{"title":"x","stock":1e400}`)
	f.Add("/api/vouchers", `{"title":"\ud800","stock":1,"beginTime":null}`)
	f.Add("/api/login", `{"user":"alice"}`)
	f.Add("/api/login", `{"user":"alice","password":"wrong horse"}`)
	f.Add("/api/login", `{"user":{"user":[]}}`)
	f.Add("/api/register", `{"user":"alice","password":"12345678"}`)
	f.Add("/api/register", `{"user":"alice","password":"correct horse"}`)
	f.Add("/api/register", `{"user":"alice","password":"correct horse"}`)
	f.Add("/api/register", `{"user":"\u0000","password":"correct horse"}`)
	f.Add("/api/vouchers/1/path", `{"ticket":"a.b.c","answer":"1"}`)
	f.Add("/api/vouchers/1/path", `{"ticket":1}`)
	f.Add("/api/vouchers/1/orders", "anything")
	f.Fuzz(func(t *testing.T, path, body string) {
		header, value := "X-User-ID", "alice"
		switch path {
		case "/api/login", "/api/register", "/api/vouchers/1/path", "/api/vouchers/1/orders":
		default:
			path, header, value = "/api/vouchers", "Authorization", "Bearer "+operator
		}
		req, err := http.NewRequest(http.MethodPost, path, strings.NewReader(body))
		if err != nil {
			t.Skip(err)
		}
		req.Header.Set(header, value)
		resp, err := l.srv.app.Test(req, -1)
		if err != nil {
			t.Skip(err) // larger than the limit: the connection is closed
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode >= 500 || !json.Valid(b) {
			t.Errorf("got %d %q, %v for %q", resp.StatusCode, b, err, body)
		}
		// A body that nobody read is no test of who reads it.
		unread := resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusUnauthorized && path != "/api/login" ||
			strings.Contains(string(b), "there are no accounts")
		if unread {
			t.Errorf("%s: got %d %q, want it let in", path, resp.StatusCode, b)
		}
	})
}
