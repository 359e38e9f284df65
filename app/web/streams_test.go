package web

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofiber/fiber/v2"

	"queuelab/app/sale"
)

func TestNobodyWaitsLongerThanTheMost(t *testing.T) {
	app := fiber.New()
	app.Get("/", func(c *fiber.Ctx) error {
		wait, err := waiting(c, 7*time.Second, time.Minute)
		if err != nil {
			return c.SendString("refused")
		}
		return c.SendString(wait.String())
	})
	for asked, want := range map[string]string{"": "7s", "5s": "5s", "0s": "0s", "1h": "1m0s", "-1s": "refused", "soon": "refused"} {
		resp, err := app.Test(httptest.NewRequest(http.MethodGet, "/?wait="+url.QueryEscape(asked), nil), -1)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		if err != nil || string(b) != want {
			t.Errorf("wait=%s: got %s, %v, want %s", asked, b, err, want)
		}
	}
}

func TestEachBuyerAndEachAddressHasItsShareOfStreams(t *testing.T) {
	if got := newStreams(0).most; got != DefaultStreams {
		t.Errorf("got room for %d streams where nothing is said, want %d", got, DefaultStreams)
	}
	s := newStreams(10 * streamsAddress)
	begin := func(user, address string) *stream {
		t.Helper()
		st, err := s.begin(user, address, false)
		if err != nil {
			t.Fatalf("%q at %s: %v", user, address, err)
		}
		return st
	}
	wantBusy := func(user, address string) {
		t.Helper()
		if _, err := s.begin(user, address, false); sale.CodeOf(err) != sale.CodeBusy {
			t.Errorf("%q at %s: got %v, want that it is refused as busy", user, address, err)
		}
	}
	var all []*stream
	for range streamsAddress {
		all = append(all, begin("", "10.0.0.1"))
	}
	wantBusy("", "10.0.0.1")
	all = append(all, begin("", "10.0.0.2"))
	for range streamsEach + 1 { // a buyer with a name, at the address that is full
		all = append(all, begin("u", "10.0.0.1"))
	}
	for i, st := range all {
		select {
		case why := <-st.end:
			if i != streamsAddress+1 || why != endReplaced {
				t.Errorf("got stream %d ended, %s, want only the buyer's oldest, replaced", i, why)
			}
		default:
			if i == streamsAddress+1 {
				t.Error("got the buyer's oldest stream going on, want it replaced")
			}
		}
	}
	s.finish(all[0])
	all[0] = begin("", "10.0.0.1") // there is room again, and for one only
	wantBusy("", "10.0.0.1")
	for _, st := range all {
		s.finish(st)
	}
	if len(s.of) != 0 || s.count() != 0 {
		t.Errorf("got %d readers with %v streams after all ended, want none", len(s.of), s.count())
	}
	s.stop()
	wantBusy("u", "10.0.0.1")
}

func TestThoseWhoWatchLeaveRoomForThoseWhoWaitForAnOrder(t *testing.T) {
	s := newStreams(8)
	begin := func(user string, order, want bool) *stream {
		t.Helper()
		st, err := s.begin(user, user+"'s address", order)
		if (err == nil) != want {
			t.Fatalf("%q: got %v, want let in %v", user, err, want)
		}
		return st
	}
	ended := func(st *stream, want string) {
		t.Helper()
		got := ""
		select {
		case got = <-st.end:
		default:
		}
		if got != want {
			t.Errorf("got the end %q, want %q", got, want)
		}
	}
	named := begin("w", false, true)
	var watchers []*stream
	for range 5 {
		watchers = append(watchers, begin("", false, true))
	}
	begin("", false, false) // a quarter is not for them
	late := begin("v", false, true)
	ended(watchers[0], endCrowded)
	for i := range 2 {
		begin(string(rune('a'+i)), true, true)
	}
	if s.count() != 8 {
		t.Errorf("got %v streams, want all 8", s.count())
	}
	for i := range 4 {
		begin(string(rune('c'+i)), true, true)
		ended(watchers[1+i], endCrowded)
	}
	ended(named, "")
	for _, user := range []string{"x", "y"} {
		begin(user, true, true)
	}
	ended(named, endCrowded)
	ended(late, endCrowded)
	begin("z", true, false) // all wait for an order
	s.finish(watchers[0])   // its room is long somebody else's
	begin("z", true, false)
	if s.count() != 8 {
		t.Errorf("got %v streams, want all 8", s.count())
	}
}

