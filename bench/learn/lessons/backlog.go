package lessons

import (
	"path/filepath"
	"time"

	"queuelab/app/sale"
	"queuelab/bench/learn"
	"queuelab/bench/node"
)

func backlog() learn.Lesson {
	return learn.Lesson{
		Number: 29, Name: "backlog", Topic: learn.Consuming,
		Question: learn.Text{
			EN: "Messages pile up: do more consumers drain them faster? Four of them, on Streams and on Kafka.",
			ZH: "消息积压了，多加消费者就能消化得更快吗？在 Stream 和 Kafka 上各用 4 个来试。",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "Yes: four do the work of four, whatever the queue.", ZH: "能：不管什么队列，4 个就顶 4 个用。"},
				If: learn.Conditions{"streams": learn.AtLeast(2), "kafka-one": learn.AtLeast(2)}},
			{Text: learn.Text{EN: "On Streams yes; on Kafka only up to its partitions: with one, three of four are idle.", ZH: "Stream 能；Kafka 最多到分区数为止：只有一个分区时，4 个里有 3 个闲着。"},
				If: learn.Conditions{"streams": learn.AtLeast(2), "kafka-one": learn.AtMost(1.5), "kafka-four": learn.AtLeast(2)}},
			{Text: learn.Text{EN: "No: the queue itself is what is slow.", ZH: "不能：瓶颈在队列本身。"},
				If: learn.Conditions{"streams": learn.AtMost(1.5)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "redis"}, {Kind: "kafka"}},
		Takes: 10 * time.Second,
		Try: func(s *learn.Stand) {
			const messages = 16
			// Nothing but the wait for, say, a payment: the time of one message.
			const each = 250 * time.Millisecond

			s.Step("A voucher allows 20 orders in flight. 100 buyers click at once, and nobody consumes.", "一张券最多允许 20 个在途订单。100 个买家同时点击，没有消费者。")
			g := openGate(s, 1000, func(v *sale.Voucher) { v.MaxInFlight = 20 })
			s.Count("admitted", g.rush(100), "of 100 clicks admitted", "100 次点击里放行的")
			s.Do(s.Redis(), "HKEYS", g.key("buyers"))
			_, v := g.click(g.buyer(100))
			s.Count("refused", count(v == sale.Crowded), "told to come again when it is full, nothing taken", "满了之后被告知稍后再试的")

			s.Step("16 messages wait in each queue. A consumer needs 250 ms for one: one consumer here, four there.", "每个队列积压 16 条，处理一条要 250 毫秒；有的 1 个消费者，有的 4 个。")
			type drain struct {
				name, backend, params string
				consumers             int
				sent                  *learn.Process
			}
			drains := []*drain{
				{name: "streams-1", backend: "redis-streams", params: "claim=10s", consumers: 1},
				{name: "streams-4", backend: "redis-streams", params: "claim=10s", consumers: 4},
				{name: "kafka-1", backend: "kafka", params: "partitions=1", consumers: 4},
				{name: "kafka-4", backend: "kafka", params: "partitions=4", consumers: 4},
			}
			var producers []*learn.Process
			for _, d := range drains {
				url := s.URL(d.backend, d.params)
				q := s.Open(url)
				s.Consume(url, node.Consume{Consumers: d.consumers, HandleDelay: each, Effects: "sqlite:" + filepath.Join(s.Dir(), d.name+".db")})
				d.sent = s.Produce(url, node.Produce{Count: messages, Senders: 4, Batch: 1, Keys: "none"})
				d.sent.Produced()
				if d.name == "streams-1" {
					b := s.Backlog(q)
					s.Count("waiting", b.Ready+b.InFlight, "of 16 wait when the last is published", "发完最后一条时积压的，共 16 条")
				}
				producers = append(producers, d.sent)
			}
			var took []float64
			s.Eventually("all queues to be drained", 25*time.Second, func() bool {
				took = took[:0]
				for _, a := range s.Accounts(producers...) {
					if a.Effect.TotalCount() == messages {
						took = append(took, float64(a.Effect.Max())/1e6)
					}
				}
				return len(took) == len(drains)
			})
			s.Figure("wait", took[0], "ms", learn.Text{EN: "the longest wait with one consumer, from publish to effect", ZH: "1 个消费者时，从发布到落库最久的一条"})
			alone := float64((messages * each).Milliseconds())
			atWork := func(name string, took float64, en, zh string) {
				s.Figure(name, alone/took, "", learn.Text{EN: "of four consumers at work, on " + en, ZH: zh + "：4 个消费者里实际在干活的"})
			}
			atWork("streams", took[1], "Streams", "Stream")
			atWork("kafka-one", took[2], "Kafka with one partition", "Kafka 一个分区")
			atWork("kafka-four", took[3], "Kafka with four partitions", "Kafka 四个分区")
		},
		Expect: learn.Conditions{"admitted": learn.Is(20), "refused": learn.Is(1), "waiting": learn.AtLeast(8)},
		Why: learn.Text{
			EN: "A backlog is time: {waiting} of 16 waited when the last was published, and one of them took effect after {wait} only. Streams hand each message to whoever is free: {streams} of four consumers were at work on average. A Kafka partition belongs to one consumer of a group: {kafka-one} of four were at work on one partition, and {kafka-four} on four. What must not pile up at all is stopped at the door: of 100 clicks the gate let in {admitted}, and took nothing for the others.",
			ZH: "积压就是时间：发完最后一条时 16 条里还有 {waiting} 条在等，最久的一条 {wait} 才落库。Stream 谁空闲就给谁，4 个消费者里平均有 {streams} 个在干活。Kafka 一个分区只归组内一个消费者：一个分区时 4 个里只有 {kafka-one} 个在干活，四个分区时有 {kafka-four} 个。根本不该堆起来的，在门口拦住：100 次点击准入放行 {admitted} 次，其余什么都没扣。",
		},
		Say: learn.Text{
			EN: "I look at the age of the oldest message, not only at the depth. First find out why consumers are slow, then add consumers, which on Kafka needs partitions enough beforehand; batches help too. And I bound the backlog at the door: better a quick \"come again\" than an order decided in an hour.",
			ZH: "看最老一条的等待时间，不只看深度。先查消费慢的原因，再加消费者（Kafka 要事先有足够的分区），并改成批量处理。同时在入口限制在途数量：快速返回“稍后再试”，好过一小时后才有结果。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "Kafka on consumers and partitions", ZH: "Kafka：消费者与分区"}, URL: "https://kafka.apache.org/documentation/#intro_consumers"},
		},
	}
}
