package lessons

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/app/worker"
	"queuelab/bench/learn"
	"queuelab/queue"
)

func poison() learn.Lesson {
	const buyers = 6 // the first one's order is the poison
	return learn.Lesson{
		Number: 23, Name: "poison-message", Topic: learn.RabbitMQ,
		Question: learn.Text{
			EN: "One order can never be handled, and its consumer gives it back to the queue each time. What happens, and what should?",
			ZH: "有一条消息永远处理不了，消费者每次都 nack 放回队列，会怎样？应该怎么处理？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "The broker brings it back after a while, and drops it after some attempts.", ZH: "broker 过一会儿再投递，几次之后丢弃。"},
				If: learn.Conditions{"naive-tries": learn.AtMost(20)}},
			{Text: learn.Text{EN: "It goes to the end of the queue, and the others are handled meanwhile.", ZH: "它排到队尾，其他消息照常处理。"},
				If: learn.Conditions{"naive-tries": learn.AtLeast(50), "naive-good": learn.Is(buyers - 1)}},
			{Text: learn.Text{EN: "It comes back at once and for ever, at the head of the queue, where it blocks those behind it.", ZH: "它立刻回到队头，无限循环，还堵住后面的消息。"},
				If: learn.Conditions{"naive-tries": learn.AtLeast(50), "naive-good": learn.Is(0)}},
		},
		Right: 2,
		Needs: []learn.Need{{Kind: "rabbitmq"}, {Kind: "redis"}},
		Takes: 2 * time.Second,
		Try: func(s *learn.Stand) {
			g := openGate(s, buyers, nil)
			var orders []queue.Message
			var numbers []sale.ID
			s.Step("Six buyers take the last six units at the gate.", "六个买家在准入处抢走最后六件。")
			for i := range buyers {
				r, _ := g.click(g.buyer(i))
				orders = append(orders, queue.Message{ID: r.OrderID.String(), Key: r.UserID, Body: r.Encode()})
				numbers = append(numbers, r.OrderID)
			}
			s.Count("left-before", g.left(), "units left at the gate before", "处理前准入处剩余库存")

			s.Step("A consumer with prefetch=1 gives the first order back each time it fails, for one second.", "prefetch=1 的消费者，第一条每次失败就放回，持续一秒。")
			q := s.Queue("rabbitmq", "settle=0s", "prefetch=1")
			p := s.Publisher(q)
			s.Must(p.Publish(s.Context(), orders[0])) // the poison is at the head
			s.Must(p.Publish(s.Context(), orders[1:]...))
			tries, good := giveBack(s, s.Consumer(q), orders[0].ID, time.Second)
			s.Count("naive-tries", tries, "deliveries of the poison in one second, given back at once", "立刻放回时，毒消息一秒内的投递次数")
			s.Count("naive-good", good, "of the five others handled meanwhile", "期间处理的另外五条")

			s.Step("The same orders, and the service's own worker with three attempts.", "同样的订单，换成我们服务自己的 worker，最多三次。")
			q = s.Queue("rabbitmq", "settle=0s")
			s.Must(s.Publisher(q).Publish(s.Context(), orders...))
			db, err := store.Open(s.Context(), "sqlite:"+filepath.Join(s.Dir(), "orders.db"))
			s.Must(err)
			s.After(db.Close)
			s.Must(db.CreateVoucher(s.Context(), g.voucher))
			bad := &refuses{Store: db, order: numbers[0]}
			stop := work(s, &worker.Worker{
				Store: bad, Gate: g, Results: sale.NewResults(db, func(error) {}), Observer: sale.Unobserved{},
				Log: slog.New(slog.DiscardHandler), Lanes: 1, Batch: 1, MaxAttempts: 3, Drain: time.Second,
			}, q)
			count := func(status sale.Status) (n int64) {
				all, err := db.Orders(s.Context(), numbers...)
				s.Must(err)
				for _, o := range all {
					if o.Status == status {
						n++
					}
				}
				return n
			}
			s.Eventually("every order to be decided", 10*time.Second, func() bool {
				return count(sale.Confirmed)+count(sale.Failed) == buyers
			})
			stop()
			letters, err := db.DeadLetters(s.Context())
			s.Must(err)
			s.Count("worker-tries", bad.tries.Load(), "attempts at the poison by the worker", "worker 处理毒消息的次数")
			s.Count("confirmed", count(sale.Confirmed), "other orders confirmed", "其他确认的订单")
			s.Count("failed", count(sale.Failed), "order that failed, so that its buyer is told", "判为失败、会告知买家的订单")
			s.Count("letters", letters, "kept as a dead letter", "留作死信")
			s.Count("left-after", g.left(), "unit back at the gate, for the next buyer", "归还到准入处的库存")
		},
		Expect: learn.Conditions{
			"left-before": learn.Is(0), "worker-tries": learn.Between(3, 5), "confirmed": learn.Is(buyers - 1),
			"failed": learn.Is(1), "letters": learn.Is(1), "left-after": learn.Is(1),
		},
		Why: learn.Text{
			EN: "A message that is given back to a classic queue returns to its place, and nobody counts, so the poison came {naive-tries} times in a second, and {naive-good} of those behind it were handled. Our worker counts attempts and pauses between them: it gave up after {worker-tries}. The {confirmed} others were confirmed, the poison was kept as {letters} dead letter, its order failed, and its unit went back to the gate: {left-after} left.",
			ZH: "放回经典队列的消息回到原位，也没人计数，所以毒消息一秒来了 {naive-tries} 次，它后面的处理了 {naive-good} 条。我们的 worker 会计数并退避：{worker-tries} 次后放弃。另外 {confirmed} 单照常确认，毒消息留作 {letters} 封死信，订单判为失败，库存归还准入处：剩 {left-after} 件。",
		},
		Say: learn.Text{
			EN: "Count attempts, back off, and after a few put the message aside with its cause: a dead letter with an alarm, never a silent drop. Giving up is a business decision too: fail the order, tell the buyer, and give stock and the buyer's mark back exactly once. Attempts must be counted outside of the process where the broker does not count, or a message that kills the process is new each time.",
			ZH: "计数、退避，几次之后连同原因转入死信并告警，绝不悄悄丢弃。放弃也是业务决定：订单判失败、通知买家、库存和一人一单标记只归还一次。broker 不计数时，次数要记在进程之外，否则每次搞死进程的消息都像第一次。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "Poison messages and the delivery limit of quorum queues", ZH: "毒消息与仲裁队列的投递上限"}, URL: "https://www.rabbitmq.com/docs/quorum-queues#poison-message-handling"},
			{Cell: "rabbitmq/quorum poison"},
		},
	}
}

