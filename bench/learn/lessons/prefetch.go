package lessons

import (
	"net/url"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"queuelab/bench/learn"
	"queuelab/queue"
)

func prefetch() learn.Lesson {
	const messages, few = 2000, 50
	return learn.Lesson{
		Number: 19, Name: "prefetch-unset", Topic: learn.RabbitMQ,
		Question: learn.Text{
			EN: "What happens in RabbitMQ when nobody sets a prefetch?",
			ZH: "RabbitMQ 不设置 prefetch 会怎样？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "Nothing bad: a consumer gets the next message when it has acked the one before.", ZH: "没什么：消费者确认了上一条，才会拿到下一条。"},
				If: learn.Conditions{"greedy-held": learn.Is(1)}},
			{Text: learn.Text{EN: "The first consumer gets the whole queue into its memory, and a second one finds nothing to do.", ZH: "整个队列都推进第一个消费者的内存，后来的消费者没有活干。"},
				If: learn.Conditions{"greedy-held": learn.Is(messages), "greedy-second": learn.Is(0)}},
			{Text: learn.Text{EN: "Messages are pushed early, but a consumer that joins gets its share of them.", ZH: "消息会提前推送，但新加入的消费者仍能分到一份。"},
				If: learn.Conditions{"greedy-held": learn.AtLeast(2), "greedy-second": learn.AtLeast(1)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "rabbitmq"}},
		Takes: time.Second,
		Try: func(s *learn.Stand) {
			u := s.URL("rabbitmq", "settle=0s", "prefetch=50")
			q := s.Open(u)
			s.Step("A backlog of 2000 messages.", "先积压 2000 条消息。")
			s.Must(s.Publisher(q).Publish(s.Context(), s.Messages(messages)...))

			s.Step("A consumer that never set a prefetch takes the first message and works on it.", "一个没有设置 prefetch 的消费者取到第一条，慢慢处理。")
			first := s.RabbitMQ()
			<-greedy(s, first, rabbitQueue(s, u))
			s.Eventually("the broker to stop pushing", 10*time.Second, func() bool { return s.Backlog(q).Ready == 0 })
			s.Count("greedy-held", messages-s.Backlog(q).Ready, "held by a consumer that works on one, without a prefetch", "不设 prefetch，只处理着一条的消费者手里的消息")

			s.Step("A second one like it comes to help.", "又来一个同样的消费者帮忙。")
			second := s.RabbitMQ()
			got := greedy(s, second, rabbitQueue(s, u))
			s.Count("greedy-second", arrive(got, 500*time.Millisecond), "that the second consumer got in half a second", "第二个消费者半秒内拿到的消息")

			s.Step("The first one's connection ends, as it does when a process dies.", "第一个消费者的连接断开，进程挂掉时也是这样。")
			s.Must(first.Close())
			var again int64
			s.Eventually("the messages to come again", 10*time.Second, func() bool {
				again += arrive(got, 50*time.Millisecond)
				return again >= messages
			})
			s.Count("greedy-again", again, "delivered again when its connection ended", "它断开之后重新投递的消息")
			s.Must(second.Close())
			s.Eventually("the messages to be back", 10*time.Second, func() bool { return s.Backlog(q).Ready == messages })

			s.Step("Now two consumers with prefetch=50, each of which takes one message.", "换成两个 prefetch=50 的消费者，各取一条。")
			left := func() int64 { return s.Backlog(q).Ready }
			take := func(c queue.Consumer, held int64) {
				s.Take(c, 1)
				s.Eventually("the broker to stop pushing", 10*time.Second, func() bool { return left() <= messages-held })
			}
			take(s.Consumer(q), few)
			held := messages - left()
			s.Count("bounded-held", held, "held by the first consumer with prefetch=50", "prefetch=50 时第一个消费者手里的消息")
			take(s.Consumer(q), 2*few)
			s.Count("bounded-second", messages-left()-held, "and by the second one", "第二个消费者手里的消息")
		},
		Expect: learn.Conditions{"greedy-again": learn.Is(messages), "bounded-held": learn.Is(few), "bounded-second": learn.Is(few)},
		Why: learn.Text{
			EN: "RabbitMQ pushes, and without a prefetch nothing bounds what is unacked: a consumer that worked on one message held {greedy-held}, and its colleague got {greedy-second}. When its connection ended, {greedy-again} came again. With prefetch=50 it held {bounded-held}, and the second one got {bounded-second} of its own.",
			ZH: "RabbitMQ 是推模式，不设 prefetch，未确认的消息就没有上限：只处理着一条的消费者手里有 {greedy-held} 条，它的同伴拿到 {greedy-second} 条。它一断开，{greedy-again} 条全部重新投递。设 prefetch=50 后它手里是 {bounded-held} 条，第二个消费者也分到 {bounded-second} 条。",
		},
		Say: learn.Text{
			EN: "Prefetch is how many unacked messages a consumer may hold; the default of the protocol is no limit. Without it one slow consumer hoards the queue in its memory, and scaling out does nothing for the backlog. I set it to what a consumer handles in about a second, and small where handling is slow.",
			ZH: "prefetch 是一个消费者最多可以持有的未确认消息数，协议默认不限。不设的话，一个慢消费者会把队列囤进内存，扩容对已有积压也没用。我按消费者大约一秒能处理的量来设，处理慢就设小。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "Consumer prefetch", ZH: "消费者预取"}, URL: "https://www.rabbitmq.com/docs/consumer-prefetch"},
			{Cell: "rabbitmq/classic consumer-kill-mid-handle"},
		},
	}
}

// rabbitQueue is the name that the broker knows a queue of the backend by.
func rabbitQueue(s *learn.Stand, queueURL string) string {
	u, err := url.Parse(queueURL)
	s.Must(err)
	return u.Query().Get("queue") + ".workers"
}

// greedy consumes without a prefetch, and acks nothing.
func greedy(s *learn.Stand, c *amqp.Connection, name string) <-chan amqp.Delivery {
	ch, err := c.Channel()
	s.Must(err)
	got, err := ch.Consume(name, "greedy", false, false, false, false, nil)
	s.Must(err)
	return got
}

// arrive counts what comes until so long nothing has come.
func arrive(got <-chan amqp.Delivery, quiet time.Duration) (n int64) {
	for {
		select {
		case _, open := <-got:
			if !open {
				return n
			}
			n++
		case <-time.After(quiet):
			return n
		}
	}
}
