package lessons

import (
	"time"

	"queuelab/bench/fault"
	"queuelab/bench/learn"
	"queuelab/bench/node"
)

func ackWhen() learn.Lesson {
	return learn.Lesson{
		Number: 17, Name: "ack-when", Topic: learn.Consuming,
		Question: learn.Text{
			EN: "Ack before the transaction or after its commit? The consumer is killed in between.",
			ZH: "手动 ACK 该放在事务之前还是提交之后？消费者在两者之间被 kill -9。",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "It makes no difference: the queue notices the death, and delivers again.", ZH: "没区别：队列发现消费者死了，都会重新投递。"},
				If: learn.Conditions{"early-lost": learn.Is(0), "late-lost": learn.Is(0)}},
			{Text: learn.Text{EN: "Before loses the message, after repeats it.", ZH: "放在前面会丢，放在后面会重复。"},
				If: learn.Conditions{"early-lost": learn.AtLeast(1), "late-lost": learn.Is(0), "late-repeated": learn.AtLeast(1)}},
			{Text: learn.Text{EN: "Before loses the message, after is exactly once.", ZH: "放在前面会丢，放在后面正好一次。"},
				If: learn.Conditions{"early-lost": learn.AtLeast(1), "late-lost": learn.Is(0), "late-repeated": learn.Is(0)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "redis"}},
		Takes: 4 * time.Second,
		Try: func(s *learn.Stand) {
			const messages = 20
			die := func(url, ack, place string) *learn.Process {
				dies := s.Consume(url, node.Consume{Mutant: ack, CrashPoint: place, CrashAtNth: 5})
				sent := s.Produce(url, node.Produce{Count: messages, Senders: 1, Batch: 1})
				sent.Produced()
				dies.Struck()
				return sent
			}
			early, late := s.URL("redis-streams", "claim=1s"), s.URL("redis-streams", "claim=1s")
			s.Quietly(func() {
				s.Open(early)
				s.Open(late)
			})
			s.Step("20 messages; a consumer acks each and then commits. It is killed with the fifth in hand.", "20 条消息，消费者先 ACK 再提交；处理第五条时被杀。")
			before := die(early, "ack-early", fault.MidHandle)
			s.Step("20 messages; a consumer commits each and then acks. It is killed with the fifth committed.", "20 条消息，消费者先提交再 ACK；第五条提交之后被杀。")
			after := die(late, "", fault.BeforeAck)
			s.Step("Another consumer takes over each queue, and handles all that comes.", "另外的消费者接手，把剩下的全部处理完。")
			s.Consume(early, node.Consume{})
			s.Consume(late, node.Consume{})
			s.Settled(2500 * time.Millisecond)
			lost, repeated := s.AccountOf(before), s.AccountOf(after)
			s.Count("early-lost", lost.Lost, "lost of 20, ack first", "先 ACK：20 条里丢失的")
			s.Count("early-repeated", lost.EffectDuplicates, "effects twice, ack first", "先 ACK：重复生效的")
			s.Count("late-lost", repeated.Lost, "lost of 20, commit first", "先提交：20 条里丢失的")
			s.Count("late-repeated", repeated.EffectDuplicates, "effects twice, commit first", "先提交：重复生效的")
		},
		Expect: learn.Conditions{"early-lost": learn.Is(1), "early-repeated": learn.Is(0), "late-repeated": learn.Is(1)},
		Why: learn.Text{
			EN: "The ack tells the queue to forget. Sent first, it took the message out of the queue before its effect was safe: {early-lost} of 20 was lost, the one in hand. Sent after the commit, the death left a message that the queue still kept: {late-lost} lost, and {late-repeated} took effect twice. No order of the two closes the gap, as they are in two systems.",
			ZH: "ACK 就是告诉队列“可以忘了”。先 ACK，业务还没落库队列就删了：20 条里丢了 {early-lost} 条，正是手里那条。提交之后再 ACK，死的时候队列还留着它：丢 {late-lost} 条，重复生效 {late-repeated} 条。两个系统之间，怎么排顺序都消除不了这个窗口。",
		},
		Say: learn.Text{
			EN: "Ack after the commit: a repeat can be made harmless by a unique key, a loss cannot be undone. Ack first is at most once, ack after is at least once. Exactly once is at least once plus an idempotent effect.",
			ZH: "提交之后再 ACK：重复可以用唯一键消化，丢失补不回来。先 ACK 是至多一次，后 ACK 是至少一次。所谓恰好一次，就是至少一次加幂等。",
		},
		Further: []learn.Link{
			{Cell: "redis-streams/aof-everysec consumer-kill-before-ack"},
			{Cell: "redis-streams/aof-everysec consumer-kill-mid-handle"},
		},
	}
}
