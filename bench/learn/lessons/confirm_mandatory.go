package lessons

import (
	"time"

	"queuelab/bench/learn"
	"queuelab/bench/proxy"
	"queuelab/queue"
)

func confirmAndMandatory() learn.Lesson {
	return learn.Lesson{
		Number: 20, Name: "confirm-is-not-enough", Topic: learn.RabbitMQ,
		Question: learn.Text{
			EN: "How does a publisher know that RabbitMQ has its message? What do confirm and mandatory each tell?",
			ZH: "RabbitMQ 怎么保证发送不丢？confirm 和 mandatory 有什么区别？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "A confirm is enough: the broker confirms what it has put into a queue.", ZH: "confirm 就够了：消息进了队列才会确认。"},
				If: learn.Conditions{"blind-accepted": learn.Is(0)}},
			{Text: learn.Text{EN: "A message that no queue wants is confirmed too, and gone; mandatory brings it back.", ZH: "没有队列要的消息同样会被确认，然后消失；mandatory 才会退回它。"},
				If: learn.Conditions{"blind-accepted": learn.Is(1), "blind-delivered": learn.Is(0), "mandatory-rejected": learn.Is(1)}},
			{Text: learn.Text{EN: "Such a message is confirmed and gone, and mandatory changes nothing about it.", ZH: "这样的消息会被确认然后消失，mandatory 也没有用。"},
				If: learn.Conditions{"blind-accepted": learn.Is(1), "blind-delivered": learn.Is(0), "mandatory-rejected": learn.Is(0)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "rabbitmq"}},
		Takes: 2 * time.Second,
		Try: func(s *learn.Stand) {
			orders := func(params ...string) queue.Queue {
				return s.Queue("rabbitmq", append([]string{"settle=0s", "exchange=direct", "route=key", "bind=paid"}, params...)...)
			}
			to := func(key string) queue.Message {
				m := s.Messages(1)[0]
				m.Key = key
				return m
			}

			s.Step("A queue that wants messages of the key \"paid\". One of the key \"piad\" is published, with confirms and without mandatory.",
				"队列只绑定了 paid。用写错的 piad 发一条：开 confirm，不开 mandatory。")
			q := orders("mandatory=false")
			got := s.Offer(s.Publisher(q), to("piad"))
			s.Count("blind-accepted", got.Accepted, "confirmed without mandatory, though no queue wants it", "没有队列要、不开 mandatory 却得到确认的")
			s.Count("blind-delivered", int64(len(s.Drain(s.Consumer(q), 300*time.Millisecond))), "of those delivered", "其中投递了的")

			s.Step("The same with mandatory: it comes back before its confirm.", "开 mandatory 再发：确认之前先被退回。")
			q = orders()
			p := s.Publisher(q)
			got = s.Offer(p, to("piad"))
			s.Count("mandatory-rejected", got.Rejected, "refused with mandatory", "开 mandatory 后被拒绝的")
			s.Step("And with the right key.", "改用正确的 key。")
			got = s.Offer(p, to("paid"))
			s.Count("routed-accepted", got.Accepted, "accepted with the right key", "key 正确时被接受的")
			c := s.Consumer(q)
			s.Count("routed-delivered", int64(len(s.Drain(c, 300*time.Millisecond))), "of those delivered", "其中投递了的")

			s.Step("A confirm is lost on the network. The publisher tries again with the same id.", "确认在网络上丢了，发送方用同一个 id 重试。")
			lost := s.Proxy("rabbitmq").LoseReply(proxy.Published("rabbitmq"))
			got = s.Offer(p, to("paid"))
			s.Eventually("a confirm to be lost", 5*time.Second, func() bool { return closed(lost) })
			s.Count("unconfirmed", got.Unknown, "unknown since the confirm was lost", "确认丢失、结果未知的")
			s.Eventually("the retry to be confirmed", 10*time.Second, func() bool { return s.Offer(p, to("paid")).Accepted == 1 })
			s.Count("copies", int64(len(s.Drain(c, 500*time.Millisecond))), "deliveries of the one message after the retry", "重试之后同一条消息的投递次数")
		},
		Expect: learn.Conditions{
			"routed-accepted": learn.Is(1), "routed-delivered": learn.Is(1), "unconfirmed": learn.Is(1), "copies": learn.AtLeast(2),
		},
		Why: learn.Text{
			EN: "A confirm says that the broker has dealt with the message, and dropping what no queue wants is dealing with it: {blind-accepted} was confirmed and {blind-delivered} delivered. With mandatory the broker returns it before the confirm, and the publisher here counts it as refused: {mandatory-rejected}. Where the confirm itself was lost nobody knows ({unconfirmed} unknown): the retry is right, and it was delivered {copies} times.",
			ZH: "confirm 只说明 broker 处理完了这条消息，而把没有队列要的消息丢掉也算处理完：确认了 {blind-accepted} 条，投递了 {blind-delivered} 条。开了 mandatory，broker 会在确认之前把它退回，这里的发送方按拒绝计：{mandatory-rejected} 条。确认本身丢了就谁也不知道结果（未知 {unconfirmed} 条）：应当重试，于是它被投递了 {copies} 次。",
		},
		Say: learn.Text{
			EN: "Three things together: persistent messages in a durable queue, publisher confirms, and mandatory for what cannot be routed. A confirm that does not come is not a failure but unknown: retry with the same id. So the consumer must be idempotent.",
			ZH: "三样一起用：持久队列加持久消息、发送方 confirm、路由不到时靠 mandatory 退回。等不到确认不等于失败，而是未知：用同一个 id 重试。所以消费端必须幂等。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "When a published message is confirmed", ZH: "消息何时被确认"}, URL: "https://www.rabbitmq.com/docs/confirms"},
			{Cell: "rabbitmq/no-mandatory unroutable"},
		},
	}
}
