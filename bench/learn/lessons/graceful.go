package lessons

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"queuelab/bench/learn"
)

func graceful() learn.Lesson {
	return learn.Lesson{
		Number: 43, Name: "graceful-stop", Topic: learn.Running,
		Question: learn.Text{
			EN: "A deployment sends SIGTERM while clicks pour in. A consumer that waits in BRPOP has its context cancelled: what does it do with the next message?",
			ZH: "优雅停机：点击正猛时发布，进程收到 SIGTERM。正阻塞在 BRPOP 上的消费者，context 被取消之后，下一条消息会怎样？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "It stays in the list: cancelling the context takes the command back.", ZH: "留在列表里：取消 context 就撤回了命令。"},
				If: learn.Conditions{"naive-kept": learn.Is(1)}},
			{Text: learn.Text{EN: "Redis gives it to the consumer that is stopping, and it is gone; a consumer must end the wait itself and hand back what comes late.", ZH: "Redis 仍把它交给正在退出的消费者，消息就没了；消费者必须自己结束等待，并归还晚到的消息。"},
				If: learn.Conditions{"naive-kept": learn.Is(0), "backend-kept": learn.Is(1)}},
			{Text: learn.Text{EN: "It is lost with any Redis list: only Streams can be stopped in order.", ZH: "用 Redis 列表必丢：只有 Stream 能优雅停机。"},
				If: learn.Conditions{"naive-kept": learn.Is(0), "backend-kept": learn.Is(0)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "redis"}},
		Takes: 6 * time.Second,
		Try: func(s *learn.Stand) {
			redis, list := s.Redis(), s.Name("orders")
			deleteAfter(s, list)

			s.Step("A consumer waits in BRPOP, and its context is cancelled. Then a message comes.", "消费者阻塞在 BRPOP，context 被取消，然后来了一条消息。")
			ctx, cancel := context.WithCancel(s.Context())
			waiting := s.Redis().Conn()
			s.After(waiting.Close)
			s.Must(waiting.ClientSetName(ctx, s.Name("consumer")).Err())
			returned := make(chan int64, 1)
			go func() {
				v, err := waiting.BRPop(ctx, 3*time.Second, list).Result()
				cancel()
				if err != nil || ctx.Err() == nil {
					returned <- 0
					return
				}
				returned <- int64(len(v) / 2) // the loop ends here, as its context has: nobody handles it
			}()
			s.Eventually("the consumer to wait", 5*time.Second, func() bool {
				for _, client := range strings.Split(s.RedisUnseen().ClientList(s.Context()).Val(), "\n") {
					if strings.Contains(client, "name="+s.Name("consumer")+" ") && strings.Contains(client, "flags=b ") {
						return true
					}
				}
				return false
			})
			cancel()
			hung := int64(0)
			select {
			case <-returned:
				s.Fail("BRPOP returned when its context was cancelled")
			case <-time.After(500 * time.Millisecond):
				hung = 1
			}
			s.Count("naive-hung", hung, "consumers that hang half a second after the cancel", "取消半秒后仍卡在 BRPOP 的消费者")
			s.Do(redis, "LPUSH", list, s.ID+"-late")
			s.Count("naive-took", <-returned, "messages that it takes after the cancel", "取消之后它取走的消息")
			s.Count("naive-kept", s.Int(redis, "LLEN", list), "left in the list", "列表里剩下的")

			s.Step("Our consumer of a Redis list: its Receive is cancelled, a message comes, and it is closed.", "我们的 Redis 列表消费者：Receive 被取消，来了一条消息，然后关闭。")
			q := s.Queue("redis-list")
			p, c := s.Publisher(q), s.Consumer(q)
			if got := s.TakeFor(c, 1, 200*time.Millisecond); len(got) > 0 {
				s.Fail("a new queue had a message")
			}
			s.Must(p.Publish(s.Context(), s.Messages(1)...))
			s.Must(c.Close())
			s.Count("backend-kept", s.Backlog(q).Ready, "left in the list once it is closed", "关闭之后列表里剩下的")

			s.Step("The service under load: 40 buyers click all the time, it gets SIGTERM, and is started again.", "压力下的服务：40 个买家不停点击，中途 SIGTERM，再启动。")
			var shop *learn.Service
			var voucher string
			s.Quietly(func() {
				url := s.URL("redis-streams")
				s.Open(url)
				shop = s.Service(learn.ServiceOptions{Queue: url, Redis: true})
				voucher = shop.Sell(100000)
				forgetVoucher(s, voucher)
			})
			var accepted, buyers atomic.Int64
			var over atomic.Bool
			var clicks sync.WaitGroup
			for range 40 {
				clicks.Go(func() {
					for !over.Load() {
						_, a, err := shop.Buy(s.Context(), voucher, int(buyers.Add(1)))
						switch {
						case err != nil: // stopped: no answer, and no promise
							time.Sleep(10 * time.Millisecond)
						case a.OrderID != "":
							accepted.Add(1)
						}
					}
				})
			}
			s.Eventually("a few hundred orders", 10*time.Second, func() bool { return accepted.Load() >= 300 })
			inOrder := shop.End()
			over.Store(true)
			clicks.Wait()
			s.Count("in-order", count(inOrder), "services that ended in order", "正常退出的服务")
			s.Count("accepted", accepted.Load(), "orders that buyers were promised", "买家得到承诺的订单")
			s.Quietly(func() { shop.Start() })
			s.Eventually("all orders to be decided", 10*time.Second, func() bool {
				return shop.Query("SELECT count(*) FROM orders WHERE status = 'confirmed'") >= accepted.Load()
			})
			balanced, said := shop.Balanced("--wait=5s")
			if !balanced {
				s.Fail("the sale does not balance: %s", said)
			}
			confirmed := shop.Query("SELECT count(*) FROM orders WHERE status = 'confirmed'")
			s.Count("lost", max(0, accepted.Load()-confirmed), "of them without an order", "其中没有订单的")
			s.Count("twice", confirmed-shop.Query("SELECT count(DISTINCT user_id) FROM orders WHERE status = 'confirmed'"), "orders made twice", "重复的订单")
			s.Count("balanced", count(balanced), "sales that seckill verify finds balanced", "seckill verify 核对一致")
		},
		Expect: learn.Conditions{
			"naive-hung": learn.Is(1), "naive-took": learn.Is(1), "in-order": learn.Is(1), "accepted": learn.AtLeast(300), "lost": learn.Is(0), "twice": learn.Is(0), "balanced": learn.Is(1),
		},
		Why: learn.Text{
			EN: "BRPOP waits in Redis, and a cancelled context does not reach it: {naive-hung} consumer still hung half a second later, took {naive-took} message that came after the cancel, and left {naive-kept} in the list. Our consumer has Redis end the wait (CLIENT UNBLOCK), and pushes back at its close what still came: {backend-kept} left. The service stops taking clicks, answers those it has, ends its batches and leaves the rest in the queue: of {accepted} promised orders {lost} were lost and {twice} made twice.",
			ZH: "BRPOP 阻塞在 Redis 服务端，取消 context 通知不到它：半秒后仍有 {naive-hung} 个消费者卡着，还取走了取消之后才来的 {naive-took} 条，列表剩 {naive-kept} 条。我们的消费者用 CLIENT UNBLOCK 让 Redis 结束等待，仍然晚到的在关闭时推回去：剩 {backend-kept} 条。服务停机时先不接新点击，答完手上的请求，处理完当前批次，其余留在队列里：承诺的 {accepted} 单丢 {lost}、重复 {twice}。",
		},
		Say: learn.Text{
			EN: "On SIGTERM: fail readiness and take no new requests, finish those that run, stop taking messages, finish or give back what is in hand within a deadline, then close. Blocking pops get a short time-out, and what they bring too late goes back. It must also survive kill -9, so graceful stop is for speed and few duplicates, not for correctness.",
			ZH: "收到 SIGTERM：先摘流量、不接新请求，处理完在途请求，停止拉取消息，在期限内处理完或归还手上的消息，最后关闭连接。阻塞弹出要设短超时，晚到的要还回去。而且 kill -9 也必须不丢单：优雅停机是为了快和少重复，不是正确性的前提。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "Redis on BRPOP", ZH: "Redis：BRPOP"}, URL: "https://redis.io/docs/latest/commands/brpop/"},
		},
	}
}
