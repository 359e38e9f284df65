package door

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func captchaOf(t testing.TB) *Captcha {
	return &Captcha{When: Always, Keys: keysOf(t, 1), Once: &LocalOnce{}, TTL: time.Minute}
}

// solve adds what a riddle in text asks for.
func solve(t testing.TB, r Riddle) string {
	t.Helper()
	var a, b int
	if _, err := fmt.Sscanf(r.Text, "%d + %d", &a, &b); err != nil {
		t.Fatalf("got %q, want a sum: %v", r.Text, err)
	}
	return fmt.Sprint(a + b)
}

func TestACaptchaIsSolvedOnceByWhomItWasFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := captchaOf(t)
		ask := func() Riddle {
			r, err := c.Ask("alice", 7, true)
			if err != nil || r.Picture != nil || r.DataURL() != "" {
				t.Fatalf("got %+v, %v, want a text", r, err)
			}
			return r
		}
		check := func(r Riddle, answer string) error { return c.Check(t.Context(), r.Ticket, answer, "alice", 7) }
		r := ask()
		if err := check(r, " "+solve(t, r)+" "); err != nil {
			t.Errorf("got %v for the answer", err)
		}
		if err := check(r, solve(t, r)); !errors.Is(err, ErrAnswer) {
			t.Errorf("got %v for the answer again, want %v", err, ErrAnswer)
		}
		r = ask()
		if err := check(r, "1"); !errors.Is(err, ErrAnswer) {
			t.Errorf("got %v for a wrong answer, want %v", err, ErrAnswer)
		}
		if err := check(r, solve(t, r)); !errors.Is(err, ErrAnswer) {
			t.Errorf("got %v for a second guess, want %v", err, ErrAnswer)
		}
		r = ask()
		if err := c.Check(t.Context(), r.Ticket, solve(t, r), "bob", 7); !errors.Is(err, ErrAnswer) {
			t.Errorf("got %v for another buyer, want %v", err, ErrAnswer)
		}
		if err := c.Check(t.Context(), r.Ticket, solve(t, r), "alice", 8); !errors.Is(err, ErrAnswer) {
			t.Errorf("got %v for another voucher, want %v", err, ErrAnswer)
		}
		if err := check(r, solve(t, r)); err != nil {
			t.Errorf("got %v: others used the ticket up", err)
		}
		r = ask()
		time.Sleep(time.Minute)
		if err := check(r, solve(t, r)); !errors.Is(err, ErrAnswer) {
			t.Errorf("got %v a minute later, want %v", err, ErrAnswer)
		}
		path, _ := (&Paths{Keys: c.Keys, TTL: time.Hour}).Issue("alice", 7)
		if err := c.Check(t.Context(), path, "", "alice", 7); !errors.Is(err, ErrAnswer) {
			t.Errorf("got %v for another token of ours, want %v", err, ErrAnswer)
		}
	})
}

func TestATicketDoesNotHoldItsAnswer(t *testing.T) {
	c := captchaOf(t)
	r, err := c.Ask("alice", 7, true)
	if err != nil {
		t.Fatal(err)
	}
	said, err := c.Keys.Open(useTicket, r.Ticket)
	if err != nil {
		t.Fatal(err)
	}
	p := strings.Split(said, " ")
	if got := code(keysOf(t, 2).all[keysOf(t, 2).id], p[2], solve(t, r)); got == p[3] {
		t.Error("the code of the answer can be made without our key")
	}
	if got := code(c.Keys.all[c.Keys.id], p[2], solve(t, r)); got != p[3] {
		t.Errorf("got %q, want %q", got, p[3])
	}
}

func TestACaptchaComesWithTheRushAndGoesAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Captcha{When: Auto, Above: 3}
		for i, want := range []bool{false, false, false, true, true} {
			if got := c.Needed(); got != want {
				t.Errorf("path %d in one second: got %v, want %v", i+1, got, want)
			}
		}
		time.Sleep(calm - time.Second)
		if !c.Needed() {
			t.Error("got none within ten seconds of the rush")
		}
		time.Sleep(time.Second)
		if c.Needed() {
			t.Error("got one when the rush was over")
		}
		for range 30 { // three a second
			time.Sleep(time.Second/3 + 1)
			if c.Needed() {
				t.Fatal("got one at three in a second")
			}
		}
		if c = (&Captcha{When: Always, Above: 1000}); !c.Needed() {
			t.Error("got none although it is always on")
		}
	})
}

