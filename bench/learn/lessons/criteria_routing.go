package lessons

import (
	"time"

	"queuelab/bench/learn"
	"queuelab/queue"
)

func criterionRouting() learn.Lesson {
	const each = 10
	return learn.Lesson{
		Number: 45, Name: "criterion-routing", Topic: learn.Criteria,
		Question: learn.Text{
			EN: "Routing: a consumer wants the orders of the east only. Which broker sends it no others?",
			ZH: "消息路由：消费者只要华东的订单。哪些 broker 不会把别的也发过来？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "Kafka, by the message's key, and RabbitMQ.", ZH: "Kafka（按消息 key）和 RabbitMQ。"},
				If: learn.Conditions{"got-kafka": learn.Is(each), "got-rabbitmq": learn.Is(each), "got-redis-streams": learn.Is(2 * each)}},
			{Text: learn.Text{EN: "RabbitMQ and Redis Pub/Sub; with all others the consumer gets everything and drops what it does not want.", ZH: "RabbitMQ 和 Redis Pub/Sub；其他的都是全部收到，再由消费者自己丢弃。"},
				If: learn.Conditions{"got-rabbitmq": learn.Is(each), "got-redis-pubsub": learn.Is(each), "got-kafka": learn.Is(2 * each), "got-redis-streams": learn.Is(2 * each)}},
			{Text: learn.Text{EN: "All that have consumer groups.", ZH: "凡是有消费组的都可以。"},
				If: learn.Conditions{"got-kafka": learn.Is(each), "got-redis-streams": learn.Is(each)}},
		},
		Right: 1,
		Needs: sixNeed(),
		Takes: 5 * time.Second,
		Try: func(s *learn.Stand) {
			for _, c := range six(map[string][]string{"redis-pubsub": {"route=key"}, "rabbitmq": {"exchange=topic"}}) {
				s.Step(c.backend+": ten orders of the east and ten of the west. One consumer wants the east.", c.backend+"：华东、华西各十个订单，消费者只要华东的。")
				queueURL := s.URL(c.backend, c.params...)
				east := queueURL
				// Where the broker routes, the east says so; and somebody must want the west.
				switch c.backend {
				case "redis-pubsub":
					east += "&bind=order.east"
				case "rabbitmq":
					s.Open(queueURL + "&group=west&bind=order.west")
					east += "&group=east&bind=order.east"
				}
				q := s.Open(east)
				eastern := s.Consumer(q)
				p := s.Publisher(q)
				for i, m := range s.Messages(2 * each) {
					m.Key = "order." + []string{"east", "west"}[i%2]
					s.Must(p.Publish(s.Context(), m))
				}
				var got []*queue.Delivery
				for wanted := 0; wanted < each; {
					d := s.Take(eastern, 1)[0]
					if got = append(got, d); d.Key == "order.east" {
						wanted++
					}
				}
				got = append(got, s.TakeFor(eastern, 2*each, 700*time.Millisecond)...)
				s.Must(eastern.Close()) // so that it says nothing more
				s.Count("got-"+c.backend, int64(len(got)), c.backend+": sent to the consumer of the east, of 20", c.backend+"：20 个里发给华东消费者的")
			}
		},
		Expect: learn.Conditions{"got-memory": learn.Is(2 * each), "got-redis-list": learn.Is(2 * each)},
		Why: learn.Text{
			EN: "RabbitMQ's exchange compares the routing key with each queue's bindings before it stores anything, and sent {got-rabbitmq} orders; Pub/Sub compares channel names with what a connection subscribed to, and sent {got-redis-pubsub}. Kafka's key only chooses the partition, and whoever reads a topic reads all of it: {got-kafka} came. A list sent {got-redis-list} and a Stream {got-redis-streams}, since a key in Redis is the whole address.",
			ZH: "RabbitMQ 的 exchange 在入队前就拿 routing key 和各队列的 binding 比对，发来 {got-rabbitmq} 个；Pub/Sub 拿频道名和连接订阅的内容比对，发来 {got-redis-pubsub} 个。Kafka 的 key 只决定分区，读一个 topic 就是读它的全部，来了 {got-kafka} 个。List 发来 {got-redis-list} 个，Stream {got-redis-streams} 个：在 Redis 里，一个 key 就是完整的地址。",
		},
		Say: learn.Text{
			EN: "Of these only RabbitMQ routes stored messages: by key, by pattern or to all, and publishers need not know who listens. With Kafka, Streams and lists the topic or key is the route, so one publishes to several of them or filters in the consumer. Routing is worth a broker's rules when listeners come and go; a flash sale has one route and does not need it.",
			ZH: "这几种里，能对持久消息做路由的只有 RabbitMQ：按 key、按模式、广播都行，发布者不必知道谁在听。Kafka、Stream、List 的 topic 或 key 本身就是路由，要么发到多个，要么消费端过滤。订阅方常变时才值得用 broker 的规则；秒杀只有一条路，用不上。",
		},
		Further: []learn.Link{{Text: learn.Text{EN: "Exchanges and bindings", ZH: "Exchange 与 binding"}, URL: "https://www.rabbitmq.com/tutorials/amqp-concepts"}},
	}
}
