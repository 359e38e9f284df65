package lessons

import (
	"context"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"queuelab/bench/fault"
	"queuelab/bench/learn"
	"queuelab/bench/node"
	"queuelab/queue"
)

func kafkaCommit() learn.Lesson {
	const messages = 6
	return learn.Lesson{
		Number: 26, Name: "commit-what-is-finished", Topic: learn.Kafka,
		Question: learn.Text{
			EN: "Messages of a partition are handled concurrently, and the last of them is done first. Which offset may be committed?",
			ZH: "同一分区并发消费，最后一条先处理完，应该提交哪个 offset？先提交还是先处理？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "Its own: Kafka keeps track of each message, and the others stay open.", ZH: "提交它自己的：Kafka 逐条记录，其他的仍算未完成。"},
				If: learn.Conditions{"highest-skipped": learn.Is(0)}},
			{Text: learn.Text{EN: "Only as far as everything before is done: an offset covers all below it, and a crash would skip them.", ZH: "只能提交到连续完成的位置：offset 覆盖它之前的一切，提交过头一崩溃就漏掉。"},
				If: learn.Conditions{"highest-skipped": learn.AtLeast(1), "prefix-skipped": learn.Is(0)}},
			{Text: learn.Text{EN: "It does not matter: after a crash the group starts at the oldest message that it has not seen.", ZH: "都一样：崩溃后会从没消费过的最早一条开始。"},
				If: learn.Conditions{"highest-skipped": learn.Is(0), "prefix-skipped": learn.Is(0)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "kafka"}},
		Takes: 8 * time.Second,
		Try: func(s *learn.Stand) {
			s.Step("Six messages in one partition. A reader takes five, finishes the first two and the fifth, commits the fifth, and is gone.",
				"一个分区六条消息。取五条，只做完第 1、2、5 条，提交第 5 条，然后退出。")
			u := s.URL("kafka", "partitions=1")
			q := s.Open(u)
			s.Publish(q, messages)
			unfinished := []string{s.Messages(messages)[2].ID, s.Messages(messages)[3].ID, s.Messages(messages)[5].ID}
			s.Count("highest-skipped", missing(unfinished, highest(s, kafkaTopic(s, u), 5)), "unfinished, and never delivered again, with the highest offset committed", "提交最大 offset 后，没做完也不再投递的")

			s.Step("The same with our backend: it takes five, acks the first two and the fifth, and ends.", "换成我们的后端：取五条，确认第 1、2、5 条，然后结束。")
			q = s.Queue("kafka", "partitions=1", "session=1s")
			s.Publish(q, messages)
			c := s.Consumer(q)
			ds := s.Take(c, 5)
			s.Must(c.Ack(s.Context(), ds[0], ds[1]))
			s.Must(c.Ack(s.Context(), ds[4]))
			s.Must(c.Close())
			again := ids(s.Drain(s.Consumer(q), time.Second))
			s.Count("prefix-skipped", missing(unfinished, again), "unfinished and never delivered again, with the finished prefix committed", "只提交连续前缀时，没做完也不再投递的")
			s.Count("prefix-again", int64(len(again))-3, "finished, and delivered again", "做完了又投递一次的")

			s.Step("Commit first: a consumer that commits what it receives is killed while it handles a message.", "先提交后处理：收到就提交的消费者在处理途中被 kill -9。")
			s.Count("before-lost", killed(s, "commit=before"), "of 10 lost by a kill, committed before they were handled", "先提交：kill 之后 10 条里丢失的")
			s.Step("Handle first: the same kill of one that commits with the ack.", "先处理后提交：同样的 kill。")
			s.Count("after-lost", killed(s, "commit=after"), "of 10 lost by a kill, committed after they were handled", "后提交：kill 之后 10 条里丢失的")
		},
		Expect: learn.Conditions{
			"highest-skipped": learn.Is(2), "prefix-again": learn.Is(1), "before-lost": learn.AtLeast(1), "after-lost": learn.Is(0),
		},
		Why: learn.Text{
			EN: "A group keeps one number per partition: everything below it counts as done. Committing the highest offset skipped {highest-skipped} messages that nobody had finished. Committing the finished prefix skipped {prefix-skipped}, and delivered {prefix-again} finished one again. Committing before the work lost {before-lost} in a kill, and after it {after-lost}.",
			ZH: "消费组在每个分区只记一个数：它之前的都算做完。提交最大 offset，漏掉了 {highest-skipped} 条没人做完的。只提交连续完成的前缀，漏掉 {prefix-skipped} 条，重复投递 {prefix-again} 条做完的。先提交后处理，一次 kill 丢了 {before-lost} 条；后提交丢了 {after-lost} 条。",
		},
		Say: learn.Text{
			EN: "Handle first, commit after: a crash then repeats, and does not lose. With concurrent handlers I track what is done per partition and commit only the contiguous prefix, with a bound on how far one slow message may hold it up. Repeats are harmless because the effect is unique by message id.",
			ZH: "先处理后提交：崩溃只会重复，不会丢。并发处理时按分区记录完成情况，只提交连续的前缀，并限制一条慢消息最多拖住多少。重复无害，因为结果按消息 id 唯一。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "Offsets and delivery semantics", ZH: "offset 与投递语义"}, URL: "https://kafka.apache.org/documentation/#semantics"},
			{Cell: "kafka/commit-before consumer-kill-mid-handle"},
		},
	}
}