func TestAReaderWhoIsGoneIsNoticedAtOnce(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	v := l.voucher(1, -time.Hour, time.Hour)
	order := l.order(v, "u")
	for _, path := range []string{"/api/events?voucher=" + v, "/api/orders/" + order + "/events"} {
		r := l.read(path, "X-User-ID: u")
		if e := r.next(); e.name == "" || l.srv.streams.count() != 1 {
			t.Fatalf("got %+v and %v streams, want one", e, l.srv.streams.count())
		}
		began := time.Now()
		r.hangUp()
		for l.srv.streams.count() > 0 {
			if time.Since(began) > beatEvery-time.Second {
				t.Fatalf("%s: the reader is gone and holds his place until the next sign of life", path)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

func TestAStreamIsNotForHEAD(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	v := l.voucher(1, -time.Hour, time.Hour)
	for _, path := range []string{"/api/events?voucher=" + v, "/api/orders/" + l.order(v, "u") + "/events"} {
		if status, h, body := l.call("HEAD", path, "", "X-User-ID: u"); status != 405 || h.Get("Allow") != "GET" || body != "" {
			t.Errorf("%s: got %d, %v, %q, want 405 and no body", path, status, h, body)
		}
	}
	if got := l.srv.streams.count(); got != 0 {
		t.Errorf("got %v streams, want none", got)
	}
}

// listener is a connection to a reader, who may have hung up.
type listener struct {
	net.Conn
	mu    sync.Mutex
	sent  bytes.Buffer
	until time.Time
	gone  bool
}

func (w *listener) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return 0, errors.New("reset by peer")
	}
	return w.sent.Write(b)
}

func (w *listener) SetWriteDeadline(until time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = until
	return nil
}

// third is a gate by which two are ahead of everybody.
type third struct{ sale.Gate }

func (third) Position(context.Context, sale.Reservation) (int64, error) { return 2, nil }

func TestASilentStreamSaysNothingTwiceButShowsThatItLives(t *testing.T) {
	for _, tc := range []struct {
		name, first string // what is there to say at once
		tell        func(events, *stream) string
	}{
		{"of an order", "event: order\ndata: {\"orderId\":\"7\",\"status\":\"queued\",\"reason\":\"\",\"ahead\":2}\n\n", func(e events, st *stream) string {
			s := &Server{o: Options{Service: &sale.Service{Gate: third{}}}}
			return s.tellOrder(e, st, sale.Order{Reservation: sale.Reservation{OrderID: 7}, Status: sale.Queued}, nil, time.Hour)
		}},
		{"of vouchers", "", func(e events, st *stream) string {
			return tellScenes(e, st, sale.NewBoard(nil).Watch(1), time.Hour)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &listener{}
				ended := make(chan string, 1)
				go func() { ended <- tc.tell(events{bufio.NewWriter(w), w}, &stream{end: make(chan string, 1)}) }()
				time.Sleep(beatEvery)
				synctest.Wait()
				w.mu.Lock()
				if got, want := w.sent.String(), tc.first+":\n\n"; got != want {
					t.Errorf("got %q within %v, want %q", got, beatEvery, want)
				}
				if got, want := w.until, time.Now().Add(streamWrite); !got.Equal(want) {
					t.Errorf("got a reader who may take nothing until %v, want %v", got, want)
				}
				w.gone = true
				w.mu.Unlock()
				time.Sleep(beatEvery)
				synctest.Wait()
				select {
				case why := <-ended:
					if why != "" {
						t.Errorf("got the end %q for a reader who is gone, want none", why)
					}
				default:
					t.Fatal("the stream goes on for a reader who is gone")
				}
			})
		})
	}
}

// asked is a gate that notes about what it is asked.
type asked struct {
	sale.Gate
	mu  sync.Mutex
	ids []string
}

func (a *asked) Left(ctx context.Context, id sale.ID) (int64, bool, error) {
	a.mu.Lock()
	a.ids = append(a.ids, id.String())
	a.mu.Unlock()
	return a.Gate.Left(ctx, id)
}

func TestWhatNobodyWaitsForAnyMoreIsNotLookedAt(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	gate := &asked{Gate: l.gate}
	board := sale.NewBoard(gate)
	l.srv.o.Service.Board = board
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { board.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	over, refused, watched := l.voucher(1, -time.Hour, time.Hour), l.voucher(1, -time.Hour, time.Hour), l.voucher(1, -time.Hour, time.Hour)
	order := l.order(over, "u")
	l.read("/api/orders/"+order+"/events?wait=1ms", "X-User-ID: u").ends("deadline")
	if got := l.srv.o.Service.Results.Waiting(); got != 0 {
		t.Errorf("got %d orders that somebody waits for after the stream, want none", got)
	}
	l.read("/api/events?wait=1ms&voucher=" + over).ends("deadline")
	room := func(n int) {
		l.srv.streams.mu.Lock()
		defer l.srv.streams.mu.Unlock()
		l.srv.streams.most = n
	}
	room(0)
	for _, path := range []string{"/api/orders/" + order + "/events?wait=1ms", "/api/events?wait=1ms&voucher=" + refused} {
		if status, _, body := l.call("GET", path, "", "X-User-ID: u"); status != 503 {
			t.Errorf("%s: got %d %s, want 503", path, status, body)
		}
	}
	if got := l.srv.o.Service.Results.Waiting(); got != 0 {
		t.Errorf("got %d orders that somebody waits for after a refusal, want none", got)
	}
	room(1)
	l.read("/api/events?voucher=" + watched).next()
	// The second look from here on began after all that.
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		gate.mu.Lock()
		looks := strings.Split(strings.Join(gate.ids, " ")+" ", watched+" ")
		gate.mu.Unlock()
		if len(looks) > 4 {
			if got := strings.TrimSpace(looks[3]); got != "" {
				t.Errorf("got a gate that is asked about %s, want about %s alone", got, watched)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the gate was not asked four times within 20 s")
		}
	}
}
