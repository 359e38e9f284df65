package trial

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"queuelab/bench/ledger"
	"queuelab/bench/shop"
	"queuelab/queue"
)

// saleOutcome is one sale, as the buyers and the database saw it.
type saleOutcome struct {
	Sale
	Sent, Queued, Refused, Unanswered int64
	QueuedAtKill                      int64 // buyers told "queued" by then
	RecoveryMillis                    int64 // service killed to ready again
	PerSecond                         float64

	caps queue.Capabilities
}

// clicks is what happened at the door.
type clicks struct {
	mu     sync.Mutex
	orders map[int]string          // buyer to the order that it was told
	first  map[int]time.Time       // buyer to its first click
	answer *hdrhistogram.Histogram // ns from a buyer's first click to its answer

	sent, queued, refused, unanswered atomic.Int64

	failed   atomic.Int64 // told "queued", and then that nothing is left
	answered atomic.Int64 // when the last buyer got the first answer, as of ledger.Now
}

// sell runs one sale over the service: every buyer clicks once, and once more
// after each click that got no answer; then everyone who was told "queued"
// waits for the final answer.
func (l *Lab) sell(ctx context.Context, s Setting, faultName string, p SaleParams, seed uint64) (*saleOutcome, map[string]string, error) {
	svc, err := l.newService(ctx, s, p.Connections)
	if err != nil {
		return nil, nil, err
	}
	defer svc.Close()
	if err := svc.start(ctx); err != nil {
		return nil, nil, err
	}
	voucher, err := svc.client.Voucher(ctx, p.Stock)
	if err != nil {
		return nil, nil, err
	}
	out := &saleOutcome{Sale: Sale{Buyers: p.Buyers, Stock: p.Stock}, caps: svc.caps}
	door := &clicks{orders: map[int]string{}, first: map[int]time.Time{}, answer: newHistogram()}
	began := ledger.Now()
	recovered := make(chan error, 1)
	if faultName == FaultServiceKill {
		go func() {
			recovered <- svc.killMidSale(ctx, door, int64(p.Stock)/3, out)
		}()
	} else {
		recovered <- nil
	}
	buyers := rand.New(rand.NewPCG(seed, 0)).Perm(p.Buyers)
	next := atomic.Int64{}
	var wg sync.WaitGroup
	for range p.Connections {
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= int64(len(buyers)) || ctx.Err() != nil {
					return
				}
				door.click(ctx, svc.client, voucher, buyers[i]+1, time.Now())
			}
		})
	}
	wg.Wait()
	out.PerSecond = float64(door.sent.Load()) / (float64(ledger.Now()-began) / 1e9)
	select {
	case err := <-recovered:
		if err != nil {
			return nil, nil, err
		}
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	out.Sent, out.Queued, out.Refused, out.Unanswered = door.sent.Load(), door.queued.Load(), door.refused.Load(), door.unanswered.Load()
	deadline := time.Now().Add(p.ResultDeadline)
	door.awaitResults(ctx, svc.client, p.Connections, deadline, &out.Sale)
	if err := svc.audit(ctx, voucher, door.orders, deadline, &out.Sale); err != nil {
		return nil, nil, err
	}
	if out.AnswerMicros = percentilesOf(door.answer); out.Sold > 0 {
		committed, _, err := svc.committed(ctx, voucher, door.first)
		if err != nil {
			return nil, nil, err
		}
		out.CommittedMicros = percentilesOf(committed)
	}
	settings, err := svc.settings(ctx)
	return out, settings, err
}

// click buys, and clicks again while no answer comes, as a person would. began is
// when the buyer wanted to.
func (d *clicks) click(ctx context.Context, c *shop.Client, voucher string, user int, began time.Time) {
	d.mu.Lock()
	d.first[user] = began
	d.mu.Unlock()
	answered := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		_ = d.answer.RecordValue(time.Since(began).Nanoseconds()) // half a minute at most: in range
		d.answered.Store(ledger.Now())
	}
	deadline := began.Add(30 * time.Second)
	for ctx.Err() == nil && time.Now().Before(deadline) {
		d.sent.Add(1)
		status, a, err := c.Buy(ctx, voucher, user)
		switch {
		case err != nil:
			d.unanswered.Add(1)
		case status == http.StatusAccepted:
			d.queued.Add(1)
			d.mu.Lock()
			d.orders[user] = a.OrderID
			d.mu.Unlock()
			answered()
			return
		case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
			d.refused.Add(1) // busy: told to come again
		default:
			d.refused.Add(1)
			answered()
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// awaitResults gives everyone who was told "queued" the same deadline.
func (d *clicks) awaitResults(ctx context.Context, c *shop.Client, connections int, deadline time.Time, out *Sale) {
	type told struct {
		user  int
		order string
	}
	todo := make(chan told)
	var waiting, lost atomic.Int64
	var wg sync.WaitGroup
	for range connections {
		wg.Go(func() {
			for t := range todo {
				switch c.Result(ctx, t.order, t.user, deadline) {
				case "queued":
					waiting.Add(1)
				case "missing":
					lost.Add(1)
				case "failed":
					d.failed.Add(1)
				}
			}
		})
	}
	for user, order := range d.orders {
		todo <- told{user, order}
	}
	close(todo)
	wg.Wait()
	out.Waiting, out.LostOrders = int(waiting.Load()), int(lost.Load())
}

func randomToken() string { return crand.Text() }

// judgeSale judges what the business saw. Overselling and a second order of one
// buyer are wrong under every fault. Losing, underselling and leaving people
// waiting are wrong where nothing was killed, and where either the oracle or the
// queue itself says that no order is lost.
func judgeSale(row Row, lossy bool, c *Cell) (verdict, note string) {
	s := c.Sale
	lossAllowed := lossy && row.Lost == anything
	var wrong []string
	say := func(n int, what string) {
		if n != 0 {
			wrong = append(wrong, fmt.Sprintf("%d %s", n, what))
		}
	}
	say(s.Oversold, "oversold")
	say(s.Double, "second orders of one buyer")
	if !lossAllowed {
		say(s.LostOrders, "orders lost")
		say(s.Undersold, "undersold")
		say(s.Waiting, "buyers left waiting")
	}
	if len(wrong) > 0 {
		return VerdictContradiction, strings.Join(wrong, ", ") + " over " + plural(c.Valid, "sale")
	}
	if lossAllowed && s.LostOrders == 0 {
		return VerdictAsExpected, "no order was lost in " + plural(c.Valid, "sale") + ", though this queue does not promise that: " + row.Why
	}
	if s.LostOrders > 0 {
		return VerdictAsExpected, fmt.Sprintf("%d orders lost in %s: %s", s.LostOrders, plural(c.Valid, "sale"), row.Why)
	}
	return VerdictAsExpected, "no order lost in " + plural(c.Valid, "sale")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