// missing counts the ids that are not among those that came.
func missing(want, came []string) (n int64) {
	for _, id := range want {
		if !slices.Contains(came, id) {
			n++
		}
	}
	return n
}

// highest takes n messages with a reader, commits the last one alone, and reads on
// with a second reader of the group for as long as something comes.
func highest(s *learn.Stand, topic string, n int) (rest []string) {
	open := func() *kafka.Reader {
		return kafka.NewReader(kafka.ReaderConfig{
			Brokers: []string{s.KafkaAddr()}, Topic: topic, GroupID: s.Name("naive"), StartOffset: kafka.FirstOffset,
			MaxWait: 100 * time.Millisecond, SessionTimeout: time.Second, HeartbeatInterval: 200 * time.Millisecond,
			JoinGroupBackoff: 100 * time.Millisecond,
		})
	}
	r := open()
	s.After(r.Close)
	var last kafka.Message
	for range n {
		m, err := r.FetchMessage(s.Context())
		s.Must(err)
		last = m
	}
	s.Must(r.CommitMessages(s.Context(), last), r.Close())

	r = open()
	s.After(r.Close)
	for wait := 10 * time.Second; ; wait = time.Second {
		ctx, cancel := context.WithTimeout(s.Context(), wait)
		m, err := r.FetchMessage(ctx)
		cancel()
		if err != nil {
			s.Must(s.Context().Err(), r.Close())
			return rest
		}
		rest = append(rest, string(m.Value))
	}
}

func ids(ds []*queue.Delivery) (all []string) {
	for _, d := range ds {
		all = append(all, d.ID)
	}
	return all
}

// killed publishes 10 messages, has a consumer killed while it handles the first,
// lets another one finish the queue, and returns how many got no effect.
func killed(s *learn.Stand, params ...string) int64 {
	before := s.Account().Lost
	u := s.URL("kafka", append([]string{"partitions=1", "session=1s"}, params...)...)
	s.Open(u)
	p := s.Produce(u, node.Produce{Count: 10, Rate: 1000, Payload: 16})
	p.Produced()
	p.End()
	s.Consume(u, node.Consume{ReceiveMax: 4, CrashPoint: fault.MidHandle, CrashAtNth: 1}).Struck()
	s.Consume(u, node.Consume{ReceiveMax: 4})
	s.Settled(time.Second) // it was ready once the dead one was out of the group
	return s.Account().Lost - before
}
