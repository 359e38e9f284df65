package lessons

import (
	"time"

	"queuelab/bench/learn"
	"queuelab/queue"
)

func criterionOrder() learn.Lesson {
	const orders = 6
	return learn.Lesson{
		Number: 50, Name: "criterion-ack-order", Topic: learn.Criteria,
		Question: learn.Text{
			EN: "Acks and order: a consumer holds a user's first of six messages and gives up. When does it come again?",
			ZH: "确认与顺序：消费者拿着某用户六条消息中的第一条，没处理就退出了。它什么时候再来？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "First, in every queue: order per key is what they promise.", ZH: "都是第一个来：按 key 有序正是它们承诺的。"},
				If: learn.Conditions{"before-redis-streams": learn.Is(0), "before-rabbitmq": learn.Is(0), "before-kafka": learn.Is(0)}},
			{Text: learn.Text{EN: "Behind what another consumer did meanwhile with a Stream or RabbitMQ; first in Kafka, where the partition had waited.", ZH: "Stream 和 RabbitMQ 里排在别人已处理的之后；Kafka 里仍是第一个，因为整个分区都等着。"},
				If: learn.Conditions{"before-redis-streams": learn.Is(orders - 1), "before-rabbitmq": learn.Is(orders - 1), "before-kafka": learn.Is(0)}},
			{Text: learn.Text{EN: "Last, in all of them: the others do not wait.", ZH: "都是最后：别的消息不会等它。"},
				If: learn.Conditions{"before-redis-streams": learn.Is(orders - 1), "before-rabbitmq": learn.Is(orders - 1), "before-kafka": learn.Is(orders - 1)}},
		},
		Right: 1,
		Needs: sixNeed(),
		Takes: 8 * time.Second,
		Try: func(s *learn.Stand) {
			for _, c := range six(map[string][]string{"rabbitmq": {"prefetch=1"}}) {
				s.Step(c.backend+": one consumer takes the first message and holds it. Another handles what it gets, until the first gives up.", c.backend+"：一个消费者取走第一条不放，另一个处理它能拿到的，直到前者退出。")
				q := s.Queue(c.backend, c.params...)
				wait := 10 * time.Second // for a group to be formed anew
				if q.Capabilities().Guarantee == queue.AtMostOnce {
					wait = 300 * time.Millisecond
				}
				holder := s.Consumer(q)
				p := s.Publisher(q)
				for _, m := range s.Messages(orders) {
					m.Key = "user"
					s.Must(p.Publish(s.Context(), m))
				}
				first := s.Take(holder, 1)[0].ID
				other := s.Consumer(q)
				done := s.Drain(other, time.Second)
				s.Must(holder.Close())
				again := int64(0)
				for len(done) < orders {
					ds := s.TakeFor(other, 1, wait)
					if len(ds) == 0 {
						break
					}
					s.Must(other.Ack(s.Context(), ds...))
					done = append(done, ds...)
				}
				s.Must(other.Close())
				before := int64(len(done))
				for i, d := range done {
					if d.ID == first {
						again, before = again+1, min(before, int64(i))
					}
				}
				s.Count("before-"+c.backend, before, c.backend+": others handled before the first came again", c.backend+"：第一条再来之前已处理的其他消息")
				s.Count("again-"+c.backend, again, c.backend+": the first came again", c.backend+"：第一条再来的次数")
			}
		},
		Expect: learn.Conditions{
			"before-memory": learn.Is(orders - 1), "again-redis-list": learn.Is(0), "again-redis-pubsub": learn.Is(0),
			"again-memory": learn.Is(1), "again-redis-streams": learn.Is(1), "again-rabbitmq": learn.Is(1), "again-kafka": learn.Is(1),
		},
		Why: learn.Text{
			EN: "A Stream and RabbitMQ ack message by message, so others went on while the first was in somebody's hand: {before-redis-streams} and {before-rabbitmq} later ones were done before it came again. Kafka acks a position in a partition, and a partition has one consumer at a time: {before-kafka} were done before, because all of them had waited. A list and Pub/Sub know no ack, and it came again {again-redis-list} and {again-redis-pubsub} times.",
			ZH: "Stream 和 RabbitMQ 逐条确认，第一条还在别人手里时，后面的照样处理：它再来之前已处理了 {before-redis-streams} 和 {before-rabbitmq} 条。Kafka 确认的是分区里的位置，一个分区同时只有一个消费者：之前处理了 {before-kafka} 条，因为大家都在等。List 和 Pub/Sub 没有确认，它再来的次数是 {again-redis-list} 和 {again-redis-pubsub}。",
		},
		Say: learn.Text{
			EN: "Order, competing consumers and redelivery do not go together: who keeps order must let a key wait for its slowest message. Kafka does so per partition; with Streams or RabbitMQ one consumer per key must do it, or the effect must not care, by a version or a state machine. Ack after the commit, and keep the handler idempotent in either case.",
			ZH: "有序、竞争消费、重投三者不可兼得：要有序，同一个 key 就得等最慢的那条。Kafka 按分区做到这一点；Stream、RabbitMQ 要么一个 key 只给一个消费者，要么让结果与顺序无关（版本号、状态机）。无论哪种，都是提交之后再确认，处理要幂等。",
		},
	}
}
