package lessons

import (
	"net/url"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"queuelab/bench/learn"
)

func kafkaLinger() learn.Lesson {
	return learn.Lesson{
		Number: 24, Name: "kafka-takes-a-second", Topic: learn.Kafka,
		Question: learn.Text{
			EN: "Why does sending one message to Kafka take a second, with kafka-go as it comes?",
			ZH: "为什么 kafka-go 默认配置下单条发送要 1 秒？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "Kafka is slow to store it safely: without acks it would be quick.", ZH: "Kafka 落盘和确认慢：acks=0 就快了。"},
				If: learn.Conditions{"default": learn.AtLeast(900), "no-acks": learn.AtMost(700)}},
			{Text: learn.Text{EN: "The client waits for more messages to fill its batch; the broker answers at once.", ZH: "客户端在等更多消息凑满一批，broker 是立刻回答的。"},
				If: learn.Conditions{"default": learn.AtLeast(900), "no-acks": learn.AtLeast(900), "full": learn.AtMost(700)}},
			{Text: learn.Text{EN: "It is the first message only, which has to find the partition's leader.", ZH: "只有第一条慢，要先找分区的 leader。"},
				If: learn.Conditions{"default": learn.AtMost(700)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "kafka"}},
		Takes: 5 * time.Second,
		Try: func(s *learn.Stand) {
			u := s.URL("kafka", "partitions=1")
			q := s.Open(u)
			messages := func(n int) (ms []kafka.Message) {
				for _, m := range s.Messages(n) {
					ms = append(ms, kafka.Message{Key: []byte(m.ID), Value: m.Body})
				}
				return ms
			}
			// send writes once to find the way, and times the second write.
			send := func(w *kafka.Writer, n int) time.Duration {
				w.Addr, w.Topic = kafka.TCP(s.KafkaAddr()), kafkaTopic(s, u)
				w.Transport = &kafka.Transport{} // a connection pool of its own, which Close below ends
				defer w.Transport.(*kafka.Transport).CloseIdleConnections()
				defer w.Close()
				s.Must(w.WriteMessages(s.Context(), messages(n)...))
				began := time.Now()
				s.Must(w.WriteMessages(s.Context(), messages(n)...))
				return time.Since(began)
			}

			s.Step("A Writer as it comes, but for acks=all. Its second message is timed.", "默认的 Writer，只设 acks=all，给第二条计时。")
			s.Millis("default", send(&kafka.Writer{RequiredAcks: kafka.RequireAll}, 1), "for one message, with the defaults", "默认配置发一条")
			s.Step("The same with acks=0.", "改成 acks=0。")
			s.Millis("no-acks", send(&kafka.Writer{RequiredAcks: kafka.RequireNone}, 1), "for one message with acks=0", "acks=0 发一条")
			s.Step("The same with a full batch: 100 messages in one call.", "一次凑满一批：一个调用发 100 条。")
			s.Millis("full", send(&kafka.Writer{RequiredAcks: kafka.RequireAll}, 100), "for 100 messages in one call, with the defaults", "默认配置一次发 100 条")
			s.Step("One message with BatchTimeout 5 ms.", "BatchTimeout 设为 5 ms，发一条。")
			s.Millis("tuned", send(&kafka.Writer{RequiredAcks: kafka.RequireAll, BatchTimeout: 5 * time.Millisecond}, 1), "for one message with BatchTimeout 5 ms", "BatchTimeout 5 ms 发一条")

			s.Step("Our backend, which sends at once and gathers while a request is under way.", "我们的后端：立刻发送，在请求途中攒下一批。")
			p := s.Publisher(q)
			s.Offer(p, s.Messages(1)...)
			began := time.Now()
			o := s.Offer(p, s.Messages(10)...)
			s.Millis("ours", time.Since(began)/10, "for one message of our backend, acks=all, mean of 10", "我们的后端 acks=all 发一条，10 条平均")
			s.Count("ours-accepted", o.Accepted, "of 10 accepted", "10 条中被接受的")
		},
		Expect: learn.Conditions{"tuned": learn.AtMost(700), "ours": learn.AtMost(500), "ours-accepted": learn.Is(10)},
		Why: learn.Text{
			EN: "The Writer collects a batch of 100 and sends it when it is full or BatchTimeout is over, which is 1 s unless set. So one message took {default} and with acks=0 {no-acks}, while 100 in one call took {full}. With BatchTimeout 5 ms one message took {tuned}. Our backend sends at once, and what comes while a request is under way is the next batch: {ours} a message.",
			ZH: "Writer 攒满 100 条或等到 BatchTimeout 才发送，后者默认 1 秒。所以发一条要 {default}，acks=0 也要 {no-acks}，而一次发 100 条只要 {full}。BatchTimeout 设成 5 ms，一条只要 {tuned}。我们的后端立刻发送，请求途中来的消息自然成为下一批：每条 {ours}。",
		},
		Say: learn.Text{
			EN: "That second is the client's linger, not Kafka. I set the batch timeout to a few milliseconds, or send concurrently so that batches fill. And I look at every default of a client before I measure a broker with it.",
			ZH: "那一秒是客户端攒批的等待，不是 Kafka 慢。我把攒批时间设成几毫秒，或者并发发送让批自然填满。用客户端测 broker 之前，先看它的每个默认值。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "kafka-go's Writer and its defaults", ZH: "kafka-go 的 Writer 及默认值"}, URL: "https://pkg.go.dev/github.com/segmentio/kafka-go#Writer"},
		},
	}
}

// kafkaTopic is the topic of a queue of the backend.
func kafkaTopic(s *learn.Stand, queueURL string) string {
	u, err := url.Parse(queueURL)
	s.Must(err)
	return strings.TrimPrefix(u.Path, "/")
}
