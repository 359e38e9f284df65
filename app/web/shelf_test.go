package web

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"queuelab/app/sale"
)

func TestAReadStormIsOneQueryASecond(t *testing.T) {
	l := newLab(t, "memory://orders", false)
	v := l.voucher(5, time.Hour, 2*time.Hour)
	var queries atomic.Int64
	list := l.srv.shelf.list
	l.srv.shelf.list = func(ctx context.Context) ([]sale.Voucher, error) {
		queries.Add(1)
		return list(ctx)
	}
	one := l.srv.shelf.one
	l.srv.shelf.one = func(ctx context.Context, id sale.ID) (sale.Voucher, error) {
		queries.Add(1)
		return one(ctx, id)
	}
	began := time.Now()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for i := range 20 {
				path := "/api/vouchers"
				if i%2 == 1 {
					path += "/" + v
				}
				if status, _, body := l.call("GET", path, ""); status != 200 || !strings.Contains(body, v) {
					t.Errorf("got %d %s", status, body)
				}
			}
		})
	}
	wg.Wait()
	if got, most := queries.Load(), 2+int64(time.Since(began)/fresh); got > most {
		t.Errorf("got %d queries for 1000 requests within %v, want at most %d", got, time.Since(began), most)
	}
}

func TestWhatIsShownMayBeKeptAndAskedForAgain(t *testing.T) {
	l := newLab(t, "memory://orders", false)
	for range 8 {
		l.voucher(5, -time.Hour, time.Hour)
	}
	v := l.voucher(5, -time.Hour, time.Hour)
	for _, path := range []string{"/api/vouchers", "/api/vouchers/" + v} {
		status, h, body := l.call("GET", path, "", "Accept-Encoding: identity")
		etag := h.Get("ETag")
		if status != 200 || etag == "" || h.Get("Vary") != "Accept-Encoding" || h.Get("Content-Type") != "application/json" || h.Get("Content-Encoding") != "" {
			t.Errorf("%s: got %d, %v", path, status, h)
		}
		for _, seen := range []string{etag, `"x", ` + etag, "*", strings.TrimPrefix(etag, "W/")} {
			status, h, again := l.call("GET", path, "", "If-None-Match: "+seen)
			if status != 304 || again != "" || h.Get("ETag") != etag || !strings.HasPrefix(h.Get("Cache-Control"), "public") || h.Get("Vary") == "" {
				t.Errorf("%s, If-None-Match %s: got %d %q, %v, want 304", path, seen, status, again, h)
			}
		}
		if status, _, again := l.call("GET", path, "", `If-None-Match: "other"`); status != 200 || again == "" {
			t.Errorf("%s: got %d for another tag, want 200", path, status)
		}
		if path != "/api/vouchers" {
			continue
		}
		_, h, packed := l.call("GET", path, "", "Accept-Encoding: gzip, br")
		z, err := gzip.NewReader(strings.NewReader(packed))
		if err != nil || h.Get("Content-Encoding") != "gzip" || h.Get("ETag") != etag {
			t.Fatalf("got %v, %v, want it packed", h, err)
		}
		if b, err := io.ReadAll(z); err != nil || string(b) != body {
			t.Errorf("got %q unpacked, %v, want %q", b, err, body)
		}
	}
	// A change is another tag, and the operator's own is seen at once.
	_, before, _ := l.call("GET", "/api/vouchers", "")
	next := l.voucher(5, -time.Hour, time.Hour)
	_, after, body := l.call("GET", "/api/vouchers", "")
	if !strings.Contains(body, next) || before.Get("ETag") == after.Get("ETag") {
		t.Errorf("got %s, want the new voucher %s in it", body, next)
	}
}

