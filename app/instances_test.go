package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// balancer sends each request to the next instance, and past those where nobody
// listens: nothing was asked there.
type balancer struct {
	mu    sync.Mutex
	bases []string
	turn  atomic.Int64
	http  *http.Transport
	srv   *http.Server
	base  string
}

func balance(t *testing.T, bases ...string) *balancer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{bases: bases, base: "http://" + ln.Addr().String(), http: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.srv = &http.Server{Handler: &httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}, Transport: b,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }}}
	var wg sync.WaitGroup
	wg.Go(func() { _ = b.srv.Serve(ln) })
	t.Cleanup(func() {
		httpClient.CloseIdleConnections()
		_ = b.srv.Close()
		b.http.CloseIdleConnections()
		wg.Wait()
	})
	return b
}

func (b *balancer) replace(i int, base string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bases[i] = base
}

// RoundTrip implements http.RoundTripper.
func (b *balancer) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	for range 3 {
		b.mu.Lock()
		base := b.bases[int(b.turn.Add(1))%len(b.bases)]
		b.mu.Unlock()
		u, perr := url.Parse(base)
		if perr != nil {
			return nil, perr
		}
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host = u.Scheme, u.Host
		resp, err = b.http.RoundTrip(out)
		if dial := new(net.OpError); errors.As(err, &dial) && dial.Op == "dial" {
			continue
		}
		return resp, err
	}
	return nil, err
}

func TestThreeInstancesAreRestartedInTurnUnderLoad(t *testing.T) {
	stock, buyers := 100, 2000
	if os.Getenv("QUEUELAB_SOAK") != "" {
		stock, buyers = 1000, 20_000
	}
	db, args := streams(t)
	c := &cast{t: t, args: args}
	var instances []*process
	var bases []string
	for range 3 {
		p := start(t, t.TempDir(), args...)
		instances, bases = append(instances, p), append(bases, p.base)
	}
	b := balance(t, bases...)
	c.door = newDoor(t, b.base, stock)
	c.door.patience, c.door.own = 2*time.Minute, true

	all := make(chan string, buyers)
	var wg sync.WaitGroup
	wg.Go(func() { c.door.serve(all) })
	next := 0
	enter := func(n int) {
		for range n {
			next++
			all <- fmt.Sprint(next)
		}
	}
	// Three restarts while it sells, and while the others learn that all is sold.
	for i, p := range instances {
		enter(stock / 4)
		waitFor(t, "the sale is under way", func() bool { return c.door.count.Load() >= int64(i*stock/4+stock/16) })
		p.stop(t)
		instances[i] = start(t, t.TempDir(), args...)
		b.replace(i, instances[i].base)
	}
	enter(buyers - next)
	close(all)
	wg.Wait()
	wantConfirmed(t, c.door.results(), stock)
	c.verify(0)
	c.door.audit(db, stock)
	for _, p := range instances {
		p.stop(t)
	}
}

func TestTheMemoryQueueRefusesToBeShared(t *testing.T) {
	for name, db := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "x.db") },
		"postgres": func(t *testing.T) string { return postgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			rawURL := db(t)
			first := start(t, t.TempDir(), "--db", rawURL)
			code, out := child(t, "--db", rawURL, "--listen", "127.0.0.1:0")
			if code != 1 || !strings.Contains(out, "the memory queue lives in one process") {
				t.Errorf("got exit %d and %q, want 1 and the reason", code, out)
			}
			// One that dies leaves nothing behind that keeps the next one out.
			first.kill()
			start(t, t.TempDir(), "--db", rawURL).stop(t)
		})
	}
}
