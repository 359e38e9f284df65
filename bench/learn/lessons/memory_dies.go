package lessons

import (
	"time"

	"queuelab/bench/learn"
	"queuelab/bench/ledger"
	"queuelab/bench/node"
)

func memoryDies() learn.Lesson {
	const orders = 100
	return learn.Lesson{
		Number: 1, Name: "memory-dies", Topic: learn.Basics,
		Question: learn.Text{
			EN: "Why not queue the orders of a flash sale in the service itself, in a channel or a BlockingQueue?",
			ZH: "为什么不用 channel / BlockingQueue 做秒杀队列？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "No reason: what was accepted is still there after a restart, with both.", ZH: "没什么不可以：已接收的订单，重启后两者都还在。"},
				If: learn.Conditions{"memory-found": learn.Is(orders), "stream-found": learn.Is(orders)}},
			{Text: learn.Text{EN: "Only the order in a handler's hand is lost; those that wait survive.", ZH: "只丢正在处理的那一条，排队的都还在。"},
				If: learn.Conditions{"memory-found": learn.Between(1, orders-1)}},
			{Text: learn.Text{EN: "All that wait die with the process; a queue outside of it keeps every one.", ZH: "排队的全部随进程消失；进程外的队列一条不丢。"},
				If: learn.Conditions{"memory-found": learn.Is(0), "stream-found": learn.Is(orders)}},
		},
		Right: 2,
		Needs: []learn.Need{{Kind: "redis"}},
		Takes: 4 * time.Second,
		Try: func(s *learn.Stand) {
			// The service accepts the orders and is killed before anybody handles
			// one. Its successor opens the same queue and handles what is there.
			die := func(queueURL string) (accepted, found int64) {
				service := s.Produce(queueURL, node.Produce{Count: orders})
				service.Produced()
				service.Die()
				next := s.Consume(queueURL, node.Consume{})
				s.Settled(time.Second)
				next.End()
				return service.Tally(ledger.Accepted), next.Tally(ledger.Effect)
			}

			s.Step("A service accepts 100 orders into a queue in its own memory and is killed. A new one starts. No broker hears of any of it.",
				"服务把 100 个订单收进自己内存里的队列，随后被 kill -9，再启动一个新的。没有任何 broker 知道这些订单。")
			accepted, found := die(s.URL("memory"))
			s.Count("memory-accepted", accepted, "orders accepted into memory", "内存队列已接收的订单")
			s.Count("memory-found", found, "handled after the restart", "重启后被处理的")

			s.Step("The same service with a Redis Stream.", "同样的服务，换成 Redis Stream。")
			stream := s.URL("redis-streams")
			s.Open(stream) // to be deleted in the end
			accepted, found = die(stream)
			s.Count("stream-accepted", accepted, "orders accepted into the Stream", "Stream 已接收的订单")
			s.Count("stream-found", found, "handled after the restart", "重启后被处理的")
		},
		Expect: learn.Conditions{"memory-accepted": learn.Is(orders), "stream-accepted": learn.Is(orders)},
		Why: learn.Text{
			EN: "A channel is memory of one process, so the kernel takes it back with the process: of {memory-accepted} accepted orders the next process found {memory-found}. The Stream lives in another process, and of its {stream-accepted} the next one handled {stream-found}.",
			ZH: "channel 是单个进程的内存，进程一死就被内核收回：接收了 {memory-accepted} 个订单，新进程找到 {memory-found} 个。Stream 在另一个进程里，{stream-accepted} 个订单被新进程处理了 {stream-found} 个。",
		},
		Say: learn.Text{
			EN: "A queue in memory loses every accepted order when its process is killed, also at each deploy that does not drain it, and other instances cannot help to consume. By then the stock in Redis is taken, so that the sale undersells. Orders belong in a queue outside of the process; memory is for what may be lost.",
			ZH: "内存队列会随进程一起丢掉全部已接收的订单，没排空就发布也一样，别的实例也帮不上忙。而此时 Redis 里的库存已经扣了，结果就是少卖。订单要放到进程之外的队列；内存里只放丢得起的东西。",
		},
		Further: []learn.Link{{Cell: "memory/bounded consumer-kill-mid-handle"}},
	}
}
