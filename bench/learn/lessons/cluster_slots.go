package lessons

import (
	"net"
	"strings"
	"time"

	"queuelab/app/sale"
	"queuelab/bench/learn"
)

func clusterSlots() learn.Lesson {
	return learn.Lesson{
		Number: 37, Name: "cluster-slots", Topic: learn.Redis,
		Question: learn.Text{
			EN: "What does a Redis Cluster demand of a Lua script?",
			ZH: "Redis Cluster 下对 Lua 脚本有什么要求？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "Nothing: a script may touch any key, and the cluster finds it.", ZH: "没有要求：脚本可以访问任意 key，集群自己会找。"},
				If: learn.Conditions{"two-tags": learn.Is(1), "hidden-checked": learn.Is(1)}},
			{Text: learn.Text{EN: "Its keys must be declared in KEYS; which slots they are in does not matter.", ZH: "key 要在 KEYS 里声明；落在哪些槽无所谓。"},
				If: learn.Conditions{"two-tags": learn.Is(1), "hidden-checked": learn.Is(0)}},
			{Text: learn.Text{EN: "All of its keys in one slot, which a hash tag decides, even where one node has all slots.", ZH: "所有 key 在同一个槽（由 hash tag 决定），哪怕一个节点拥有全部槽。"},
				If: learn.Conditions{"two-tags": learn.Is(0), "one-tag": learn.Is(1), "hidden-checked": learn.Is(0)}},
		},
		Right: 2,
		Needs: []learn.Need{{Kind: "redis", Setting: "cluster", Own: true}},
		Takes: 3 * time.Second,
		Try: func(s *learn.Stand) {
			redis, id := s.Redis(), s.ID
			s.Step("A cluster of one node, which is given all 16384 slots.", "一个单节点集群，拿到全部 16384 个槽。")
			_, port, err := net.SplitHostPort(redis.Options().Addr)
			s.Must(err)
			s.Do(redis, "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
			s.Do(s.RedisUnseen(), "CONFIG", "SET", "cluster-announce-ip", "127.0.0.1", "cluster-announce-port", port) // clients are to come through the proxy
			var info string
			s.Eventually("the cluster to be up", 10*time.Second, func() bool {
				info = s.RedisUnseen().ClusterInfo(s.Context()).Val()
				return strings.Contains(info, "cluster_state:ok")
			})
			s.Count("nodes", count(strings.Contains(info, "cluster_size:1\r\n")), "nodes that have slots", "拥有槽的节点")

			// runs reports whether a script runs. One that does not name its keys may
			// be given none.
			runs := func(script string, keys ...string) int64 {
				args := []any{"EVAL", script, len(keys)}
				for _, k := range keys {
					args = append(args, k)
				}
				_, err := s.Ask(redis, append(args, id)...)
				switch {
				case err == nil:
					return 1
				case strings.Contains(err.Error(), "slot"):
					return 0
				}
				s.Must(err)
				return 0
			}
			const buy = "redis.call('DECR', KEYS[1]) redis.call('SADD', KEYS[2], ARGV[1]) return KEYS[1]"
			s.Step("Stock and buyers in one script: first without a hash tag, then with {…} around the voucher.", "一个脚本同时改库存和买家：先不用 hash tag，再用 {…} 括住券号。")
			s.Count("two-tags", runs(buy, "seckill:"+id+":stock", "seckill:"+id+":users"), "scripts that ran without a hash tag", "没有 hash tag 时成功执行的脚本")
			s.Count("one-tag", runs(buy, "seckill:{"+id+"}:stock", "seckill:{"+id+"}:users"), "scripts that ran with a hash tag", "有 hash tag 时成功执行的脚本")

			const hidden = "local k = 'seckill:' .. ARGV[1] redis.call('DECR', k .. ':stock') redis.call('SADD', k .. ':users', ARGV[1]) return k"
			s.Step("A script that makes up its keys and declares none, as it was always written, and the same with a #!lua line, where Redis checks.", "脚本内部拼 key、一个都不声明：先是老写法，再加上 #!lua 行，让 Redis 检查。")
			s.Count("hidden", runs(hidden), "scripts with undeclared keys that ran", "未声明 key 却执行了的脚本")
			s.Count("hidden-checked", runs("#!lua\n"+hidden), "of them with #!lua", "其中带 #!lua 的")

			s.Step("The lab's gate as the client of a cluster. All keys of its voucher are in one slot.", "本项目的闸门以集群客户端连接，券的所有 key 都在一个槽里。")
			g := openGateAt(s, "redis+cluster://"+redis.Options().Addr, 10, nil)
			_, v := g.click(g.buyer(1))
			s.Count("gate", count(v == sale.Admitted), "buyers admitted by the gate", "闸门放行的买家")
			slots := map[int64]bool{}
			for _, of := range []string{"sale", "buyers", "marks", "due", "keys"} {
				slots[s.Int(redis, "CLUSTER", "KEYSLOT", g.key(of))] = true
			}
			s.Count("gate-slots", int64(len(slots)), "slots of its five keys", "它五个 key 所在的槽")
		},
		Expect: learn.Conditions{"nodes": learn.Is(1), "hidden": learn.Is(1), "gate": learn.Is(1), "gate-slots": learn.Is(1)},
		Why: learn.Text{
			EN: "A script must be able to move with its slot, so Redis demands that all of its keys hash to the same one and says CROSSSLOT otherwise, even where {nodes} node has them all. Only what is in braces is hashed, so one tag in each key keeps them together, as the gate's five keys in {gate-slots} slot. Keys that a script makes up are not checked unless it begins with #!lua: the undeclared ones ran here, on the only node, and were refused with that line.",
			ZH: "脚本要能跟着槽一起迁移，所以 Redis 要求它的所有 key 哈希到同一个槽，否则报 CROSSSLOT，哪怕 {nodes} 个节点拥有全部槽。只有花括号里的部分参与哈希，key 里带同一个 tag 就落在一起，闸门的五个 key 就在 {gate-slots} 个槽里。脚本内部拼出来的 key 默认不检查，除非以 #!lua 开头：这次在唯一的节点上跑通了，加上那一行就被拒绝。",
		},
		Say: learn.Text{
			EN: "All keys of a script, and of a transaction, must be in one slot: put the same hash tag into each, such as seckill:{V42}:stock and seckill:{V42}:buyers, and pass every one of them in KEYS. Test it with one cluster-enabled node and a #!lua line, since a plain Redis accepts everything. One voucher then lives on one node, so a hot one must be split into buckets with tags of their own.",
			ZH: "脚本和事务里的 key 必须在同一个槽：都带上同样的 hash tag，如 seckill:{V42}:stock、seckill:{V42}:buyers，并且全部通过 KEYS 传入。用一个开了 cluster 的节点加 #!lua 就能测出来，单机 Redis 什么都放行。这样一张券只落在一个节点上，热点券要拆成多个桶，各用各的 tag。",
		},
		Further: []learn.Link{{Text: learn.Text{EN: "Hash tags", ZH: "Hash tag"}, URL: "https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags"}},
	}
}
