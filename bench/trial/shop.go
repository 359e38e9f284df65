package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"queuelab/bench/broker"
	"queuelab/bench/ledger"
	"queuelab/bench/load"
	"queuelab/bench/shop"
	"queuelab/queue"
)

// SaleSpec is one sale to compare with others: the same buyers click at the same
// moments, whatever sells to them.
type SaleSpec struct {
	Setting Setting // its queue; with a way that has none, nothing
	Way     Way
	Zero    bool // SQLite, and admission in the service's process: nothing is installed

	Buyers, Stock int
	Rate          float64 // clicks a second, at moments by chance (Poisson)
	Connections   int
	Seed          uint64
	Deadline      time.Duration // for the final answers, once everyone has clicked
}

// SaleRow is what became of it. Durations are in microseconds, from the moment
// at which the buyer was due to click.
type SaleRow struct {
	Way     string `json:"way"`
	Setting string `json:"setting"` // backend/setting; "": there is no queue
	// Invalid says why the sale says nothing, or what it did wrong; none: it is
	// valid, and sold each unit once.
	Invalid []string `json:"invalid"`
	Skipped string   `json:"skipped,omitempty"` // why it was not held

	Sale
	Failed     int   `json:"failed"`     // told "queued", and then that nothing is left
	Refused    int64 `json:"refused"`    // answers that were no, or not yet
	Unanswered int64 `json:"unanswered"` // clicks without an answer, which were repeated

	OfferedPerSecond float64 `json:"offeredPerSecond"` // clicks
	OrdersPerSecond  float64 `json:"ordersPerSecond"`  // sold, from the first click to the last commit; 0: not known
	// BehindMillis is how long after the last click was due the last buyer got the
	// first answer: beyond a second a queue of clicks grew, and the latencies are
	// those of a service that cannot take so many.
	BehindMillis int64 `json:"behindMillis"`

	Database *DatabaseLoad     `json:"database,omitempty"` // nil: not known
	Settings map[string]string `json:"settings"`
}

// Valid reports whether the sale was held and did nothing wrong.
func (r SaleRow) Valid() bool { return r.Skipped == "" && len(r.Invalid) == 0 }

// HoldSale runs one sale over the real service. The error is that of a sale that
// could not be held at all.
func (l *Lab) HoldSale(ctx context.Context, s SaleSpec) (SaleRow, error) {
	row := SaleRow{Way: s.Way.Name, Invalid: []string{}, Sale: Sale{Buyers: s.Buyers, Stock: s.Stock}}
	if !s.Way.NoQueue {
		row.Setting = s.Setting.String()
	} else {
		s.Setting = Setting{}
	}
	svc, err := l.buildService(ctx, s.Setting, s.Way, s.Zero, s.Connections)
	if errors.Is(err, broker.ErrUnavailable) || errors.Is(err, errNoScript) {
		row.Skipped = err.Error()
		return row, nil
	}
	if err != nil {
		return row, err
	}
	defer svc.Close()
	count, err := svc.startCounted(ctx)
	if err != nil {
		return row, err
	}
	defer count.close()
	voucher, err := svc.client.Voucher(ctx, s.Stock)
	if err != nil {
		return row, err
	}
	door, stats, began, err := s.rush(ctx, svc.client, voucher)
	if err != nil {
		return row, err
	}
	row.Refused, row.Unanswered = door.refused.Load(), door.unanswered.Load()
	row.OfferedPerSecond, row.AnswerMicros = stats.Offered, percentilesOf(door.answer)
	row.BehindMillis = max(0, (door.answered.Load()-began-int64(stats.Planned))/1e6)
	if held, why := stats.Held(); !held {
		row.Invalid = append(row.Invalid, "the buyers did not come as planned: "+why)
	}
	deadline := time.Now().Add(s.Deadline)
	door.awaitResults(ctx, svc.client, s.Connections, deadline, &row.Sale)
	told := time.Duration(ledger.Now() - began)
	row.Failed = int(door.failed.Load())
	if err := svc.audit(ctx, voucher, door.orders, deadline, &row.Sale); err != nil {
		return row, err
	}
	if ctx.Err() != nil {
		return row, ctx.Err()
	}
	if row.Settings, err = svc.settings(ctx); err != nil {
		return row, err
	}
	svc.process.Stop()
	if row.Database, err = count.stop(ctx, told, row.Sold); err != nil {
		return row, err
	}
	committed, last, err := svc.committed(ctx, voucher, door.first)
	if err != nil {
		return row, err
	}
	row.CommittedMicros = percentilesOf(committed)
	if took := last.Sub(door.earliest()); !last.IsZero() && took > 0 {
		row.OrdersPerSecond = float64(row.Sold) / took.Seconds()
	}
	row.Invalid = append(row.Invalid, row.wrong()...)
	return row, nil
}

