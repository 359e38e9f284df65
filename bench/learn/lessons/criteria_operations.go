package lessons

import (
	"fmt"
	"math"
	"time"

	"queuelab/bench/broker"
	"queuelab/bench/learn"
)

func criterionOperations() learn.Lesson {
	const orders, held = 10, 3
	return learn.Lesson{
		Number: 53, Name: "criterion-operations", Topic: learn.Criteria,
		Question: learn.Text{
			EN: "Operations: what does each broker take to run, and what does it tell when one asks how much waits?",
			ZH: "运维：各个 broker 要占多少资源？问它积压了多少，它答得上来吗？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "About the same memory each, and all of them tell.", ZH: "内存占用差不多，也都答得上来。"},
				If: learn.Conditions{"kafka-over-redis": learn.AtMost(2), "tell-in-hand": learn.AtLeast(5)}},
			{Text: learn.Text{EN: "Kafka takes many times what Redis does; and only memory and a Stream tell what waits apart from what is in somebody's hand.", ZH: "Kafka 是 Redis 的好多倍；能把“排队的”和“在消费者手里的”分开报告的，只有内存队列和 Stream。"},
				If: learn.Conditions{"kafka-over-redis": learn.AtLeast(4), "tell-in-hand": learn.Is(2), "in-hand-memory": learn.Is(held), "in-hand-redis-streams": learn.Is(held)}},
			{Text: learn.Text{EN: "Kafka takes the most memory, but it tells the most.", ZH: "Kafka 占内存最多，但报告得也最全。"},
				If: learn.Conditions{"kafka-over-redis": learn.AtLeast(4), "in-hand-kafka": learn.Is(held)}},
		},
		Right: 1,
		Needs: sixNeed(),
		Takes: 5 * time.Second,
		Try: func(s *learn.Stand) {
			s.Step("What each broker has resident in memory now.", "各个 broker 此刻常驻的内存。")
			mb := map[string]float64{}
			for _, kind := range []string{"redis", "rabbitmq", "kafka"} {
				u, err := s.Broker(kind).Usage(s.Context())
				s.Must(err)
				if !u.Known {
					s.Must(fmt.Errorf("%w: nobody can see here what %s uses", broker.ErrUnavailable, kind))
				}
				mb[kind] = math.Round(float64(u.MemoryBytes) / (1 << 20))
				s.Figure("memory-"+kind, mb[kind], "MB", learn.Text{EN: kind + ": resident", ZH: kind + "：常驻内存"})
			}
			s.Figure("kafka-over-redis", math.Round(mb["kafka"]/mb["redis"]), "", learn.Text{EN: "Kafka's memory over Redis'", ZH: "Kafka 与 Redis 的内存之比"})
			told := int64(0)
			for _, c := range six(map[string][]string{"rabbitmq": {"prefetch=3"}}) {
				s.Step(c.backend+": ten orders, three of them in a consumer's hand. How many wait?", c.backend+"：十个订单，三个在消费者手里。还有多少在排队？")
				q := s.Queue(c.backend, c.params...)
				worker := s.Consumer(q)
				s.Publish(q, orders)
				s.Take(worker, held)
				b := s.Backlog(q)
				s.Must(worker.Close())
				s.Count("waits-"+c.backend, b.Ready, c.backend+": that wait, as the broker tells; -1: it does not", c.backend+"：broker 报告的排队数；-1 表示不报告")
				s.Count("in-hand-"+c.backend, b.InFlight, c.backend+": in a consumer's hand, likewise", c.backend+"：同上，在消费者手里的")
				if b.InFlight >= 0 {
					told++
				}
			}
			s.Count("tell-in-hand", told, "queues that tell what is in a consumer's hand", "能报告“在消费者手里”的队列")
		},
		Expect: learn.Conditions{
			"memory-rabbitmq": learn.AtLeast(40), "memory-kafka": learn.AtLeast(100),
			"waits-redis-streams": learn.Is(orders - held), "waits-redis-list": learn.Is(orders - held), "waits-rabbitmq": learn.Is(orders - held),
			"waits-kafka": learn.Is(orders), "waits-redis-pubsub": learn.Is(-1),
		},
		Why: learn.Text{
			EN: "Redis is one small process with {memory-redis} resident here, RabbitMQ brings Erlang's machine ({memory-rabbitmq}) and Kafka Java's ({memory-kafka}). With three of ten orders in a consumer's hand a Stream told of {waits-redis-streams} that wait and {in-hand-redis-streams} in hand, while a list told of {waits-redis-list} and had forgotten the rest. RabbitMQ tells a client of {waits-rabbitmq} ready ones only (its management interface has the unacked), and Kafka's lag was {waits-kafka}, since nothing of them was committed. Pub/Sub has nothing to count.",
			ZH: "Redis 是一个小进程，这里常驻 {memory-redis}；RabbitMQ 带着 Erlang 虚拟机（{memory-rabbitmq}），Kafka 带着 JVM（{memory-kafka}）。十个订单有三个在消费者手里时，Stream 报告排队 {waits-redis-streams} 个、在手 {in-hand-redis-streams} 个；List 报告 {waits-redis-list} 个，其余的它已经忘了。RabbitMQ 只告诉客户端待投递的 {waits-rabbitmq} 个（未确认的要看它的管理界面）；Kafka 的 lag 是 {waits-kafka}，因为一个都没提交。Pub/Sub 没有东西可数。",
		},
		Say: learn.Text{
			EN: "The cheapest broker is the one that the team already runs and can restore at night: Redis is there for the stock anyway. Whatever it is, alarm on the age of the oldest order and on what is in hand for too long, and not on the length alone. Kafka pays for its JVM when there are many readers, replays or days of retention.",
			ZH: "最省的 broker 是团队已经在跑、半夜也能救回来的那个：Redis 反正要用来扣库存。无论哪种，告警要看最老订单的等待时间和在手过久的条目，不能只看长度。读者多、要重放、要保留多天时，Kafka 的 JVM 才值。",
		},
	}
}
