package lessons

import (
	"context"
	"time"

	"queuelab/bench/learn"
	"queuelab/bench/storage"
	"queuelab/queue"
)

func kafkaAcks() learn.Lesson {
	const messages = 200
	return learn.Lesson{
		Number: 25, Name: "acks-and-power", Topic: learn.Kafka,
		Question: learn.Text{
			EN: "Kafka on one node with acks=0, 1 and all: what is lost when the broker is killed, and what when the power goes?",
			ZH: "单节点 Kafka，acks=0/1/all：broker 被 kill -9 丢什么？断电又丢什么？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "acks=all loses nothing either way: it answers when the message is on disk.", ZH: "acks=all 都不丢：落盘了才应答。"},
				If: learn.Conditions{"kill-all": learn.Is(0), "cut-all": learn.Is(0)}},
			{Text: learn.Text{EN: "1 and all both survive the kill and both lose to the power cut; only a topic that flushes each message keeps them.", ZH: "1 和 all 都扛得住 kill，断电都会丢；只有逐条刷盘的 topic 留得住。"},
				If: learn.Conditions{"kill-1": learn.Is(0), "kill-all": learn.Is(0), "cut-1": learn.AtLeast(1), "cut-all": learn.AtLeast(1), "cut-flush": learn.Is(0)}},
			{Text: learn.Text{EN: "acks=1 loses to a kill, and all does not.", ZH: "acks=1 会被 kill 弄丢，all 不会。"},
				If: learn.Conditions{"kill-1": learn.AtLeast(1), "kill-all": learn.Is(0)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "kafka", Storage: true}},
		Takes: 16 * time.Second,
		Try: func(s *learn.Stand) {
			ways := []string{"1", "all", "flush"}
			topics := map[string]queue.Queue{
				"0":     s.Queue("kafka", "partitions=1", "acks=0"),
				"1":     s.Queue("kafka", "partitions=1", "acks=1", "timeout=500ms"),
				"all":   s.Queue("kafka", "partitions=1", "acks=all"),
				"flush": s.Queue("kafka", "partitions=1", "acks=all", "flush=1"),
			}
			publishers := map[string]queue.Publisher{}
			for way, q := range topics {
				publishers[way] = s.Publisher(q)
				s.Must(publishers[way].Publish(s.Context(), s.Messages(1)...))
			}
			b := s.Broker("kafka")
			s.Must(b.SettleStorage(s.Context())) // what is lost now was published after this

			s.Step("200 messages each with acks=1, with acks=all, and with acks=all into a topic with flush.messages=1. All are confirmed.",
				"acks=1、acks=all、以及 acks=all 加 flush.messages=1 的 topic，各发 200 条，全部得到确认。")
			for _, way := range ways {
				s.Must(publishers[way].Publish(s.Context(), s.Messages(messages)...))
			}
			s.Step("The broker stops answering. 200 with acks=0, and one with acks=1.", "broker 停住不应答。再发 acks=0 的 200 条，acks=1 的一条。")
			s.Must(b.Pause(s.Context()))
			o := s.Offer(publishers["0"], s.Messages(messages)...)
			s.Count("unanswered-0", o.Accepted, "with acks=0 \"sent\" to a broker that stands still", "broker 停住时 acks=0 仍“发送成功”的")
			o = s.Offer(publishers["1"], s.Messages(1)...)
			s.Count("unanswered-1", o.Unknown, "with acks=1 of which the publisher knows that it does not know", "acks=1 时发送方明知结果未知的")

			s.Step("The power goes, at one instant. First the broker comes back with all that it had written, as after a kill.", "此刻断电。先用进程写出的全部数据恢复，等同于 kill -9。")
			_, err := b.CutPower(s.Context())
			s.Must(err)
			s.StartAgain(func(ctx context.Context) error { return b.RestartFrom(ctx, storage.Crash) })
			lost := func(way string) int64 { return 1 + messages - waiting(s, topics[way]) }
			s.Count("kill-0", lost("0"), "of 200 \"sent\" with acks=0 lost by the kill", "acks=0 的 200 条，kill 丢失的")
			s.Count("kill-1", lost("1"), "of 200 with acks=1", "acks=1 的 200 条丢失的")
			s.Count("kill-all", lost("all"), "of 200 with acks=all", "acks=all 的 200 条丢失的")
			s.Step("Then with what was on disk at that instant.", "再用那一刻真正在磁盘上的数据恢复。")
			s.StartAgain(func(ctx context.Context) error { return b.RestartFrom(ctx, storage.Power) })
			s.Count("cut-1", lost("1"), "of 200 with acks=1 lost by the power cut", "acks=1 的 200 条，断电丢失的")
			s.Count("cut-all", lost("all"), "of 200 with acks=all", "acks=all 的 200 条丢失的")
			s.Count("cut-flush", lost("flush"), "of 200 with acks=all and flush.messages=1", "acks=all 且逐条刷盘的 200 条丢失的")
		},
		Expect: learn.Conditions{"unanswered-0": learn.Is(messages), "unanswered-1": learn.Is(1), "kill-0": learn.AtLeast(1)},
		Why: learn.Text{
			EN: "With acks=0 success means that bytes were written to a socket: {unanswered-0} were sent to a broker that stood still, and {kill-0} of them were lost. With acks=1 and all the broker has written the message to the page cache, which a kill leaves: {kill-1} and {kill-all} lost. A power cut does not: {cut-1} and {cut-all} of 200 lost, though confirmed, since Kafka answers before it syncs. With flush.messages=1 it was {cut-flush}.",
			ZH: "acks=0 的成功只是写进了套接字：broker 停住时照样“发”了 {unanswered-0} 条，丢了 {kill-0} 条。acks=1 和 all 时消息已写进 page cache，kill 带不走：丢 {kill-1} 和 {kill-all} 条。断电就不同了：200 条确认过的丢了 {cut-1} 和 {cut-all} 条，因为 Kafka 先应答后刷盘。flush.messages=1 时丢 {cut-flush} 条。",
		},
		Say: learn.Text{
			EN: "acks says how many replicas have the message before the answer, not that it is on disk: on one node 1 and all are the same. Kafka's durability is replication: three replicas, min.insync.replicas=2 and acks=all, on machines that do not lose power together. On a single node that must survive a power cut I set flush.messages=1 and pay for it.",
			ZH: "acks 说的是应答前有几个副本收到，不是已经落盘：单节点上 1 和 all 一样。Kafka 的持久性靠副本：三副本、min.insync.replicas=2、acks=all，而且机器不同时断电。单节点要扛断电，就设 flush.messages=1，代价自己付。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "Application against operating-system flush", ZH: "应用刷盘与系统刷盘"}, URL: "https://kafka.apache.org/documentation/#appvsosflush"},
			{Cell: "kafka/acks-all power-loss"}, {Cell: "kafka/acks-all-flush power-loss"}, {Cell: "kafka-3/acks-1 leader-kill"},
		},
	}
}

// waiting is how many messages a broker has that was just started.
func waiting(s *learn.Stand, q queue.Queue) (n int64) {
	s.Eventually("the broker to tell what it has", 15*time.Second, func() bool {
		b, err := q.(queue.Backlogger).Backlog(s.Context())
		n = b.Ready
		return err == nil
	})
	return n
}
