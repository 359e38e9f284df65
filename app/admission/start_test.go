package admission_test

import (
	"context"
	"testing"
	"time"

	"queuelab/app/admission"
	"queuelab/app/sale"
)

// bySignal is a voucher that waits for its start signal.
func bySignal(v *sale.Voucher) { v.Signal = true }

var startCases = map[string]func(*testing.T, sale.Gate){
	"no click is taken before the signal, and every click after it": func(t *testing.T, g sale.Gate) {
		v := open(1, bySignal)
		load(t, g, v)
		r := reservation(v, 1, "u")
		admit(t, g, r, sale.NotStarted, 0)
		start(t, g, v, time.Now())
		admit(t, g, r, sale.Admitted, 1)
	},
	"a second signal changes nothing": func(t *testing.T, g sale.Gate) {
		v := open(2, bySignal)
		load(t, g, v)
		start(t, g, v, time.Now().Add(-time.Second))
		admit(t, g, reservation(v, 1, "u"), sale.Admitted, 1)
		start(t, g, v, time.Now().Add(time.Minute))
		admit(t, g, reservation(v, 2, "w"), sale.Admitted, 2)
		wantLeft(t, g, v, 0)
	},
	"a signal by a clock that is ahead opens now": func(t *testing.T, g sale.Gate) {
		v := open(1, bySignal)
		load(t, g, v)
		start(t, g, v, time.Now().Add(time.Minute))
		admit(t, g, reservation(v, 1, "u"), sale.Admitted, 1)
	},
	"a signal for a voucher that is not loaded loads nothing": func(t *testing.T, g sale.Gate) {
		v := open(1, bySignal)
		start(t, g, v, time.Now())
		admit(t, g, reservation(v, 1, "u"), sale.NotLoaded, 0)
		load(t, g, v)
		admit(t, g, reservation(v, 1, "u"), sale.NotStarted, 0)
		start(t, g, v, time.Now())
		admit(t, g, reservation(v, 1, "u"), sale.Admitted, 1)
	},
	"a voucher that was opened is loaded open": func(t *testing.T, g sale.Gate) {
		v := open(1, func(v *sale.Voucher) { v.Signal, v.Opened = true, time.Now().Add(-time.Minute) })
		load(t, g, v)
		admit(t, g, reservation(v, 1, "u"), sale.Admitted, 1)
	},
	"a voucher without a signal has ended at its end": func(t *testing.T, g sale.Gate) {
		v := open(1, func(v *sale.Voucher) { v.Signal, v.End = true, time.Now().Add(-time.Minute) })
		load(t, g, v)
		admit(t, g, reservation(v, 1, "u"), sale.HasEnded, 0)
	},
	"the place in the line counts older orders of the voucher": func(t *testing.T, g sale.Gate) {
		v, other := open(5, nil), open(5, nil)
		load(t, g, v)
		load(t, g, other)
		var rs []sale.Reservation
		for i, user := range []string{"a", "b", "c"} {
			r := reservation(v, sale.ID(9_000_000_000_000_000_000+i), user) // beyond the doubles
			admit(t, g, r, sale.Admitted, r.OrderID)
			rs = append(rs, r)
		}
		admit(t, g, reservation(other, 5, "d"), sale.Admitted, 5)
		for i, r := range rs {
			wantPosition(t, g, r, int64(i))
		}
		if err := g.Settle(t.Context(), rs[0]); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the picture is taken again", func() bool {
			n, err := g.(sale.Positioner).Position(t.Context(), rs[2])
			return err == nil && n == 1
		})
	},
}

func start(t *testing.T, g sale.Gate, v sale.Voucher, at time.Time) {
	t.Helper()
	if err := g.(sale.Opener).Open(t.Context(), sale.Signal{Voucher: v.ID, Opened: at}); err != nil {
		t.Fatalf("open: %v", err)
	}
}

func wantPosition(t *testing.T, g sale.Gate, r sale.Reservation, want int64) {
	t.Helper()
	if got, err := g.(sale.Positioner).Position(t.Context(), r); err != nil || got != want {
		t.Errorf("got position %d of order %v, %v, want %d", got, r.OrderID, err, want)
	}
}

func TestStartsInMemory(t *testing.T) {
	for name, tc := range startCases {
		t.Run(name, func(t *testing.T) { tc(t, admission.NewMemory(nil)) })
	}
}

func TestStartsInRedis(t *testing.T) {
	g, c := gate(t)
	for name, tc := range startCases {
		t.Run(name, func(t *testing.T) { tc(t, g) })
	}
	t.Run("signals need no script that is known already", func(t *testing.T) {
		v := open(1, bySignal)
		load(t, g, v)
		if err := c.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		start(t, g, v, time.Now())
		admit(t, g, reservation(v, 1, "u"), sale.Admitted, 1)
	})
	t.Run("a line of several pages is counted whole", func(t *testing.T) {
		v := open(5000, nil)
		load(t, g, v)
		var last sale.Reservation
		for i := range 2500 {
			last = reservation(v, sale.ID(i+1), "u"+sale.ID(i+1).String())
			if got, _, err := g.Admit(t.Context(), last); err != nil || got != sale.Admitted {
				t.Fatalf("got %v, %v", got, err)
			}
		}
		wantPosition(t, g, last, 2499)
	})
	t.Run("a Redis that does not answer is an error, and no picture", func(t *testing.T) {
		v := open(1, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.Position(ctx, reservation(v, 2, "u")); err == nil {
			t.Error("got no error")
		}
		wantPosition(t, g, reservation(v, 2, "u"), 0)
	})
}