// wrong says what no sale may do, whatever its queue promises: nothing was killed.
func (s Sale) wrong() (wrong []string) {
	for _, x := range []struct {
		n    int
		what string
	}{
		{s.Oversold, "oversold"}, {s.Undersold, "undersold"}, {s.Double, "second orders of one buyer"},
		{s.LostOrders, "orders lost"}, {s.Waiting, "buyers left waiting"},
	} {
		if x.n != 0 {
			wrong = append(wrong, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	return wrong
}

// rush has every buyer click when it is due. began is the moment of the plan's
// start, as of ledger.Now.
func (s SaleSpec) rush(ctx context.Context, c *shop.Client, voucher string) (door *clicks, stats load.Stats, began int64, err error) {
	door = &clicks{orders: map[int]string{}, first: map[int]time.Time{}, answer: newHistogram()}
	pacer := load.Poisson(s.Rate, s.Seed)
	buyers := rand.New(rand.NewPCG(s.Seed, 0)).Perm(s.Buyers)
	began = ledger.Now()
	stats, err = load.Run(ctx, load.Generator{
		Pacer: pacer, Count: uint64(s.Buyers), Start: began, Timeout: time.Minute,
		MaxInFlight: s.Buyers, // nobody waits for somebody else's answer before clicking
		Message:     func(n uint64) queue.Message { return queue.Message{ID: strconv.FormatUint(n, 10)} },
		Publisher: clicking(func(n int) {
			due := time.Now().Add(time.Duration(began + int64(pacer.Due(uint64(n))) - ledger.Now()))
			door.click(ctx, c, voucher, buyers[n]+1, due)
		}),
	})
	if err == nil {
		err = ctx.Err()
	}
	// As the plan counts: from the first click.
	return door, stats, began + int64(pacer.Due(0)), err
}

// earliest is when the first buyer was due to click.
func (d *clicks) earliest() (first time.Time) {
	for _, t := range d.first {
		if first.IsZero() || t.Before(first) {
			first = t
		}
	}
	return first
}

// clicking lets the generator of messages send clicks.
type clicking func(n int)

// Publish implements queue.Publisher.
func (c clicking) Publish(_ context.Context, msgs ...queue.Message) error {
	for _, m := range msgs {
		n, err := strconv.Atoi(m.ID)
		if err != nil {
			return fmt.Errorf("click: %w", err)
		}
		c(n)
	}
	return nil
}

// Close implements queue.Publisher.
func (c clicking) Close() error { return nil }

// SaleOrder sorts rows as tables show them: by the order of the ways, and then of
// the settings.
func SaleOrder(a, b SaleRow) int {
	return cmp.Or(cmp.Compare(rankOf(Ways(), func(w Way) string { return w.Name }, a.Way), rankOf(Ways(), func(w Way) string { return w.Name }, b.Way)),
		cmp.Compare(rankOf(Settings(), Setting.String, a.Setting), rankOf(Settings(), Setting.String, b.Setting)),
		strings.Compare(a.Setting, b.Setting))
}

func rankOf[T any](all []T, name func(T) string, want string) int {
	for i, x := range all {
		if name(x) == want {
			return i
		}
	}
	return len(all)
}
