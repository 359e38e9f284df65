package lessons

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync/atomic"
	"time"

	gates "queuelab/app/admission" // admission is a topic here
	"queuelab/app/sale"
	"queuelab/bench/learn"
	"queuelab/queue"
)

// gate is the service's gate on the lesson's Redis, behind the proxy, with one
// voucher on sale.
type gate struct {
	*gates.Redis
	stand   *learn.Stand
	voucher sale.Voucher
	orders  atomic.Int64 // so many were asked for
}

// openGate puts a new voucher on sale; change may alter it before.
func openGate(s *learn.Stand, units int64, change func(*sale.Voucher)) *gate {
	u, err := url.Parse(s.Broker("redis").URL())
	s.Must(err)
	u.Host = s.Proxy("redis").Addr()
	var g *gate
	s.Quietly(func() { g = openGateAt(s, u.String(), units, change) })
	return g
}

// openGateAt is openGate by the URL of its Redis, such as that of a cluster.
func openGateAt(s *learn.Stand, redisURL string, units int64, change func(*sale.Voucher)) *gate {
	redis, err := gates.OpenRedis(s.Context(), redisURL)
	s.Must(err)
	s.After(redis.Close)
	now := time.Now()
	g := &gate{Redis: redis, stand: s, voucher: sale.Voucher{
		ID: sale.ID(1 + rand.Int64N(1<<50)), Title: s.Name("voucher"), Stock: units, Left: units,
		Begin: now.Add(-time.Hour), End: now.Add(time.Hour), PerUser: 1, Buckets: 1, Created: now,
	}}
	if change != nil {
		change(&g.voucher)
	}
	deleteAfter(s, gateKeys(g.voucher.ID.String())...)
	g.load()
	return g
}

// deleteAfter leaves no such keys behind in a Redis that others share.
func deleteAfter(s *learn.Stand, keys ...string) {
	unseen := s.RedisUnseen()
	s.After(func() error { return unseen.Del(context.WithoutCancel(s.Context()), keys...).Err() })
}

// enqueues has the gate put each order into a stream, in the same script.
func (g *gate) enqueues() (how *queue.ScriptEnqueue) {
	s := g.stand
	s.Quietly(func() {
		var err error
		how, err = s.Queue("redis-streams").(queue.ScriptEnqueuer).ScriptEnqueue(s.Context())
		s.Must(err)
		s.Must(g.EnqueueInto(s.Context(), how))
	})
	return how
}

// load opens the gate for the voucher, as the service does where it is not open.
func (g *gate) load() {
	_, err := g.Load(g.stand.Context(), g.voucher)
	g.stand.Must(err)
}

// key is one of the gate's in Redis; see package admission.
func (g *gate) key(of string) string { return gateKey(g.voucher.ID.String(), of) }

func gateKey(voucher, of string) string { return fmt.Sprintf("seckill:{%s}:%s", voucher, of) }

// gateKeys are all of a voucher's.
func gateKeys(voucher string) (keys []string) {
	for _, of := range []string{"sale", "buyers", "marks", "due", "keys"} {
		keys = append(keys, gateKey(voucher, of))
	}
	return keys
}

// buyer is a name that holds the lesson's id.
func (g *gate) buyer(i int) string { return fmt.Sprintf("buyer%d-%s", i, g.stand.ID) }

// order is a click's, with a new id each time. It may be called at any time.
func (g *gate) order(buyer string) sale.Reservation {
	return sale.Reservation{
		OrderID: g.voucher.ID + sale.ID(g.orders.Add(1)), VoucherID: g.voucher.ID, UserID: buyer, AtMillis: time.Now().UnixMilli(),
	}
}

// ask clicks, and may be called at any time.
func (g *gate) ask(buyer string) (sale.Reservation, sale.Verdict, error) {
	r := g.order(buyer)
	a, err := g.Click(g.stand.Context(), sale.Click{Reservation: r})
	return r, a.Verdict, err
}

// click is ask for a lesson that goes on only with an answer.
func (g *gate) click(buyer string) (sale.Reservation, sale.Verdict) {
	r, v, err := g.ask(buyer)
	g.stand.Must(err)
	return r, v
}

// rush has so many buyers click at once, and counts those who are admitted.
func (g *gate) rush(buyers int) int64 {
	var admitted atomic.Int64
	g.stand.Together(buyers, func(i int) error {
		_, v, err := g.ask(g.buyer(i))
		if v == sale.Admitted {
			admitted.Add(1)
		}
		return err
	})
	return admitted.Load()
}

// left is how many units the gate has.
func (g *gate) left() int64 {
	n, loaded, err := g.Left(g.stand.Context(), g.voucher.ID)
	g.stand.Must(err)
	if !loaded {
		g.stand.Fail("the voucher is not loaded")
	}
	return n
}
