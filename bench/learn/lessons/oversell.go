package lessons

import (
	"strconv"
	"sync/atomic"
	"time"

	"queuelab/bench/learn"
	"queuelab/bench/proxy"
)

func oversell() learn.Lesson {
	return learn.Lesson{
		Number: 11, Name: "oversell", Topic: learn.Admission,
		Question: learn.Text{
			EN: "How does a sale sell more than there is? Ten units, 50 buyers at once, each asks how many are left and then takes one.",
			ZH: "超卖是怎么产生的？库存 10 件，50 个买家同时来，每人先查剩余、再扣减。",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "It does not: Redis runs one command at a time.", ZH: "不会超卖：Redis 是单线程，一次只执行一条命令。"},
				If: learn.Conditions{"redis-sold": learn.AtMost(10)}},
			{Text: learn.Text{EN: "Between the two commands others come in: it oversells, and one step that checks and takes does not.", ZH: "两条命令之间别人会插进来，所以超卖；检查和扣减合成一步就不会。"},
				If: learn.Conditions{"redis-sold": learn.AtLeast(11), "script-sold": learn.AtMost(10)}},
			{Text: learn.Text{EN: "So many at once oversell whatever one does, unless a lock lets in one at a time.", ZH: "并发这么高，不加分布式锁排队，怎么写都会超卖。"},
				If: learn.Conditions{"redis-sold": learn.AtLeast(11), "script-sold": learn.AtLeast(11)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "redis"}, {Kind: "postgres"}},
		Takes: 2 * time.Second,
		Try: func(s *learn.Stand) {
			const units, buyers = 10, 50
			far := proxy.Rule{Delay: 5 * time.Millisecond} // a server in the next building

			g := openGate(s, units, nil)
			st := openStore(s, g)

			redis, left := s.Redis(), s.Name("left")
			deleteAfter(s, left)
			s.Step("GET, look, DECR, by 50 buyers at once. The answers take 5 ms.", "50 个买家同时执行：GET，判断，DECR。每个回复在路上走 5 毫秒。")
			s.Do(redis, "SET", left, units)
			var sold atomic.Int64
			s.Proxy("redis").Set(proxy.ToClient, far)
			s.Together(buyers, func(int) error {
				seen, err := s.Ask(redis, "GET", left)
				if err != nil {
					return err
				}
				if n, err := strconv.Atoi(seen.(string)); err != nil || n < 1 {
					return err
				}
				_, err = s.Ask(redis, "DECR", left)
				sold.Add(1)
				return err
			})
			s.Proxy("redis").Set(proxy.ToClient, proxy.Rule{})
			s.Count("redis-sold", sold.Load(), "sold by GET and DECR, of 10", "GET 加 DECR 卖出的，库存 10")
			s.Count("redis-left", s.Int(redis, "GET", left), "what Redis has left", "Redis 里剩下的")

			s.Step("The service's gate: one script checks and takes.", "服务的准入：一个脚本里检查并扣减。")
			s.Count("script-sold", g.rush(buyers), "sold by the script, of 10", "脚本卖出的，库存 10")
			s.Do(redis, "HKEYS", g.key("buyers"))

			s.Step("In PostgreSQL: SELECT, look, UPDATE to one less.", "换成 PostgreSQL：SELECT，判断，UPDATE 成少一件。")
			db := s.SQL()
			db.SetMaxOpenConns(20)
			exec(s, db, "CREATE TABLE stock (n bigint)")
			exec(s, db, "INSERT INTO stock VALUES ($1)", units)
			sold.Store(0)
			s.Proxy("postgres").Set(proxy.ToClient, far)
			s.Together(buyers, func(int) error {
				var n int64
				if err := db.QueryRowContext(s.Context(), "SELECT n FROM stock").Scan(&n); err != nil || n <= 0 {
					return err
				}
				_, err := db.ExecContext(s.Context(), "UPDATE stock SET n = $1", n-1)
				sold.Add(1)
				return err
			})
			s.Proxy("postgres").Set(proxy.ToClient, proxy.Rule{})
			s.Count("sql-sold", sold.Load(), "sold by SELECT and UPDATE, of 10", "SELECT 加 UPDATE 卖出的，库存 10")
			s.Count("sql-left", number(s, db, "SELECT n FROM stock"), "what its row has left", "那一行里剩下的")

			s.Step("The service's own transaction: an UPDATE whose condition is that there is enough.", "服务自己的事务：UPDATE 自带“库存足够”的条件。")
			s.Count("where-sold", st.rush(g, buyers), "sold by an UPDATE with its condition, of 10", "带条件的 UPDATE 卖出的，库存 10")
		},
		Expect: learn.Conditions{
			"script-sold": learn.Is(10), "redis-left": learn.AtMost(-1), "sql-sold": learn.AtLeast(11), "sql-left": learn.AtLeast(0), "where-sold": learn.Is(10),
		},
		Why: learn.Text{
			EN: "Each command is atomic, and the two together are not: everybody who reads before the first one has taken a unit sees that there are some. So {redis-sold} of 10 were sold, and Redis ended at {redis-left}. In SQL it is the same without a trace: {sql-sold} were sold, and the row says {sql-left} are left. One step that checks and takes sold {script-sold} as a script and {where-sold} as an UPDATE with its condition.",
			ZH: "每条命令是原子的，合起来不是：第一个人扣减之前读到库存的人，都以为还有货。于是 10 件卖了 {redis-sold} 件，Redis 变成 {redis-left}。SQL 里先查后改也一样，还不留痕迹：卖了 {sql-sold} 件，那一行却写着还剩 {sql-left} 件。检查和扣减合成一步：脚本卖 {script-sold} 件，带条件的 UPDATE 卖 {where-sold} 件。",
		},
		Say: learn.Text{
			EN: "Overselling is check-then-act: between the reading and the taking others come in. Make it one step, a Lua script in Redis, or SET n = n - 1 WHERE n > 0 in the database. I keep both: Redis for speed, the database as the guard that holds if Redis forgets.",
			ZH: "超卖的本质是“先检查后执行”，中间有别人插进来。把它变成一步：Redis 里用 Lua，数据库里用 SET n = n - 1 WHERE n > 0。两层都要：Redis 扛流量，数据库兜底。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "A table of what PostgreSQL isolates at each level", ZH: "PostgreSQL 各隔离级别"}, URL: "https://www.postgresql.org/docs/current/transaction-iso.html"},
		},
	}
}
