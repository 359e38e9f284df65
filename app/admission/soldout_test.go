package admission_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/app/admission"
	"queuelab/app/sale"
)

// calls is how many scripts the server has run.
func calls(t *testing.T, c *redis.Client) string {
	t.Helper()
	stats, err := c.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(stats, "cmdstat_evalsha:calls=")
	n, _, _ := strings.Cut(after, ",")
	return n
}

// soldOut is a voucher whose only unit is u's, which the gate has just heard.
func soldOut(t *testing.T, g sale.Gate) sale.Voucher {
	t.Helper()
	v := open(1, nil)
	load(t, g, v)
	admit(t, g, reservation(v, 1, "u"), sale.Admitted, 1)
	admit(t, g, reservation(v, 2, "first"), sale.SoldOut, 0)
	return v
}

func TestWhatIsSoldOutIsNotAskedForAMoment(t *testing.T) {
	g, c := gate(t)
	v := soldOut(t, g)
	before := calls(t, c)
	known := 0
	for i := range 1000 {
		a, err := g.Click(t.Context(), sale.Click{Reservation: reservation(v, sale.ID(i+10), fmt.Sprint("late", i))})
		if err != nil || a.Verdict != sale.SoldOut {
			t.Fatalf("got %+v, %v, want sold out", a, err)
		}
		if a.FromMemory {
			known++
		}
	}
	if known == 0 {
		t.Errorf("got none of 1000 clicks answered from memory (%s calls, then %s)", before, calls(t, c))
	}
}

func TestWhoMayHaveAnOrderIsAskedForAlthoughAllIsGone(t *testing.T) {
	g, c := gate(t)
	for name, want := range map[string]struct {
		click sale.Click
		sale.Answer
	}{
		"the same click again": {sale.Click{Reservation: sale.Reservation{OrderID: 1, UserID: "u"}, Again: true}, admitted(1, 0)},
		"a click with a key":   {sale.Click{Reservation: sale.Reservation{OrderID: 5, UserID: "u"}, Key: "k"}, sale.Answer{Verdict: sale.AlreadyBought, Order: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			v := soldOut(t, g)
			other := admission.NewRedis(client(t, c.Options().Addr, time.Second)) // it sold nothing itself
			admit(t, other, reservation(v, 3, "second"), sale.SoldOut, 0)
			want.click.VoucherID = v.ID
			if got, err := other.Click(t.Context(), want.click); err != nil || got != want.Answer {
				t.Errorf("got %+v, %v, want %+v", got, err, want.Answer)
			}
		})
	}
}

func TestARefundOfAnotherInstanceIsSeenWithinAMoment(t *testing.T) {
	g, c := gate(t)
	other := admission.NewRedis(client(t, c.Options().Addr, time.Second))
	v := soldOut(t, g)
	if ok, err := other.Release(t.Context(), reservation(v, 1, "u")); err != nil || !ok {
		t.Fatalf("release: got %v, %v, want true", ok, err)
	}
	released := time.Now()
	for i := sale.ID(10); ; i++ {
		asked := time.Now()
		a, err := g.Click(context.Background(), sale.Click{Reservation: reservation(v, i, "v")})
		if err != nil {
			t.Fatal(err)
		}
		if a.Verdict == sale.Admitted {
			return
		}
		if !a.FromMemory || asked.Sub(released) > 100*time.Millisecond {
			t.Fatalf("got %+v %v after the refund, want an order", a, asked.Sub(released))
		}
	}
}