func TestOneVoucherIsTheSameAsInTheList(t *testing.T) {
	l := newLab(t, "memory://orders", false)
	v := l.voucher(5, -time.Hour, time.Hour)
	_, _, list := l.call("GET", "/api/vouchers", "")
	status, _, one := l.call("GET", "/api/vouchers/"+v, "")
	if status != 200 || list != "["+one+"]" || field(t, one, "id") != v {
		t.Errorf("got %d %s, want the one of %s", status, one, list)
	}
	for _, id := range []string{"123", "tea", "99999999999999999999"} {
		if status, _, body := l.call("GET", "/api/vouchers/"+id, ""); status != 404 || code(t, body) != "not_found" {
			t.Errorf("%s: got %d %s, want 404 not_found", id, status, body)
		}
	}
}

// rack is a shelf over a database that counts and fails as told.
type rack struct {
	shelf
	lists, ones int
	fails       error
}

func newRack() *rack {
	r := &rack{}
	r.list = func(context.Context) ([]sale.Voucher, error) {
		r.lists++
		return []sale.Voucher{{ID: 1, Left: int64(100 - r.lists)}}, r.fails
	}
	r.one = func(_ context.Context, id sale.ID) (sale.Voucher, error) {
		r.ones++
		if id > 10 {
			return sale.Voucher{}, sale.NotFound("no such voucher")
		}
		return sale.Voucher{ID: id}, r.fails
	}
	return r
}

func TestTheShelfOutlivesADatabaseThatIsAwayForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRack()
		look := func(wantErr bool, lists int) {
			t.Helper()
			for range 10 {
				if d, err := r.look(t.Context()); (err != nil) != wantErr || (d == nil) != wantErr {
					t.Errorf("got %v, %v", d, err)
				}
			}
			if r.lists != lists {
				t.Errorf("got %d queries, want %d", r.lists, lists)
			}
		}
		r.fails = errors.New("away")
		look(true, 1) // asked once, not ten times
		time.Sleep(fresh)
		r.fails = nil
		look(false, 2)
		r.fails = errors.New("away")
		time.Sleep(fresh)
		look(false, 3)
		time.Sleep(stale)
		look(true, 4)
		r.fails = nil
		time.Sleep(fresh)
		look(false, 5)
		r.changed.Store(true)
		look(false, 6)
	})
}

func TestAVoucherThatIsNotAmongTheNewestCostsAtMostAQueryASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRack()
		find := func(id sale.ID, want sale.Code, ones int) {
			t.Helper()
			v, err := r.find(t.Context(), id)
			if sale.CodeOf(err) != want || want == "" && v.ID != id {
				t.Errorf("voucher %d: got %d, %v, want %q", id, v.ID, err, want)
			}
			if r.ones != ones {
				t.Errorf("voucher %d: got %d queries for single ones, want %d", id, r.ones, ones)
			}
		}
		find(1, "", 0)
		time.Sleep(fresh)
		find(5, "", 1)
		find(5, "", 1)
		find(6, sale.CodeBusy, 1)
		find(99, sale.CodeBusy, 1)
		time.Sleep(fresh)
		find(99, sale.CodeNotFound, 2)
		find(99, sale.CodeNotFound, 2)
		find(5, "", 2) // a little old, but known
		time.Sleep(stale)
		for id := sale.ID(100); id < 100+2*maxOld; id++ {
			time.Sleep(fresh)
			find(id, sale.CodeNotFound, r.ones+1)
		}
		if len(r.old) > maxOld {
			t.Errorf("got %d remembered, want at most %d", len(r.old), maxOld)
		}
	})
}

func FuzzIfNoneMatch(f *testing.F) {
	f.Add(`W/"a", "b"`)
	f.Add("*")
	f.Add(",,\"")
	f.Fuzz(func(t *testing.T, header string) {
		if matches(header, `W/"tag"`) && !strings.Contains(header, `"tag"`) && !strings.Contains(header, "*") {
			t.Errorf("%q matches", header)
		}
		if !matches(`"x",`+strings.ReplaceAll(header, ",", "")+`, W/"tag"`, `W/"tag"`) {
			t.Errorf("the tag after %q does not match", header)
		}
	})
}
