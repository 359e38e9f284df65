package web

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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
	vs          []sale.Voucher
	lists, ones int
	fails       error
	frozen      bool
}

func newRack() *rack {
	r := &rack{vs: []sale.Voucher{{ID: 1}}}
	r.list = func(ctx context.Context) ([]sale.Voucher, error) {
		r.lists++
		if r.frozen {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return r.vs, r.fails
	}
	r.older = newOlder(func(_ context.Context, id sale.ID) (sale.Voucher, error) {
		r.ones++
		if id > 1000 {
			return sale.Voucher{}, sale.NotFound("no such voucher")
		}
		return sale.Voucher{ID: id}, r.fails
	})
	return r
}

// fail is what the database says from now on; nil: it answers. It is for a bubble
// of synctest, where it waits for the look that goes on.
func (r *rack) fail(err error) {
	synctest.Wait()
	r.fails = err
}

func TestTheShelfOutlivesADatabaseThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRack()
		look := func(wantErr bool, lists int) {
			t.Helper()
			for range 10 {
				if d, err := r.look(t.Context()); (err != nil) != wantErr || (d == nil) != wantErr {
					t.Errorf("got %v, %v", d, err)
				}
			}
			synctest.Wait()
			if r.lists != lists {
				t.Errorf("got %d queries, want %d", r.lists, lists)
			}
		}
		r.fail(errors.New("away"))
		look(true, 1) // asked once, not ten times
		time.Sleep(fresh)
		r.fail(nil)
		look(false, 2)
		r.fail(errors.New("away"))
		time.Sleep(fresh)
		look(false, 3)
		time.Sleep(time.Hour)
		look(false, 4) // what was known last, whatever its age
		r.fail(nil)
		time.Sleep(fresh)
		look(false, 5)
		r.changed.Add(1)
		look(false, 6)
	})
}

func TestNobodyWaitsAtTheShelfForADatabaseThatIsFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRack()
		if _, err := r.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		r.vs = []sale.Voucher{{ID: 2}}
		if d, err := r.look(t.Context()); err != nil || d.of[2] == nil {
			t.Errorf("got %v, %v, want who comes after a while to see what is new", d, err)
		}
		r.frozen = true
		time.Sleep(time.Minute)
		waited, most := time.Duration(0), time.Duration(0)
		for range 300 {
			began := time.Now()
			if v, err := r.find(t.Context(), "a", 2); err != nil || v.ID != 2 {
				t.Fatalf("got %v, %v, want the voucher that was shown last", v, err)
			}
			took := time.Since(began)
			waited, most = waited+took, max(most, took)
			time.Sleep(time.Second / 10)
		}
		if most > fresh || waited > 2*fresh {
			t.Errorf("got waits of up to %v, %v in all, want one of %v and no more", most, waited, fresh)
		}
		time.Sleep(2 * requestTimeout) // the last look ends
	})
}

func TestWhatIsNotOnTheShelfCostsItsAddressALittleAndNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRack()
		find := func(address string, id sale.ID) error {
			t.Helper()
			v, err := r.find(t.Context(), address, id)
			if err == nil && v.ID != id {
				t.Errorf("got voucher %d, want %d", v.ID, id)
			}
			return err
		}
		if err := find("friend", 5); err != nil {
			t.Errorf("got %v for an old voucher", err)
		}
		refused := 0
		for i := range sale.ID(3 * maxUnknown) {
			switch err := find("foe", 1001+i); {
			case sale.CodeOf(err) == sale.CodeNotFound:
			case err != nil:
				refused++
			default:
				t.Fatalf("got voucher %d, want none", 1001+i)
			}
			if i%100 == 0 {
				time.Sleep(fresh) // so that some are asked for
			}
		}
		if seconds := 3 * maxUnknown / 100; refused == 0 || r.ones > (seconds+2)*(olderEach+1) {
			t.Errorf("got %d queries within %d s and %d refusals, want a limit for one address", r.ones, seconds, refused)
		}
		synctest.Wait()
		before := r.ones
		if find("foe", 1001+3*maxUnknown-100) == nil || find("friend", 1001) == nil || r.ones > before+1 {
			t.Errorf("got %d queries, want unknown ids to be remembered", r.ones-before)
		}
		r.fail(errors.New("away"))
		if err := find("friend", 5); err != nil {
			t.Errorf("got %v for an old voucher that was asked for before, want that nothing drove it out", err)
		}
		if len(r.unknown) > maxUnknown {
			t.Errorf("got %d ids remembered, want at most %d", len(r.unknown), maxUnknown)
		}
		r.fail(nil)
		for id := sale.ID(100); id < 100+2*maxOld; id++ {
			time.Sleep(fresh)
			if err := find("friend", id); err != nil {
				t.Fatal(err)
			}
		}
		if len(r.old) > maxOld {
			t.Errorf("got %d remembered, want at most %d", len(r.old), maxOld)
		}
	})
}

