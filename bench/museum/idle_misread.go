package museum

import (
	"time"

	"queuelab/bench/learn"
)

func idleMisread() Exhibit {
	// inHand asks for what is in hand, and returns how many entries it is told of.
	inHand := func(s *learn.Stand, name string, filter ...any) int64 {
		redis := s.Redis()
		key := stream(s, redis, name, 3)
		group(s, redis, "c1", key, ">", 3)
		args := append(append([]any{"XPENDING", key, "g"}, filter...), "-", "+", 10)
		list, _ := s.Do(redis, args...).([]any)
		return int64(len(list))
	}
	return Exhibit{
		Number: 18, Name: "idle-time-misread", Found: []string{"001"},
		Idea: learn.Text{
			EN: "XPENDING with IDLE 5000: a message becomes pending once it has been without an ack for five seconds, so a look right after a crash with it shows what there is.",
			ZH: "XPENDING 的 IDLE 5000：超过五秒没确认的消息才进入待确认列表，所以用它就能看到有哪些没处理完。",
		},
		Needs: []learn.Need{{Kind: "redis"}}, Takes: time.Second,
		Damage: func(s *learn.Stand) {
			s.Count("damage-seen", inHand(s, "orders", "IDLE", 5000), "of 3 orders in a dead consumer's hand seen", "死者手里 3 条订单中看到的")
		},
		Repair: func(s *learn.Stand) {
			s.Count("repair-seen", inHand(s, "orders2"), "of 3 orders seen without the filter", "不加过滤看到的，共 3 条")
		},
		Shows: learn.Conditions{"damage-seen": learn.Is(0), "repair-seen": learn.Is(3)},
		Happens: learn.Text{
			EN: "A message is pending from the moment at which it is delivered. IDLE only filters the answer: {damage-seen} of 3 were shown, so a clean-up at the start finds nothing and leaves them.",
			ZH: "消息一投递就进入待确认列表；IDLE 只是过滤查询结果：3 条里看到 {damage-seen} 条，启动时这样清理等于什么也没清。",
		},
		Mend: learn.Text{
			EN: "Ask without the filter to see all that is in hand ({repair-seen}); the idle time counts since the last delivery, and is what decides when a dead consumer's messages may be claimed.",
			ZH: "不加过滤才能看到全部在途消息（{repair-seen} 条）；空闲时间从最近一次投递算起，用来判断何时可以接管死者的消息。",
		},
		Further: []learn.Link{redisDocs("xpending", "XPENDING and IDLE", "XPENDING 与 IDLE")},
	}
}
