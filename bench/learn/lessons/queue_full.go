package lessons

import (
	"slices"
	"time"

	"queuelab/bench/learn"
)

func queueFull() learn.Lesson {
	const room, offered = 10, 15
	return learn.Lesson{
		Number: 21, Name: "queue-full", Topic: learn.RabbitMQ,
		Question: learn.Text{
			EN: "The queue is full. Who loses: those who came first, those who come last, or nobody?",
			ZH: "队列满了怎么办？丢的是最早的、最新的，还是都不丢？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "By default the new message is refused, and its publisher hears of it.", ZH: "默认拒绝新消息，发送方会知道。"},
				If: learn.Conditions{"drop-accepted": learn.Is(room), "drop-lost": learn.Is(0)}},
			{Text: learn.Text{EN: "By default the oldest are dropped, though they were confirmed; reject-publish refuses the newest instead.", ZH: "默认丢掉最早的，尽管它们已经确认过；reject-publish 则拒绝最新的。"},
				If: learn.Conditions{"drop-accepted": learn.Is(offered), "drop-lost": learn.Is(offered - room), "drop-oldest": learn.Is(offered - room)}},
			{Text: learn.Text{EN: "By default the newest are dropped silently, and those that waited stay.", ZH: "默认悄悄丢掉最新的，排着队的都留着。"},
				If: learn.Conditions{"drop-accepted": learn.Is(offered), "drop-lost": learn.Is(offered - room), "drop-oldest": learn.Is(0)}},
			{Text: learn.Text{EN: "Nobody: the publisher is held up until there is room.", ZH: "都不丢：发送方会被挡住，直到有空位。"},
				If: learn.Conditions{"drop-accepted": learn.AtMost(offered - 1), "drop-lost": learn.Is(0), "drop-refused": learn.Is(0)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "rabbitmq"}},
		Takes: 2 * time.Second,
		Try: func(s *learn.Stand) {
			fill := func(overflow string) (o learn.Offered, delivered []string) {
				q := s.Queue("rabbitmq", "settle=0s", "max-length=10", "overflow="+overflow)
				o = s.Offer(s.Publisher(q), s.Messages(offered)...)
				for _, d := range s.Drain(s.Consumer(q), 500*time.Millisecond) {
					delivered = append(delivered, d.ID)
				}
				return o, delivered
			}
			lost := func(o learn.Offered, delivered []string) []string {
				return slices.DeleteFunc(slices.Clone(o.IDs), func(id string) bool { return slices.Contains(delivered, id) })
			}

			s.Step("A queue with room for 10 and the default overflow, drop-head. 15 are published, then all is read.", "队列上限 10，用默认的 drop-head。发 15 条，再全部读出来。")
			o, delivered := fill("drop-head")
			gone := lost(o, delivered)
			s.Count("drop-accepted", o.Accepted, "confirmed by a queue that drops", "drop-head 确认了的")
			s.Count("drop-refused", o.Rejected, "refused by it", "drop-head 拒绝了的")
			s.Count("drop-lost", int64(len(gone)), "confirmed and never delivered", "确认过却从未投递的")
			var oldest int64
			for _, m := range s.Messages(offered - room) {
				if slices.Contains(gone, m.ID) {
					oldest++
				}
			}
			s.Count("drop-oldest", oldest, "of those among the oldest five", "其中属于最早五条的")

			s.Step("The same with overflow=reject-publish.", "换成 overflow=reject-publish。")
			o, delivered = fill("reject-publish")
			s.Count("reject-accepted", o.Accepted, "confirmed by a queue that rejects", "reject-publish 确认了的")
			s.Count("reject-refused", o.Rejected, "refused by it", "reject-publish 拒绝了的")
			s.Count("reject-lost", int64(len(lost(o, delivered))), "confirmed and never delivered", "确认过却从未投递的")
		},
		Expect: learn.Conditions{
			"reject-accepted": learn.Is(room), "reject-refused": learn.Is(offered - room), "reject-lost": learn.Is(0),
		},
		Why: learn.Text{
			EN: "A bound makes RabbitMQ drop from the head unless told otherwise: all {drop-accepted} were confirmed, and {drop-lost} of them vanished, the {drop-oldest} oldest. With reject-publish it confirmed {reject-accepted}, refused {reject-refused} with a nack, and lost {reject-lost}.",
			ZH: "设了上限，RabbitMQ 默认从队头丢：{drop-accepted} 条全部确认，其中 {drop-lost} 条消失了，正是最早的 {drop-oldest} 条。用 reject-publish，它确认 {reject-accepted} 条，用 nack 拒绝 {reject-refused} 条，丢失 {reject-lost} 条。",
		},
		Say: learn.Text{
			EN: "First I bound the queue, and then I decide who loses, since somebody will. For orders the newest must be refused while their buyer still waits: reject-publish, and 429 to the buyer with the stock given back. Dropping the oldest is for data whose newest value matters, such as prices.",
			ZH: "先给队列设上限，再决定谁吃亏，因为总有人吃亏。订单应当拒绝最新的，买家还在等结果：用 reject-publish，给买家返回 429 并归还库存。丢最早的适合只看最新值的数据，比如行情。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "Queue length limit", ZH: "队列长度限制"}, URL: "https://www.rabbitmq.com/docs/maxlength"},
			{Cell: "rabbitmq/drop-head queue-limit"}, {Cell: "rabbitmq/reject-publish queue-limit"},
		},
	}
}
