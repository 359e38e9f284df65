package lessons

import (
	"errors"
	"slices"
	"time"

	"queuelab/bench/learn"
	"queuelab/queue"
)

func rebalance() learn.Lesson {
	const messages = 40
	return learn.Lesson{
		Number: 27, Name: "rebalance-repeats", Topic: learn.Kafka,
		Question: learn.Text{
			EN: "A second consumer joins the group, and nothing crashes. Why are messages handled twice?",
			ZH: "没有任何崩溃，只是消费组里加了一个消费者，为什么会重复消费？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "They are not: only a crash repeats messages.", ZH: "不会重复，崩溃才会。"},
				If: learn.Conditions{"twice": learn.Is(0)}},
			{Text: learn.Text{EN: "Partitions move, and their new owner starts at what was committed: what the old one had in hand comes again.", ZH: "分区换了主人，新主人从已提交的位置开始：旧主人手里没提交的会再来一遍。"},
				If: learn.Conditions{"twice": learn.Between(1, messages-1), "twice-committed": learn.Is(0)}},
			{Text: learn.Text{EN: "The group starts over: everything is delivered again, committed or not.", ZH: "整个组从头来过，提交没提交都再投递一遍。"},
				If: learn.Conditions{"twice": learn.AtLeast(1), "twice-committed": learn.AtLeast(1)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "kafka"}},
		Takes: 5 * time.Second,
		Try: func(s *learn.Stand) {
			q := s.Queue("kafka", "partitions=2", "session=2s")
			s.Step("40 messages in two partitions, in turn. One consumer takes all, and acks the first half of each.",
				"40 条消息轮流进入两个分区。一个消费者全部取走，每个分区只确认前一半。")
			early := s.Publish(q, messages)[:messages/2]
			first := s.Consumer(q)
			var done, hand []*queue.Delivery
			for _, d := range s.Take(first, messages) {
				if slices.ContainsFunc(early, func(m queue.Message) bool { return m.ID == d.ID }) {
					done = append(done, d)
				} else {
					hand = append(hand, d)
				}
			}
			s.Must(first.Ack(s.Context(), done...))

			s.Step("A second consumer joins while the first one still works on the rest.", "第一个还在处理剩下的，第二个加入。")
			second := s.Consumer(q)
			var again []*queue.Delivery
			s.Eventually("the second consumer to get messages", 10*time.Second, func() bool {
				again = append(again, s.TakeFor(second, messages, 500*time.Millisecond)...)
				return len(again) > 0
			})
			both := func(ds []*queue.Delivery) (n int64) {
				for _, d := range ds {
					if slices.Contains(ids(again), d.ID) {
						n++
					}
				}
				return n
			}
			s.Count("twice", both(hand), "in hand at the first consumer, and delivered to the second too", "第一个手里还有、又投递给第二个的")
			s.Count("twice-committed", both(done), "acked and committed, and delivered to the second too", "已经确认提交、又投递给第二个的")

			s.Step("The first one acks all it had in hand, late.", "第一个处理完，迟到地确认。")
			var refused, kept int64
			for _, d := range hand {
				switch err := first.Ack(s.Context(), d); {
				case err == nil:
					kept++
				case errors.Is(err, queue.ErrLeaseLost):
					refused++
				default:
					s.Must(err)
				}
			}
			s.Count("refused", refused, "late acks that were refused: the partition belongs to the other one", "迟到的确认被拒绝：分区已经是别人的")
			s.Count("kept", kept, "acks that still counted, of the partition that stayed", "仍然有效的确认：分区没有换主人")
		},
		Expect: learn.Conditions{"refused": learn.AtLeast(1), "kept": learn.AtLeast(1)},
		Why: learn.Text{
			EN: "When a member joins, partitions are dealt out anew, and the new owner of one starts at its committed offset. The {twice} messages that the first consumer had in hand from it were delivered to the second as well, and {twice-committed} of those that were committed. Its late acks were refused {refused} times, but the work was done by then: {kept} of the partition that stayed went on as if nothing had happened.",
			ZH: "成员变化时分区重新分配，新主人从已提交的 offset 开始。第一个消费者手里的 {twice} 条又投递给了第二个，已提交的重复了 {twice-committed} 条。它迟到的确认被拒绝了 {refused} 次，但活已经干了；没有换主人的分区里 {kept} 条照常确认。",
		},
		Say: learn.Text{
			EN: "A rebalance moves partitions, and whatever is uncommitted of them is handled again by the new owner. I keep little in hand, commit often, finish or drop work when partitions are revoked, and avoid needless rebalances with static membership and cooperative assignment. The guard is an idempotent handler.",
			ZH: "再均衡会移动分区，其中没提交的会被新主人再处理一遍。手里少拿、勤提交，分区被收回时做完或丢弃手头的活，用静态成员和协作式分配减少再均衡。最后的保障是幂等消费。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "Consumer group protocol", ZH: "消费组协议"}, URL: "https://kafka.apache.org/documentation/#basic_ops_consumer_group"},
			{Cell: "kafka/acks-all consumer-joins-leaves"},
		},
	}
}