func TestTheListHasPagesAndWhatIsOpenFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		r := newRack()
		r.vs = nil
		windows := [][2]time.Duration{{-time.Hour, time.Hour}, {time.Hour, 2 * time.Hour}, {-2 * time.Hour, -time.Hour}}
		const each = 150
		var want []string
		for rank, w := range windows {
			for i := range sale.ID(each) {
				want = append(want, (sale.ID(each)*sale.ID(3) - 3*i + sale.ID(rank)).String())
				r.vs = append(r.vs, sale.Voucher{ID: 3*(i+1) + sale.ID(rank), Begin: now.Add(w[0]), End: now.Add(w[1])})
			}
		}
		d, err := r.look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		read := func(d *display, after string) (ids []string, next string) {
			t.Helper()
			a, next, err := d.page(after)
			if err != nil {
				t.Fatal(err)
			}
			var vs []struct{ ID string }
			if err := json.Unmarshal(a.body, &vs); err != nil {
				t.Fatal(err)
			}
			for _, v := range vs {
				ids = append(ids, v.ID)
			}
			return ids, next
		}
		var got []string
		first, next := read(d, "")
		ids, after := first, next
		for {
			if got = append(got, ids...); after == "" {
				break
			}
			ids, after = read(d, after)
		}
		if diff := cmp.Diff(want, got); diff != "" || len(first) != pageLen {
			t.Errorf("got a first page of %d, list (-want +got):\n%s", len(first), diff)
		}
		// All that was open is over, and the second page has what the first one lacked.
		time.Sleep(time.Hour)
		if d, err = r.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		rest := map[string]bool{}
		for after := next; after != ""; {
			ids, after = read(d, after)
			for _, id := range ids {
				rest[id] = true
			}
		}
		for _, id := range want[pageLen:] {
			if !rest[id] {
				t.Fatalf("got no voucher %s on the pages after the first, since the list had another order then", id)
			}
		}
		for _, bad := range []string{"x", "0", "3-1", "0-x", "-1", "00-1"} {
			if _, _, err := d.page(bad); err == nil {
				t.Errorf("after=%s: got an answer, want a refusal", bad)
			}
		}
	})
}

func TestAListOfManyHasALinkToItsNextPage(t *testing.T) {
	l := newLab(t, "memory://orders", false)
	now := time.Now()
	open := l.voucher(5, -time.Hour, time.Hour)
	for i := range sale.ID(2 * pageLen) {
		v := sale.Voucher{ID: 1<<61 + i, Title: "tea", Stock: 1, Left: 1, Begin: now.Add(time.Hour), End: now.Add(2 * time.Hour), Created: now}
		if err := l.store.CreateVoucher(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	l.srv.shelf.changed.Add(1)
	seen := map[string]bool{}
	for path := "/api/vouchers"; path != ""; {
		status, h, body := l.call("GET", path, "")
		if len(seen) == 0 && !strings.HasPrefix(body, `[{"id":"`+open+`"`) {
			t.Errorf("got %.100s, want the only open sale %s first, although 400 are newer", body, open)
		}
		var vs []struct{ ID string }
		if err := json.Unmarshal([]byte(body), &vs); status != 200 || err != nil || len(vs) == 0 {
			t.Fatalf("%s: got %d %.100s, %v", path, status, body, err)
		}
		for _, v := range vs {
			seen[v.ID] = true
		}
		path, _, _ = strings.Cut(strings.TrimPrefix(h.Get("Link"), "<"), ">")
	}
	if len(seen) != 2*pageLen+1 {
		t.Errorf("got %d vouchers on all pages, want %d", len(seen), 2*pageLen+1)
	}
	if status, _, body := l.call("GET", "/api/vouchers?after=tea", ""); status != 400 || code(t, body) != "invalid" {
		t.Errorf("got %d %s, want 400 invalid", status, body)
	}
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
