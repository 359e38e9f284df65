package museum

import (
	"time"

	"queuelab/bench/learn"
)

func sameName() Exhibit {
	return Exhibit{
		Number: 2, Name: "one-name-for-all", Found: []string{"000", "001"},
		Idea: learn.Text{
			EN: "Write the consumer's name into the program: every instance is c1, and at its start it works off what is pending under its name.",
			ZH: "消费者名写死在程序里：每个实例都叫 c1，启动时先处理自己名下的待确认消息。",
		},
		Needs: []learn.Need{{Kind: "redis"}}, Takes: time.Second,
		Damage: func(s *learn.Stand) {
			redis := s.Redis()
			key := stream(s, redis, "orders", 3)
			s.Step("The first instance has three orders in hand. A second one starts, with the same name.", "第一个实例手里有三条订单；第二个实例同名启动。")
			first := group(s, redis, "c1", key, ">", 10)
			second := group(s, redis, "c1", key, "0", 10)
			s.Count("damage-handled", int64(len(first)+len(second)), "handlings of 3 orders by two instances", "两个实例对 3 条订单的处理次数")
		},
		Repair: func(s *learn.Stand) {
			q := s.Queue("redis-streams", "claim=30s", "prefetch=10")
			first, second := s.Consumer(q), s.Consumer(q)
			s.Publish(q, 3)
			handled := s.Take(first, 3)
			handled = append(handled, s.TakeFor(second, 3, 300*time.Millisecond)...)
			s.Count("repair-handled", int64(len(handled)), "handlings of 3 orders by two instances", "两个实例对 3 条订单的处理次数")
			s.Must(first.Ack(s.Context(), handled...))
		},
		Shows: learn.Conditions{"damage-handled": learn.Is(6), "repair-handled": learn.Is(3)},
		Happens: learn.Text{
			EN: "What is pending belongs to a name, and to Redis both instances are the same consumer: 3 orders were handled {damage-handled} times.",
			ZH: "待确认列表按名字归属，在 Redis 眼里两个实例是同一个消费者：3 条订单处理了 {damage-handled} 次。",
		},
		Mend: learn.Text{
			EN: "Each instance has a name of its own, and takes over what is pending elsewhere only once its consumer has been silent for longer than a lease: {repair-handled} handlings.",
			ZH: "每个实例各有名字；别人名下的消息，只有对方沉默超过租约才接管：处理 {repair-handled} 次。",
		},
		Further: []learn.Link{redisDocs("xautoclaim", "XAUTOCLAIM takes over by idle time", "XAUTOCLAIM 按空闲时间接管")},
	}
}
