package main

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
	"queuelab/app/store"
	"queuelab/bench/broker/brokertest"
)

// opening watches a voucher at an instance, and tells when it was told of the
// start, and which one that is.
func opening(ctx context.Context, base, voucher string) (at time.Time, opened string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/events?voucher="+voucher, nil)
	if err != nil {
		return at, "", err
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return at, "", err
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var e struct{ OpenedAt string }
		if ok && json.Unmarshal([]byte(data), &e) == nil && e.OpenedAt != "" {
			return time.Now(), e.OpenedAt, nil
		}
	}
	return at, "", fmt.Errorf("the stream of %s ended without a start", base)
}

// signalled makes a voucher that opens by signal.
func signalled(t *testing.T, base string, more string) string {
	t.Helper()
	now := time.Now()
	status, b, err := call(base, "POST", "/api/vouchers", fmt.Sprintf(`{"title":"tea","stock":10,"beginTime":%q,"endTime":%q,"start":"signal"%s}`,
		now.Add(-time.Minute).Format(time.RFC3339Nano), now.Add(time.Hour).Format(time.RFC3339Nano), more), "")
	var a struct{ ID string }
	if err != nil || status != 201 || json.Unmarshal(b, &a) != nil {
		t.Fatalf("got %d %s, %v", status, b, err)
	}
	return a.ID
}

// wantOneStart has every instance told of the same start; whoever is told buys at
// once. fire makes it happen.
func wantOneStart(t *testing.T, ps []*process, voucher string, fire func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	t.Cleanup(httpClient.CloseIdleConnections)
	type told struct {
		at     time.Time
		opened string
		status int
		err    error
	}
	answers := make(chan told, len(ps))
	for i, p := range ps {
		go func() {
			var a told
			a.at, a.opened, a.err = opening(ctx, p.base, voucher)
			if a.err == nil {
				a.status, _, a.err = call(p.base, "POST", "/api/vouchers/"+voucher+"/orders", "", fmt.Sprint("u", i))
			}
			answers <- a
		}()
	}
	for _, p := range ps {
		if status, b, err := call(p.base, "POST", "/api/vouchers/"+voucher+"/orders", "", "early"); status != 403 {
			t.Errorf("got %d %s, %v before the signal, want 403", status, b, err)
		}
	}
	fire()
	var first, last time.Time
	moments := map[string]bool{}
	for range ps {
		a := <-answers
		if a.err != nil || a.status != 202 {
			t.Errorf("got %d, %v of a click after the start, want 202", a.status, a.err)
		}
		moments[a.opened] = true
		if first.IsZero() || a.at.Before(first) {
			first = a.at
		}
		if a.at.After(last) {
			last = a.at
		}
	}
	if len(moments) != 1 {
		t.Errorf("got the starts %v, want one", moments)
	}
	t.Logf("%d instances were told within %v", len(ps), last.Sub(first).Round(100*time.Microsecond))
}

// starts counts what a process says of the signal for a voucher.
func (p *process) starts(what, voucher string) (n int) {
	for line := range strings.Lines(p.stderr.String()) {
		if strings.Contains(line, "start signal "+what) && strings.Contains(line, voucher) {
			n++
		}
	}
	return n
}

func TestASignalOpensTheSaleAtEveryInstanceOnce(t *testing.T) {
	db, args := streams(t)
	ps := []*process{start(t, t.TempDir(), args...), start(t, t.TempDir(), args...), start(t, t.TempDir(), args...)}
	byTime := signalled(t, ps[0].base, fmt.Sprintf(`,"openFrom":%q,"openTo":%q`, time.Now().Add(3*time.Second).Format(time.RFC3339Nano), time.Now().Add(3200*time.Millisecond).Format(time.RFC3339Nano)))
	wantOneStart(t, ps, byTime, func() {})
	byHand := signalled(t, ps[1].base, "")
	wantOneStart(t, ps, byHand, func() {
		if status, b, err := call(ps[2].base, "POST", "/api/vouchers/"+byHand+"/open", "", ""); status != 200 {
			t.Errorf("got %d %s, %v, want 200", status, b, err)
		}
	})
	for _, v := range []string{byTime, byHand} {
		n := 0
		for _, p := range ps {
			n += p.starts("given", v)
		}
		if n != 1 {
			t.Errorf("got %d signals for voucher %s, want 1", n, v)
		}
	}
	// An instance that dies once its note is in the database, and nowhere else.
	note := signalled(t, ps[0].base, "")
	wantOneStart(t, ps, note, func() {
		s, err := store.Open(t.Context(), db)
		if err != nil {
			t.Error(err)
			return
		}
		defer s.Close()
		id, _ := sale.ParseID(note)
		if _, fired, err := s.OpenSale(t.Context(), id, false); err != nil || !fired {
			t.Errorf("got %v, %v, want the signal given", fired, err)
		}
	})
	for _, p := range ps {
		p.stop(t)
	}
}

func TestSignalsGoThroughAnyQueueThatReachesAll(t *testing.T) {
	_, args := streams(t)
	r := brokertest.Start(t, "redis", "aof-everysec")
	for name, url := range map[string]string{
		"a group each": r.QueueURL("redis+streams", "start-groups", ""),
		"a broadcast":  r.QueueURL("redis+xread", "start-xread", ""),
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"--start-queue", url}, args...)
			ps := []*process{start(t, t.TempDir(), args...), start(t, t.TempDir(), args...)}
			v := signalled(t, ps[0].base, "")
			wantOneStart(t, ps, v, func() {
				if status, b, err := call(ps[0].base, "POST", "/api/vouchers/"+v+"/open", "", ""); status != 200 {
					t.Errorf("got %d %s, %v, want 200", status, b, err)
				}
			})
			for _, p := range ps {
				waitFor(t, "the signal is heard", func() bool { return p.starts("heard", v) > 0 })
				if s := p.stderr.String(); strings.Contains(s, "start signals") {
					t.Errorf("got %s, want no complaints", s)
				}
				p.stop(t)
			}
		})
	}
}
