package lessons

import (
	"time"

	"queuelab/bench/learn"
	"queuelab/queue"
)

func criterionReplay() learn.Lesson {
	const orders = 10
	return learn.Lesson{
		Number: 47, Name: "criterion-replay", Topic: learn.Criteria,
		Question: learn.Text{
			EN: "Replay: which of six queues can deliver again what was consumed and acked?",
			ZH: "消息重放：六种队列里，哪些能把已消费、已确认的消息再投一遍？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "All that store messages: lists, Streams, RabbitMQ and Kafka.", ZH: "凡是存消息的都能：List、Stream、RabbitMQ、Kafka。"},
				If: learn.Conditions{"again-redis-list": learn.Is(orders), "again-rabbitmq": learn.Is(orders), "again-redis-streams": learn.Is(orders), "again-kafka": learn.Is(orders)}},
			{Text: learn.Text{EN: "Only those that are a log: Streams and Kafka.", ZH: "只有日志型的：Stream 和 Kafka。"},
				If: learn.Conditions{"again-redis-list": learn.Is(0), "again-rabbitmq": learn.Is(0), "again-redis-streams": learn.Is(orders), "again-kafka": learn.Is(orders)}},
			{Text: learn.Text{EN: "Only Kafka.", ZH: "只有 Kafka。"},
				If: learn.Conditions{"again-redis-list": learn.Is(0), "again-rabbitmq": learn.Is(0), "again-redis-streams": learn.Is(0), "again-kafka": learn.Is(orders)}},
		},
		Right: 1,
		Needs: sixNeed(),
		Takes: 6 * time.Second,
		Try: func(s *learn.Stand) {
			for _, c := range six(map[string][]string{"redis-streams": {"trim=0s"}}) {
				s.Step(c.backend+": ten orders, all of them acked. Then somebody asks for them again.", c.backend+"：十个订单全部确认，然后有人想再读一遍。")
				q := s.Queue(c.backend, c.params...)
				worker := s.Consumer(q)
				s.Publish(q, orders)
				s.Must(worker.Ack(s.Context(), s.Take(worker, orders)...))
				s.Must(worker.Close())

				replayer, can := q.(queue.Replayer)
				if !can {
					s.Count("again-"+c.backend, int64(len(s.TakeFor(s.Consumer(q), orders, 300*time.Millisecond))), c.backend+": delivered again of 10", c.backend+"：10 个里重新投递的")
					continue
				}
				again, err := replayer.Replay(s.Context(), queue.From{})
				s.Must(err)
				s.After(again.Close)
				s.Count("again-"+c.backend, int64(len(s.TakeFor(again, orders, 10*time.Second))), c.backend+": delivered again of 10", c.backend+"：10 个里重新投递的")

				// The brokers' clocks count in milliseconds.
				noon := time.Now().Add(2 * time.Millisecond)
				s.Eventually("a later millisecond", time.Second, func() bool { return time.Since(noon) > 2*time.Millisecond })
				s.Publish(q, 3)
				later, err := replayer.Replay(s.Context(), queue.From{Time: noon})
				s.Must(err)
				s.After(later.Close)
				s.Count("since-"+c.backend, int64(len(s.Take(later, 3))+len(s.TakeFor(later, 1, 300*time.Millisecond))), c.backend+": of 13, from a point in time on", c.backend+"：13 个里从某时刻起的")
			}
		},
		Expect: learn.Conditions{
			"again-memory": learn.Is(0), "again-redis-pubsub": learn.Is(0), "since-redis-streams": learn.Is(3), "since-kafka": learn.Is(3),
		},
		Why: learn.Text{
			EN: "A queue forgets what was acked: of ten orders the list gave {again-redis-list} again, RabbitMQ {again-rabbitmq}, memory {again-memory} and Pub/Sub {again-redis-pubsub}. A log keeps the message and moves only a mark of how far each group has read, so that Streams delivered {again-redis-streams} again and Kafka {again-kafka}. Both also begin at a time: {since-redis-streams} and {since-kafka} of thirteen orders were newer than it.",
			ZH: "队列在确认后就忘掉：十个订单，List 再给出 {again-redis-list} 个，RabbitMQ {again-rabbitmq} 个，内存队列 {again-memory} 个，Pub/Sub {again-redis-pubsub} 个。日志保留消息，只移动各组读到哪里的标记，所以 Stream 再投 {again-redis-streams} 个，Kafka {again-kafka} 个。两者还能从某个时刻开始：十三个订单里有 {since-redis-streams} 和 {since-kafka} 个在那之后。",
		},
		Say: learn.Text{
			EN: "Choose a log, Kafka or a Stream (or RabbitMQ's queue type stream, not tried here), when new systems must read old orders or a bug in a consumer must be made good. How far back it goes is its retention: a Stream that is trimmed after the ack replays nothing. A replay repeats every effect, so the handler must be idempotent.",
			ZH: "新系统要读历史订单、或要补救消费端的 bug，就选日志型：Kafka 或 Redis Stream（RabbitMQ 另有 stream 类型的队列，这里没有测）。能回放多久取决于保留策略：确认后就裁剪的 Stream 无从重放。重放会重复每一次副作用，处理必须幂等。",
		},
	}
}
