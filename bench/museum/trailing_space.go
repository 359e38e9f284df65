package museum

import (
	"time"

	"queuelab/bench/learn"
)

func trailingSpace() Exhibit {
	// sell lets a script queue three orders, and a consumer read them.
	sell := func(s *learn.Stand, name, script string) (read, elsewhere int64) {
		redis := s.Redis()
		key := stream(s, redis, name, 0)
		gone(s, key+" ")
		for range 3 {
			s.Do(redis, "EVAL", script, 1, key, s.ID)
		}
		return int64(len(group(s, redis, "c1", key, ">", 10))), s.Int(redis, "XLEN", key+" ")
	}
	return Exhibit{
		Number: 9, Name: "a-space-in-the-name", Found: []string{"003"},
		Idea: learn.Text{
			EN: "The script writes the name of the stream into its text, with a space after it; the consumer's has none.",
			ZH: "脚本里写死了流的名字，末尾多了一个空格；消费者那边没有。",
		},
		Needs: []learn.Need{{Kind: "redis"}}, Takes: time.Second,
		Damage: func(s *learn.Stand) {
			read, elsewhere := sell(s, "orders", `return redis.call('XADD', KEYS[1] .. ' ', '*', 'order', ARGV[1])`)
			s.Count("damage-read", read, "of 3 orders read", "3 条订单里读到的")
			s.Count("damage-elsewhere", elsewhere, "orders in a key that nobody reads", "落在没人读的键里的订单")
		},
		Repair: func(s *learn.Stand) {
			read, elsewhere := sell(s, "orders2", `return redis.call('XADD', KEYS[1], '*', 'order', ARGV[1])`)
			s.Count("repair-read", read, "of 3 orders read", "3 条订单里读到的")
			s.Count("repair-elsewhere", elsewhere, "orders in a key that nobody reads", "落在没人读的键里的订单")
		},
		Shows: learn.Conditions{
			"damage-read": learn.Is(0), "damage-elsewhere": learn.Is(3), "repair-read": learn.Is(3), "repair-elsewhere": learn.Is(0),
		},
		Happens: learn.Text{
			EN: "To Redis these are two keys: {damage-elsewhere} orders lie where nobody reads, and {damage-read} arrived. No command failed.",
			ZH: "对 Redis 来说这是两个键：{damage-elsewhere} 条订单躺在没人读的地方，读到 {damage-read} 条，没有任何命令报错。",
		},
		Mend: learn.Text{
			EN: "The name exists once in the program and goes to the script as a key: {repair-read} of 3. It also lets the script run on a cluster.",
			ZH: "名字在程序里只有一处，作为 KEYS 传给脚本：3 条读到 {repair-read} 条，也因此能在集群上运行。",
		},
	}
}