// giveBack handles what comes for so long, and gives the one message back at once
// each time. It returns how often it came, and how many others did.
func giveBack(s *learn.Stand, c queue.Consumer, bad string, during time.Duration) (tries, good int64) {
	for began := time.Now(); time.Since(began) < during; {
		for _, d := range s.TakeFor(c, 1, during) {
			if d.ID == bad {
				tries++
				s.Must(c.Nack(s.Context(), d))
				continue
			}
			good++
			s.Must(c.Ack(s.Context(), d))
		}
	}
	s.Must(c.Close())
	return tries, good
}

// refuses is a database which one order cannot be written to.
type refuses struct {
	*store.Store
	order sale.ID
	tries atomic.Int64
}

func (r *refuses) Fulfil(ctx context.Context, rs []sale.Reservation) ([]sale.Decision, error) {
	for _, one := range rs {
		if one.OrderID == r.order {
			r.tries.Add(1)
			return nil, errors.New("this order does not fit into the database")
		}
	}
	return r.Store.Fulfil(ctx, rs)
}

// work runs a worker on a queue until stop.
func work(s *learn.Stand, w *worker.Worker, q queue.Queue) (stop func()) {
	c := s.Consumer(q)
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx, c, q.Capabilities()) }()
	stopped := false
	end := func() (err error) {
		if !stopped {
			stopped = true
			cancel()
			err = <-done
		}
		return err
	}
	s.After(end)
	return func() { s.Must(end()) }
}
