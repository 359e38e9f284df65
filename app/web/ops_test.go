package web

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// from asks as somebody who is not on this machine.
func (l *lab) from(path string, headers ...string) int {
	l.t.Helper()
	req := httptest.NewRequest(http.MethodGet, path, nil)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := l.srv.app.Test(req)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

func TestMetricsAreForThisMachineAndOperators(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	for _, tc := range []struct {
		name    string
		headers []string
		want    int
	}{
		{"a stranger", nil, 401},
		{"a buyer", []string{"X-User-ID: ann"}, 403},
		{"an operator", []string{"Authorization: Bearer " + operator}, 200},
	} {
		if got := l.from("/metrics", tc.headers...); got != tc.want {
			t.Errorf("%s: got %d, want %d", tc.name, got, tc.want)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if got := l.from(path); got != 200 {
			t.Errorf("%s: got %d, want it open to probes", path, got)
		}
	}
	if got, _, _ := l.call("GET", "/metrics", ""); got != 200 {
		t.Errorf("got %d on this machine, want 200", got)
	}
	// A proxy on this machine is not who asks.
	for _, h := range []string{"X-Forwarded-For: 203.0.113.9", "Forwarded: for=203.0.113.9"} {
		if got, _, _ := l.call("GET", "/metrics", "", h); got != 401 {
			t.Errorf("%s: got %d, want 401", h, got)
		}
	}
}

func TestTheListenerOfOperationsHasNothingOfTheSale(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- l.srv.ServeOps(ln) }()
	for path, want := range map[string]int{"/metrics": 200, "/healthz": 200, "/readyz": 200, "/api/vouchers": 404, "/": 404} {
		req, _ := http.NewRequest(http.MethodGet, "http://"+ln.Addr().String()+path, nil)
		req.Header.Set("X-Forwarded-For", "203.0.113.9")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: got %d, want %d", path, resp.StatusCode, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if err := l.srv.StopOps(5 * time.Second); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Errorf("got %v, want an end in order", err)
	}
}

func TestAPartThatIsSparedIsDegradedAndNotFailed(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	l.srv.o.Ready["database"] = func(context.Context) error { return errors.New("dial tcp 10.0.0.1: refused") }
	if status, _, body := l.call("GET", "/readyz", ""); status != 503 || field(t, body, "database") != "failed" {
		t.Errorf("got %d %s, want 503", status, body)
	}
	l.srv.o.Spared = []string{"database"}
	if status, _, body := l.call("GET", "/readyz", ""); status != 200 || field(t, body, "database") != "degraded" || field(t, body, "queue") != "ok" {
		t.Errorf("got %d %s, want 200 and a database that is degraded", status, body)
	}
	l.down = errors.New("refused")
	if status, _, body := l.call("GET", "/readyz", ""); status != 503 {
		t.Errorf("got %d %s without the queue as well, want 503", status, body)
	}
}
