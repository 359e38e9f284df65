package lessons

import (
	"time"

	"queuelab/bench/learn"
	"queuelab/bench/proxy"
)

func popLoses() learn.Lesson {
	return learn.Lesson{
		Number: 2, Name: "brpop-loses", Topic: learn.Redis,
		Question: learn.Text{
			EN: "Why does BRPOP lose messages, and what keeps them?",
			ZH: "BRPOP 为什么会丢消息？怎样才不丢？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "Neither loses anything: Redis keeps the message until the consumer has it.", ZH: "都不丢：消费者收到之前 Redis 会一直保留。"},
				If: learn.Conditions{"brpop-kept": learn.Is(1), "blmove-kept": learn.Is(1)}},
			{Text: learn.Text{EN: "BRPOP loses it, BLMOVE to a second list keeps it.", ZH: "BRPOP 会丢；BLMOVE 到另一个列表则留得住。"},
				If: learn.Conditions{"brpop-kept": learn.Is(0), "blmove-kept": learn.Is(1)}},
			{Text: learn.Text{EN: "Both lose it: the reply was the only copy.", ZH: "都会丢：那条回复是唯一的一份。"},
				If: learn.Conditions{"brpop-kept": learn.Is(0), "blmove-kept": learn.Is(0)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "redis"}},
		Takes: time.Second,
		Try: func(s *learn.Stand) {
			list, doing := s.Name("orders"), s.Name("doing")
			redis := s.Redis()
			lose := func(command string, args ...any) {
				lost := s.Proxy("redis").LoseReply(proxy.RedisTook(command))
				if _, err := s.Ask(redis, append([]any{command}, args...)...); err == nil {
					s.Fail("the reply to %s came, though the network should have lost it", command)
				}
				s.Eventually("a reply to be lost", 5*time.Second, func() bool { return closed(lost) })
			}

			s.Step("One message, and BRPOP takes it. The network loses the reply.", "放入一条消息，BRPOP 取走它，回复在网络上丢失。")
			s.Do(redis, "LPUSH", list, s.ID+"-1")
			lose("BRPOP", list, 1)
			s.Step("Where is it now?", "它现在在哪里？")
			kept := s.Int(redis, "LLEN", list)
			s.Count("brpop-kept", kept, "left in Redis after BRPOP", "BRPOP 之后 Redis 里剩下的")

			s.Step("The same with BLMOVE, which puts it into a second list as it takes it.", "换成 BLMOVE：取走的同时放进另一个列表。")
			s.Do(redis, "LPUSH", list, s.ID+"-2")
			lose("BLMOVE", list, doing, "RIGHT", "LEFT", 1)
			kept = int64(len(s.Do(redis, "LRANGE", doing, 0, -1).([]any)))
			s.Count("blmove-kept", kept, "kept in the second list after BLMOVE", "BLMOVE 之后第二个列表里的")
			s.Do(s.RedisUnseen(), "DEL", list, doing)
		},
		Why: learn.Text{
			EN: "BRPOP removes the message as it hands it over, so that the reply is the only copy: here {brpop-kept} were left. BLMOVE moves it to a second list in one step, where {blmove-kept} waits for whoever finds that its consumer has died.",
			ZH: "BRPOP 在交出消息的同时就把它删除，回复成了唯一的一份：这次剩下 {brpop-kept} 条。BLMOVE 一步把它移到第二个列表，{blmove-kept} 条留在那里，等别人发现消费者已死再取。",
		},
		Say: learn.Text{
			EN: "BRPOP is at most once: a consumer or connection that dies after the pop takes the message with it. Use BLMOVE to a processing list with a reaper, or a Stream with a consumer group. Whatever delivers again needs an idempotent handler.",
			ZH: "BRPOP 是至多一次：弹出之后消费者或连接一死，消息就没了。用 BLMOVE 到处理中列表并定期回收，或者用 Stream 消费组。凡是会重投的，处理都要幂等。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "BLMOVE as a reliable queue", ZH: "用 BLMOVE 做可靠队列"}, URL: "https://redis.io/docs/latest/commands/lmove/"},
			{Cell: "redis-list/aof-always lost-reply-receive"},
		},
	}
}

// closed reports whether what a channel tells has happened.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
