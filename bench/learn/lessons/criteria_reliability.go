package lessons

import (
	"context"
	"time"

	"queuelab/bench/broker"
	"queuelab/bench/learn"
	"queuelab/bench/ledger"
	"queuelab/bench/node"
)

func criterionReliability() learn.Lesson {
	const orders = 100
	return learn.Lesson{
		Number: 46, Name: "criterion-reliability", Topic: learn.Criteria,
		Question: learn.Text{
			EN: "Reliability: a hundred accepted orders wait, and the broker is killed and started again. Which queues still have them?",
			ZH: "消息可靠性：一百个已接收的订单在排队，broker 被 kill -9 再启动。哪些队列还在？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "Only RabbitMQ and Kafka: Redis is a cache.", ZH: "只有 RabbitMQ 和 Kafka：Redis 只是缓存。"},
				If: learn.Conditions{"kept-rabbitmq": learn.Is(orders), "kept-kafka": learn.Is(orders), "kept-redis-streams": learn.Is(0)}},
			{Text: learn.Text{EN: "All that write to disk, Redis with AOF among them; not memory, and not Pub/Sub.", ZH: "凡是落盘的都在，包括开了 AOF 的 Redis；内存队列和 Pub/Sub 没有。"},
				If: learn.Conditions{
					"kept-redis-list": learn.Is(orders), "kept-redis-streams": learn.Is(orders), "kept-rabbitmq": learn.Is(orders), "kept-kafka": learn.Is(orders),
					"kept-memory": learn.Is(0), "kept-redis-pubsub": learn.Is(0),
				}},
			{Text: learn.Text{EN: "None has all: what was not synced yet is gone.", ZH: "没有一种是全的：还没刷盘的都没了。"},
				If: learn.Conditions{"kept-redis-streams": learn.Between(1, orders-1), "kept-rabbitmq": learn.AtMost(orders - 1), "kept-kafka": learn.AtMost(orders - 1)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "redis", Setting: "aof-always", Own: true}, {Kind: "rabbitmq", Own: true}, {Kind: "kafka", Own: true}},
		Takes: 25 * time.Second,
		Try: func(s *learn.Stand) {
			ctx := s.Context()
			s.Step("A hundred orders into each queue, and nobody consumes.", "每个队列放一百个订单，没有人消费。")
			urls := map[string]string{}
			var stays []contender // those whose broker is a process of its own
			for _, c := range six(nil) {
				if c.backend == "rabbitmq" {
					c.params = nil // it is killed soon after the queue was made
				}
				urls[c.backend] = s.URL(c.backend, c.params...)
				if c.backend == "memory" {
					continue
				}
				stays = append(stays, c)
				q := s.Open(urls[c.backend])
				p := s.Publisher(q)
				s.Must(p.Publish(ctx, s.Messages(orders)...))
			}
			service := s.Produce(urls["memory"], node.Produce{Count: orders})
			service.Produced()

			s.Step("All are killed with SIGKILL, and started again.", "全部 kill -9，再启动。")
			service.Die()
			brokers := []*broker.Broker{s.Broker("redis"), s.Broker("rabbitmq"), s.Broker("kafka")}
			for _, b := range brokers {
				s.Must(b.Kill(ctx))
			}
			s.StartAgain(func(ctx context.Context) error {
				s.Together(len(brokers), func(i int) error { return brokers[i].Restart(ctx) })
				return nil
			})

			s.Step("A consumer comes to each.", "每个队列来一个消费者。")
			next := s.Consume(urls["memory"], node.Consume{})
			for _, c := range stays {
				s.Count("kept-"+c.backend, drained(s, s.Open(urls[c.backend]), orders), c.backend+": delivered of 100", c.backend+"：100 个里投递的")
			}
			next.End()
			s.Count("kept-memory", next.Tally(ledger.Effect), "memory: handled of 100 by the service's successor", "memory：100 个里新进程处理的")
		},
		Why: learn.Text{
			EN: "What is written to the kernel outlives the process that wrote it: the list had {kept-redis-list} of 100 orders again, the Stream {kept-redis-streams}, RabbitMQ {kept-rabbitmq} and Kafka {kept-kafka}. Pub/Sub stores nothing, and {kept-redis-pubsub} came. A queue in the service's memory dies with the service, and its successor found {kept-memory}.",
			ZH: "写进内核的数据比写它的进程活得久：100 个订单，List 找回 {kept-redis-list} 个，Stream {kept-redis-streams} 个，RabbitMQ {kept-rabbitmq} 个，Kafka {kept-kafka} 个。Pub/Sub 什么都不存，来了 {kept-redis-pubsub} 个。服务内存里的队列随服务一起死，新进程找到 {kept-memory} 个。",
		},
		Say: learn.Text{
			EN: "Ask of each queue what its accept means: in memory, in the kernel, on the disk, or on several machines. A kill takes only the first, a power cut the second too, and that is what Redis everysec and Kafka with its default flush confirm on one node. Against a lost machine only replicas help, and against all of them a database from which the queue can be filled again.",
			ZH: "问清每种队列的“已接收”指什么：在内存、在内核、在磁盘，还是在多台机器上。kill -9 只丢第一种；断电连第二种也丢，Redis everysec 和单节点默认刷盘的 Kafka 确认的正是这一种。整机损坏只能靠副本，再兜底就是能重建队列的数据库。",
		},
		Further: []learn.Link{{Cell: "rabbitmq/quorum power-loss"}, {Cell: "kafka/acks-all power-loss"}, {Cell: "redis-streams/aof-everysec power-loss"}},
	}
}
