package lessons

import (
	"time"

	"queuelab/bench/learn"
	"queuelab/queue"
)

func criterionBacklog() learn.Lesson {
	const orders, bound = 2000, 500
	return learn.Lesson{
		Number: 48, Name: "criterion-backlog", Topic: learn.Criteria,
		Question: learn.Text{
			EN: "Backlog: 2000 orders come while every consumer is down. Where are they when one comes back?",
			ZH: "消息堆积：消费者全部宕机时来了 2000 个订单。消费者恢复后，它们还在吗？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "Whatever was accepted is there, in all six.", ZH: "六种队列都一样：接收了的都在。"},
				If: learn.Conditions{"kept-redis-pubsub": learn.Is(orders), "kept-bounded-stream": learn.Is(orders)}},
			{Text: learn.Text{EN: "Only Kafka is made for that: the others lose some of them.", ZH: "只有 Kafka 能堆积，其他的都会丢一部分。"},
				If: learn.Conditions{"kept-kafka": learn.Is(orders), "kept-redis-streams": learn.AtMost(orders - 1), "kept-rabbitmq": learn.AtMost(orders - 1)}},
			{Text: learn.Text{EN: "List, Stream, RabbitMQ and Kafka have all of them; Pub/Sub and a Stream with MAXLEN accepted what they then did not have.", ZH: "List、Stream、RabbitMQ、Kafka 全在；Pub/Sub 和设了 MAXLEN 的 Stream 接收了却没留住。"},
				If: learn.Conditions{
					"kept-redis-list": learn.Is(orders), "kept-redis-streams": learn.Is(orders), "kept-rabbitmq": learn.Is(orders), "kept-kafka": learn.Is(orders),
					"kept-redis-pubsub": learn.Is(0), "kept-bounded-stream": learn.Is(bound),
				}},
		},
		Right: 2,
		Needs: sixNeed(),
		Takes: 12 * time.Second,
		Try: func(s *learn.Stand) {
			queues := six(map[string][]string{
				"memory": {"capacity=500", "full=reject"}, "redis-list": {"batch=500"}, "redis-streams": {"prefetch=500"}, "rabbitmq": {"prefetch=500"},
			})
			queues = append(queues, contender{"redis-streams", []string{"claim=1s", "prefetch=500", "maxlen=500"}})
			for _, c := range queues {
				name := c.backend
				if len(c.params) == 3 {
					name = "bounded-stream"
				}
				s.Step(name+": 2000 orders, and nobody consumes. Then a consumer comes.", name+"：2000 个订单，没有消费者，之后才来一个。")
				q := s.Queue(c.backend, c.params...)
				var accepted int64
				p := s.Publisher(q)
				for batch := range orders / 100 {
					ms := s.Messages(orders)[100*batch : 100*batch+100]
					err := p.Publish(s.Context(), ms...)
					for i := range ms {
						if queue.OutcomeOf(err, i) == queue.Accepted {
							accepted++
						}
					}
				}
				s.Count("accepted-"+name, accepted, name+": accepted of 2000", name+"：2000 个里接收的")
				s.Count("kept-"+name, drained(s, q, accepted), name+": delivered afterwards", name+"：之后投递的")
			}
		},
		Expect: learn.Conditions{
			"accepted-memory": learn.Is(bound), "kept-memory": learn.Is(bound), "accepted-redis-pubsub": learn.Is(orders), "accepted-bounded-stream": learn.Is(orders),
		},
		Why: learn.Text{
			EN: "A list, a Stream, RabbitMQ and Kafka store what comes until somebody fetches it: {kept-redis-list}, {kept-redis-streams}, {kept-rabbitmq} and {kept-kafka} were there. Pub/Sub stores nothing, so of {accepted-redis-pubsub} accepted orders {kept-redis-pubsub} were left. A bound can be honest or not: memory refused what did not fit and kept all {kept-memory} that it had accepted, while MAXLEN accepted {accepted-bounded-stream} and kept {kept-bounded-stream}.",
			ZH: "List、Stream、RabbitMQ、Kafka 会存到有人来取：分别还在 {kept-redis-list}、{kept-redis-streams}、{kept-rabbitmq}、{kept-kafka} 个。Pub/Sub 什么都不存，接收了 {accepted-redis-pubsub} 个，剩下 {kept-redis-pubsub} 个。上限也有诚实与否：内存队列装不下就拒绝，接收的 {kept-memory} 个全在；MAXLEN 接收了 {accepted-bounded-stream} 个，只留下 {kept-bounded-stream} 个。",
		},
		Say: learn.Text{
			EN: "Any queue that stores can take a peak; in Redis it takes the memory that the stock needs too. Each needs a bound that refuses at the door, since one that drops accepted orders is a loss that nobody is told of. Size it as the rate above what consumers do times the longest outage, and alarm on the age of the oldest order.",
			ZH: "能存储的队列都能削峰，只是 Redis 的积压要和库存抢内存。每一种都要有上限，而且要在入口拒绝：丢弃已接收的订单，是没人知道的丢单。容量按（到达速率减消费速率）乘以最长故障时间估算，并对最老订单的等待时间告警。",
		},
	}
}

// drained acks what a late consumer gets of so many accepted messages.
func drained(s *learn.Stand, q queue.Queue, accepted int64) (n int64) {
	c := s.Consumer(q)
	quiet := 10 * time.Second // until the first one comes: a group may have to form
	if !q.Capabilities().Stored {
		quiet = 500 * time.Millisecond
	}
	for n < accepted {
		ds := s.TakeFor(c, int(min(500, accepted-n)), quiet)
		if len(ds) == 0 {
			break
		}
		s.Must(c.Ack(s.Context(), ds...))
		n, quiet = n+int64(len(ds)), 1500*time.Millisecond
	}
	n += int64(len(s.TakeFor(c, 1, 300*time.Millisecond)))
	s.Must(c.Close())
	return n
}
