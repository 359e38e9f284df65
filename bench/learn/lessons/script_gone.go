package lessons

import (
	"strings"
	"time"

	"queuelab/app/sale"
	"queuelab/bench/learn"
)

func scriptGone() learn.Lesson {
	return learn.Lesson{
		Number: 38, Name: "script-gone", Topic: learn.Redis,
		Question: learn.Text{
			EN: "EVALSHA after Redis was restarted: what happens?",
			ZH: "Redis 重启之后 EVALSHA 会怎样？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "It works: scripts are kept with the data.", ZH: "照常执行：脚本随数据一起持久化。"},
				If: learn.Conditions{"stock-kept": learn.Is(10), "evalsha-works": learn.Is(1)}},
			{Text: learn.Text{EN: "NOSCRIPT, until somebody sends the script again; the data are there and PING is answered.", ZH: "NOSCRIPT，直到有人重新发送脚本；而数据还在，PING 也正常。"},
				If: learn.Conditions{"stock-kept": learn.Is(10), "evalsha-works": learn.Is(0), "ping": learn.Is(1)}},
			{Text: learn.Text{EN: "The data are gone as well.", ZH: "数据也没了。"},
				If: learn.Conditions{"stock-kept": learn.Is(0)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "redis", Setting: "aof-always", Own: true}},
		Takes: time.Second,
		Try: func(s *learn.Stand) {
			redis, key := s.Redis(), s.Name("stock")

			s.Step("A service loads its script once, and calls it by its hash from then on. Another is the lab's gate.", "一个服务启动时加载一次脚本，之后只用哈希调用；另一个是本项目的准入闸门。")
			s.Do(redis, "SET", key, 10)
			hash := s.Do(redis, "SCRIPT", "LOAD", "return {redis.call('GET', KEYS[1]), KEYS[1]}")
			call := func() (works int64) {
				_, err := s.Ask(redis, "EVALSHA", hash, 1, key)
				if err == nil {
					return 1
				}
				if !strings.HasPrefix(err.Error(), "NOSCRIPT") {
					s.Must(err)
				}
				return 0
			}
			s.Count("evalsha-before", call(), "EVALSHA works before", "重启前 EVALSHA 成功")
			g := openGate(s, 10, nil)
			_, v := g.click(g.buyer(1))
			s.Count("gate-before", count(v == sale.Admitted), "buyers admitted by the gate before", "重启前闸门放行的买家")

			s.Step("Redis is killed and started again on its append-only file.", "杀掉 Redis，用 AOF 文件重新启动。")
			b := s.Broker("redis")
			s.Must(b.Kill(s.Context()), b.Restart(s.Context()))
			pong := int64(0)
			s.Eventually("an answer to PING", 5*time.Second, func() bool {
				v, err := s.Ask(redis, "PING") // the first one meets the dead connection
				if err == nil && v == "PONG" {
					pong = 1
				}
				return pong == 1
			})
			s.Count("ping", pong, "PING answered after the restart", "重启后 PING 有回应")
			s.Count("stock-kept", s.Int(redis, "GET", key), "stock that Redis remembers", "Redis 记得的库存")
			s.Count("evalsha-works", call(), "EVALSHA works after the restart", "重启后 EVALSHA 成功")

			s.Step("The next buyer at the gate, which sends its script again where Redis does not know it.", "下一个买家到闸门：Redis 不认识脚本时，它会重新发送一次。")
			s.Eventually("an answer of the gate", 5*time.Second, func() bool {
				var err error
				_, v, err = g.ask(g.buyer(2)) // the first one meets the dead connection
				return err == nil
			})
			s.Count("gate-after", count(v == sale.Admitted), "buyers admitted by the gate after", "重启后闸门放行的买家")
			s.Count("gate-left", g.left(), "units left at the gate", "闸门剩余库存")
		},
		Expect: learn.Conditions{
			"evalsha-before": learn.Is(1), "gate-before": learn.Is(1), "gate-after": learn.Is(1), "gate-left": learn.Is(8),
		},
		Why: learn.Text{
			EN: "Redis keeps scripts in memory only, as a cache: the append-only file brought back the stock of {stock-kept}, and no script. PING says nothing about it, so a health check is green while every EVALSHA fails. Whoever sends the script again on NOSCRIPT, as the gate does, goes on: it admitted {gate-after} buyer after the restart, and {gate-left} of 10 units were left.",
			ZH: "脚本只是 Redis 内存里的缓存：AOF 恢复了库存 {stock-kept}，却没有脚本。PING 看不出这一点，所以健康检查是绿的，而每次 EVALSHA 都失败。遇到 NOSCRIPT 就重发脚本的客户端（比如我们的闸门）可以继续：重启后放行了 {gate-after} 个买家，10 件库存剩 {gate-left} 件。",
		},
		Say: learn.Text{
			EN: "The script cache dies with each restart, failover and SCRIPT FLUSH, so NOSCRIPT must be answered with the script itself, as go-redis' Script.Run does with EVAL. The retry is safe, since a script that was not found has not run. Let the health check run the script itself, and not PING.",
			ZH: "重启、主从切换、SCRIPT FLUSH 都会清空脚本缓存，所以遇到 NOSCRIPT 要重发脚本，go-redis 的 Script.Run 就会退回 EVAL。脚本没找到就没执行过，重试是安全的。健康检查要真正跑一遍脚本，不能只 PING。",
		},
		Further: []learn.Link{{Text: learn.Text{EN: "EVALSHA", ZH: "EVALSHA"}, URL: "https://redis.io/docs/latest/commands/evalsha/"}},
	}
}
