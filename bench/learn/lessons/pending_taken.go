package lessons

import (
	"time"

	"queuelab/bench/fault"
	"queuelab/bench/learn"
	"queuelab/bench/ledger"
	"queuelab/bench/node"
)

func pendingTaken() learn.Lesson {
	return learn.Lesson{
		Number: 4, Name: "pending-taken-over", Topic: learn.Redis,
		Question: learn.Text{
			EN: "What is a Stream's pending entries list, and who continues the work of a dead consumer?",
			ZH: "Stream 的 PEL 是什么？消费者挂了谁来接手？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "Redis gives unacked entries to the next reader by itself, after a timeout.", ZH: "超时之后，Redis 会自动把未确认的条目交给下一个读者。"},
				If: learn.Conditions{"pending": learn.Is(3), "given": learn.AtLeast(1)}},
			{Text: learn.Text{EN: "They stay pending under the dead one's name until somebody claims them.", ZH: "它们一直挂在死者名下，直到有人认领。"},
				If: learn.Conditions{"pending": learn.Is(3), "given": learn.Is(0), "claimed": learn.Is(3)}},
			{Text: learn.Text{EN: "Nobody: XREADGROUP has removed them.", ZH: "没人能接手：XREADGROUP 取走就删了。"},
				If: learn.Conditions{"pending": learn.Is(0), "claimed": learn.Is(0)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "redis"}},
		Takes: 4 * time.Second,
		Try: func(s *learn.Stand) {
			queueURL := s.URL("redis-streams", "claim=1s", "prefetch=5")
			s.Open(queueURL) // to be deleted in the end
			stream, redis := "stream:{"+s.Name("q1")+"}", s.Redis()

			s.Step("Five orders. A consumer reads all five, finishes two, and is killed by SIGKILL in the third.",
				"五个订单。消费者一次读走五个，处理完两个，处理第三个时被 SIGKILL。")
			s.Produce(queueURL, node.Produce{Count: 5}).Produced()
			victim := s.Consume(queueURL, node.Consume{CrashPoint: fault.MidHandle, CrashAtNth: 3})
			victim.Struck()
			died := time.Now()
			s.Count("done", victim.Tally(ledger.Effect), "orders that it had finished", "它已处理完的订单")

			s.Step("What is pending, and under whose name?", "谁名下还有待确认的条目？")
			pending := s.Do(redis, "XPENDING", stream, "workers").([]any)
			s.Count("pending", pending[0].(int64), "entries pending under the dead consumer's name", "挂在死者名下的条目")

			s.Step("Another consumer of the group asks for new entries only, and waits longer than the lease of a second.",
				"同组另一个消费者只读新条目（>），等待超过 1 秒租约。")
			given := entries(s, redis, "XREADGROUP", "GROUP", "workers", "newcomer", "BLOCK", 1500, "STREAMS", stream, ">")
			s.Count("given", int64(len(given)), "given to a reader of new entries", "只读新条目的消费者得到的")

			s.Step("The lab's consumer starts: it also claims what has been idle for longer than the lease.",
				"启动本项目的消费者：它还会认领闲置超过租约的条目。")
			heir := s.Consume(queueURL, node.Consume{})
			s.Eventually("the pending orders to be handled", 10*time.Second, func() bool { return heir.Tally(ledger.Effect) >= 3 })
			s.Millis("after", time.Since(died), "from the death until all were done", "从死亡到全部处理完")
			s.Settled(200 * time.Millisecond)
			s.Count("claimed", heir.Tally(ledger.Effect), "orders that it took over and finished", "它接手并处理完的订单")
			attempts := 0
			for _, r := range s.Records() {
				if r.Event == ledger.Delivered {
					attempts = max(attempts, int(r.Attempt))
				}
			}
			s.Count("attempt", int64(attempts), "highest delivery count that Redis told", "Redis 报告的最大投递次数")
		},
		Expect: learn.Conditions{"done": learn.Is(2), "attempt": learn.Is(2)},
		Why: learn.Text{
			EN: "XREADGROUP notes who got each entry, and only XACK removes the note: after the kill {pending} entries were pending. Redis runs no timer over them, so a reader of > got {given}. XAUTOCLAIM moves those that have been idle for long enough to another name, which our consumer does: {claimed} of them were done {after} after the death, as delivery number {attempt}.",
			ZH: "XREADGROUP 记下每个条目交给了谁，只有 XACK 才划掉：被杀之后还有 {pending} 条待确认。Redis 不会替它们计时，所以用 > 读的消费者得到 {given} 条。XAUTOCLAIM 把闲置够久的条目转到别人名下，我们的消费者就这么做：死后 {after} 接手的 {claimed} 条全部完成，投递次数为 {attempt}。",
		},
		Say: learn.Text{
			EN: "The PEL holds what was delivered and not acked, with its consumer, idle time and delivery count. A dead consumer's entries wait for ever unless somebody runs XAUTOCLAIM with a min-idle longer than the slowest handler. Handlers must be idempotent, and the delivery count tells when to give up and use a dead-letter queue.",
			ZH: "PEL 记录已投递未确认的条目，带消费者、闲置时间和投递次数。死掉的消费者名下的条目会一直等，要有人定期 XAUTOCLAIM，min-idle 要大于最慢的处理时间。处理必须幂等，投递次数超限就进死信队列。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "XAUTOCLAIM", ZH: "XAUTOCLAIM"}, URL: "https://redis.io/docs/latest/commands/xautoclaim/"},
			{Cell: "redis-streams/aof-everysec consumer-kill-mid-handle"},
		},
	}
}