func TestAPictureIsAPNGOfItsOwn(t *testing.T) {
	c := captchaOf(t)
	seen := map[string]bool{}
	for i := range 20 {
		r, err := c.Ask("alice", 7, false)
		if err != nil || r.Text != "" || !strings.HasPrefix(r.DataURL(), "data:image/png;base64,") {
			t.Fatalf("got %v, text %q, want a picture", err, r.Text)
		}
		img, err := png.Decode(bytes.NewReader(r.Picture))
		if err != nil || img.Bounds().Dx() != pictureWidth || img.Bounds().Dy() != pictureHeight || len(r.Picture) > 8<<10 {
			t.Fatalf("got %d bytes, %v", len(r.Picture), err)
		}
		if seen[string(r.Picture)] {
			t.Error("got the same picture twice")
		}
		seen[string(r.Picture)] = true
		if err := c.Check(t.Context(), r.Ticket, "abcde", "alice", 7); !errors.Is(err, ErrAnswer) {
			t.Errorf("got %v for letters", err)
		}
		// For people: QUEUELAB_PICTURES=DIR keeps them.
		if dir := os.Getenv("QUEUELAB_PICTURES"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("captcha-%d.png", i)), r.Picture, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Each digit differs from each other one in several of its dots, so that a
// smeared one can be told.
func TestDigitsCanBeToldApart(t *testing.T) {
	rows := strings.Split(strings.TrimSpace(font), "\n")
	if len(rows) != 7 {
		t.Fatalf("got %d rows, want 7", len(rows))
	}
	for a := byte('0'); a <= '9'; a++ {
		for b := a + 1; b <= '9'; b++ {
			differ := 0
			for y := range 7 {
				for x := range 5 {
					if ink(rows, a, float64(x), float64(y)) != ink(rows, b, float64(x), float64(y)) {
						differ++
					}
				}
			}
			if differ < 3 {
				t.Errorf("%c and %c differ in %d dots", a, b, differ)
			}
		}
	}
}

func TestATicketIsUsedOnceAmongAllInstances(t *testing.T) {
	c := client(t)
	shared := []Once{&SharedOnce{Client: c}, &SharedOnce{Client: c}}
	local := &LocalOnce{}
	for name, of := range map[string][]Once{"shared": shared, "local": {local, local}} {
		t.Run(name, func(t *testing.T) {
			var firsts atomic.Int64
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					first, err := of[i%2].First(t.Context(), "nonce", time.Minute)
					if err != nil {
						t.Error(err)
					}
					if first {
						firsts.Add(1)
					}
				})
			}
			wg.Wait()
			if got := firsts.Load(); got != 1 {
				t.Errorf("got %d first uses, want 1", got)
			}
			if first, err := of[0].First(t.Context(), "other", time.Minute); !first || err != nil {
				t.Errorf("got %v, %v for another ticket", first, err)
			}
		})
	}
	if ttl, err := c.PTTL(t.Context(), "seckill:once:{nonce}").Result(); err != nil || ttl <= 0 || ttl > time.Minute {
		t.Errorf("got a key that lives for %v, %v, want a minute at most", ttl, err)
	}
	c.Close()
	if _, err := shared[0].First(t.Context(), "late", time.Minute); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v without Redis, want %v", err, ErrBusy)
	}
}

func TestUsedTicketsAreForgottenWhenTheyHaveExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &LocalOnce{}
		for i := range maxUsed {
			if first, err := o.First(context.Background(), fmt.Sprint(i), time.Minute); !first || err != nil {
				t.Fatalf("ticket %d: got %v, %v", i, first, err)
			}
		}
		if first, err := o.First(context.Background(), "more", time.Minute); first || !errors.Is(err, ErrBusy) {
			t.Errorf("got %v, %v for one too many, want %v", first, err, ErrBusy)
		}
		time.Sleep(time.Minute)
		if first, err := o.First(context.Background(), "more", time.Minute); !first || err != nil {
			t.Errorf("got %v, %v a minute later", first, err)
		}
		if len(o.until) != 1 {
			t.Errorf("got %d tickets, want those that can still be used", len(o.until))
		}
	})
}

func FuzzTickets(f *testing.F) {
	c := captchaOf(f)
	r, err := c.Ask("alice", 7, true)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(r.Ticket, "1", "7 99999999999999 n c alice")
	f.Add("..", "", "     ")
	f.Fuzz(func(t *testing.T, ticket, answer, said string) {
		if err := c.Check(t.Context(), ticket, answer, "alice", 7); err == nil && (ticket != r.Ticket || strings.TrimSpace(answer) != solve(t, r)) {
			t.Errorf("%q solves %q", answer, ticket)
		}
		// Even with a ticket that we signed, the answer needs its code.
		if err := c.Check(t.Context(), c.Keys.Seal(useTicket, said), answer, "alice", 7); err == nil {
			t.Errorf("%q solves a ticket that says %q", answer, said)
		}
	})
}
