package lessons

import (
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"queuelab/backends/rediszset"
	"queuelab/bench/learn"
)

func ttlHead() learn.Lesson {
	const long, short = 2 * time.Second, 200 * time.Millisecond
	return learn.Lesson{
		Number: 22, Name: "ttl-blocks-at-the-head", Topic: learn.RabbitMQ,
		Question: learn.Text{
			EN: "A delayed queue out of TTL and dead letters: one message may wait 2 s, the next one 0.2 s. When does the second one come?",
			ZH: "用 TTL 加死信队列做延迟队列：第一条延迟 2 秒，第二条 0.2 秒，第二条什么时候到？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "After 0.2 s: each message expires by its own clock.", ZH: "0.2 秒后：每条消息各算各的时间。"},
				If: learn.Conditions{"behind": learn.AtMost(1200)}},
			{Text: learn.Text{EN: "After 2 s: a queue expires its head only, and the short one stands behind the long one.", ZH: "2 秒后：队列只检查队头，短的被长的堵在后面。"},
				If: learn.Conditions{"behind": learn.AtLeast(1800), "behind-came": learn.Is(1)}},
			{Text: learn.Text{EN: "Never: what expires inside a queue is dropped.", ZH: "永远不到：不在队头过期的会被丢弃。"},
				If: learn.Conditions{"behind-came": learn.Is(0)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "rabbitmq"}, {Kind: "redis"}},
		Takes: 3 * time.Second,
		Try: func(s *learn.Stand) {
			ch, err := s.RabbitMQ().Channel()
			s.Must(err)
			queues := 0
			declare := func(args amqp.Table) string {
				queues++
				name := s.Name(fmt.Sprintf("wait%d", queues))
				_, err := ch.QueueDeclare(name, false, true, false, false, args)
				s.Must(err)
				return name
			}
			dead := declare(nil)
			wait := func(more amqp.Table) string {
				args := amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
				for k, v := range more {
					args[k] = v
				}
				return declare(args)
			}
			put := func(queue, what string, ttl string) {
				s.Must(ch.PublishWithContext(s.Context(), "", queue, false, false, amqp.Publishing{MessageId: s.ID + "-" + what, Expiration: ttl}))
			}
			expired, err := ch.Consume(dead, "", true, false, false, false, nil)
			s.Must(err)
			// come waits for the short one, and tells whether the long one was first.
			come := func() (after time.Duration, came, alone int64) {
				began := time.Now()
				alone = 1
				for {
					select {
					case d := <-expired:
						if d.MessageId == s.ID+"-short" {
							return time.Since(began), 1, alone
						}
						alone = 0
					case <-time.After(long + 3*time.Second):
						return 0, 0, 0
					}
				}
			}

			s.Step("One waiting queue; each message has its own expiration: 2 s, then 0.2 s.", "一个等待队列，消息各带过期时间：先 2 秒，再 0.2 秒。")
			one := wait(nil)
			put(one, "long", "2000")
			put(one, "short", "200")
			after, came, first := come()
			s.Millis("behind", after, "until the short one came, behind the long one", "排在长延迟后面的短延迟消息，多久才到")
			s.Count("behind-came", came, "that it came at all", "它最终到了")
			s.Count("behind-first", first, "that it came before the long one", "它先于长延迟到达")

			s.Step("A waiting queue for each delay.", "每种延迟单独一个等待队列。")
			put(wait(amqp.Table{"x-message-ttl": int64(2000)}), "long", "")
			put(wait(amqp.Table{"x-message-ttl": int64(200)}), "short", "")
			after, _, first = come()
			s.Millis("apart", after, "until the short one came from a queue of its own", "短延迟有自己的队列时，多久到")
			s.Count("apart-first", first, "that it then came before the long one", "这时它先于长延迟到达")

			s.Step("Our sorted set in Redis, whose score is the time at which a message is due.", "我们的 Redis 有序集合，分数就是到期时间。")
			q := s.Queue("redis-zset")
			p, c := s.Publisher(q), s.Consumer(q)
			for i, delay := range []time.Duration{long, short} {
				m := s.Messages(2)[i]
				m.Headers = map[string]string{rediszset.Header: delay.String()}
				s.Must(p.Publish(s.Context(), m))
			}
			d := s.Take(c, 1)[0]
			s.Must(c.Ack(s.Context(), d))
			s.Count("set-first", b2i(d.ID == s.Messages(2)[1].ID), "that the short one came first from the sorted set", "有序集合中短延迟先到")
		},
		Expect: learn.Conditions{"behind-first": learn.Is(0), "apart": learn.AtMost(1800), "apart-first": learn.Is(1), "set-first": learn.Is(1)},
		Why: learn.Text{
			EN: "RabbitMQ dead-letters an expired message when it is at the head of its queue, and not before. So the one of 200 ms stood behind that of 2000 ms, and came after {behind}. With a queue for each delay all in a queue expire in order, and it came after {apart}. A set that is sorted by due time has no head to stand behind.",
			ZH: "RabbitMQ 只有在过期消息到了队头时才把它转入死信。于是 200 ms 的排在 2000 ms 的后面，{behind} 才到。每种延迟一个队列，队内先到先过期，它 {apart} 就到了。按到期时间排序的集合没有队头阻塞。",
		},
		Say: learn.Text{
			EN: "TTL with dead letters is a delay queue only if all messages of a queue wait equally long: one queue per delay, or the delayed-message plugin. For arbitrary delays I take a sorted set by due time. Closing unpaid orders must not hang on either alone: a scan of the database finds what was missed.",
			ZH: "TTL 加死信只有在同一队列延迟都相同时才是合格的延迟队列：每种延迟一个队列，或者用延迟插件。任意延迟我用按到期时间排序的 zset。关闭超时订单不能只靠它们：还要有扫库兜底。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "Time to live, and its caveats", ZH: "TTL 及其注意事项"}, URL: "https://www.rabbitmq.com/docs/ttl"},
			{Text: learn.Text{EN: "Dead letter exchanges", ZH: "死信交换机"}, URL: "https://www.rabbitmq.com/docs/dlx"},
		},
	}
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
