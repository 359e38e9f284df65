package lessons

import (
	"fmt"
	"sync/atomic"
	"time"

	"queuelab/app/sale"
	"queuelab/bench/learn"
)

// takeThenQueue is the naive admission: it takes the unit, notes the buyer, and
// then puts the order into the queue.
const takeThenQueue = `redis.call('HINCRBY', KEYS[1], 'stock', -1)
redis.call('HINCRBY', KEYS[1], 'sold', 1)
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('XADD', KEYS[3], '*', 'buyer', ARGV[1])
redis.call('SET', KEYS[4], 'reached')
return 1`

func scriptRollback() learn.Lesson {
	return learn.Lesson{
		Number: 10, Name: "script-rollback", Topic: learn.Admission,
		Question: learn.Text{
			EN: "A Lua script is atomic: does Redis roll it back when a command in it fails?",
			ZH: "Lua 脚本是原子的，那中途出错会回滚吗？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "Yes: all of it or nothing, like a transaction in a database.", ZH: "会：要么全做，要么全不做，和数据库事务一样。"},
				If: learn.Conditions{"stock": learn.Is(5), "noted": learn.Is(0)}},
			{Text: learn.Text{EN: "No: what came before the error stays, what comes after it is not done.", ZH: "不会：出错之前的写入留下，之后的不再执行。"},
				If: learn.Conditions{"stock": learn.Is(4), "noted": learn.Is(1), "after": learn.Is(0)}},
			{Text: learn.Text{EN: "No: the command that failed is left out, and the rest is done.", ZH: "不会：只跳过出错的那条命令，其余照常执行。"},
				If: learn.Conditions{"stock": learn.Is(4), "noted": learn.Is(1), "after": learn.Is(1)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "redis"}},
		Takes: time.Second,
		Try: func(s *learn.Stand) {
			redis, unseen := s.Redis(), s.RedisUnseen()
			stock, buyers, orders, after := s.Name("stock"), s.Name("buyers"), s.Name("orders"), s.Name("after")
			take := func() (any, error) {
				return s.Ask(redis, "EVAL", takeThenQueue, 4, stock, buyers, orders, after, "buyer-"+s.ID)
			}
			deleteAfter(s, stock, buyers, orders, after)

			g := openGate(s, 5, nil)
			how := g.enqueues()

			s.Step("A naive script takes a unit, notes the buyer and queues the order, 200 times. Somebody looks all the while.", "一个天真的脚本：扣库存、记买家、写队列，执行 200 次；旁边一直有人在看。")
			s.Do(unseen, "HSET", stock, "stock", 205, "sold", 0)
			var half, looks, over atomic.Int64
			s.Together(2, func(i int) error {
				if i == 0 {
					defer over.Store(1)
					for range 200 {
						if _, err := take(); err != nil {
							return err
						}
					}
					return nil
				}
				for over.Load() == 0 {
					seen, err := unseen.HMGet(s.Context(), stock, "stock", "sold").Result()
					if err != nil {
						return err
					}
					looks.Add(1)
					var left, sold int64
					if _, err := fmt.Sscan(fmt.Sprintln(seen...), &left, &sold); err != nil {
						return err
					}
					if left+sold != 205 {
						half.Add(1)
					}
				}
				return nil
			})
			s.Count("looks", looks.Load(), "looks at it meanwhile", "期间看了多少次")
			s.Count("half", half.Load(), "of them saw a script half done", "其中看到执行了一半的")

			s.Step("Now the queue's key holds something else, so that XADD must fail.", "现在让队列的键变成别的类型，XADD 必然失败。")
			s.Do(unseen, "DEL", buyers, after)
			s.Do(redis, "SET", orders, "no stream-"+s.ID)
			if _, err := take(); err == nil {
				s.Fail("XADD wrote into a key that is no stream")
			}
			s.Count("stock", s.Int(redis, "HGET", stock, "stock"), "units left of 5", "5 件里剩下的")
			s.Count("noted", s.Int(redis, "SISMEMBER", buyers, "buyer-"+s.ID), "buyers noted", "记下的买家")
			s.Count("after", s.Int(redis, "EXISTS", after), "commands done after the error", "出错之后还执行了的命令")

			s.Step("The same two writes in MULTI and EXEC.", "换成 MULTI/EXEC。")
			multi := redis.Conn()
			defer multi.Close()
			s.Do(multi, "MULTI")
			s.Do(multi, "HINCRBY", stock, "stock", -1)
			s.Do(multi, "XADD", orders, "*", "buyer", s.ID)
			s.Do(multi, "EXEC")
			s.Count("multi", s.Int(redis, "HGET", stock, "stock"), "units left after EXEC, of 4", "EXEC 之后，4 件里剩下的")

			s.Step("The service's own script on a queue that is broken likewise: it queues first.", "换成服务自己的脚本，队列同样坏掉：它先写队列。")
			s.Do(redis, "SET", how.Key, "no stream-"+s.ID)
			if _, v, err := g.ask(g.buyer(1)); err == nil {
				s.Fail("a click was %v, though its order could not be queued", v)
			}
			s.Count("gate-stock", g.left(), "units that the service's gate has left, of 5", "服务的准入脚本里剩下的，共 5 件")
			s.Count("gate-noted", s.Int(redis, "HLEN", g.key("buyers")), "buyers that it has noted", "它记下的买家")
			s.Do(redis, "DEL", how.Key)
			if _, v := g.click(g.buyer(1)); v != sale.Admitted {
				s.Fail("the buyer tried again and is %v", v)
			}
			s.Count("gate-queued", s.Int(redis, "XLEN", how.Key), "orders queued when the buyer tries again", "买家重试后队列里的订单")
		},
		Expect: learn.Conditions{
			"looks": learn.AtLeast(20), "half": learn.Is(0), "multi": learn.Is(3),
			"gate-stock": learn.Is(5), "gate-noted": learn.Is(0), "gate-queued": learn.Is(1),
		},
		Why: learn.Text{
			EN: "Atomic means isolated here: of {looks} looks none saw a script half done ({half}). It does not mean undone: the script ended at XADD, and left {stock} of 5 units and {noted} buyer without an order. MULTI and EXEC do not roll back either ({multi} of 4 units left). The service's script makes the write that can fail its first one, so that an error left {gate-stock} of 5 units and {gate-noted} buyers, and the buyer could try again.",
			ZH: "这里的“原子”是隔离：看了 {looks} 次，看到一半状态的有 {half} 次。但它不会撤销：脚本停在 XADD，库存剩 {stock}/5，买家已记下 {noted} 个，订单却没有。MULTI/EXEC 同样不回滚（4 件剩 {multi}）。服务的脚本把可能失败的写放在第一位，出错后库存仍是 {gate-stock}/5、买家 {gate-noted} 个，买家可以重试。",
		},
		Say: learn.Text{
			EN: "A Redis script is isolated, but it is never rolled back: what it wrote before an error stays. So read and check everything first, make the write that can fail the first write, and keep the script safe to repeat. What still goes wrong is found by reconciliation.",
			ZH: "Redis 脚本只有隔离性，没有回滚：出错前写的都留下。所以先读先校验，把可能失败的写放在最前面，并让脚本可以安全重试。剩下的不一致交给对账。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "Redis on scripts and their atomicity", ZH: "Redis 文档：脚本的原子性"}, URL: "https://redis.io/docs/latest/develop/programmability/eval-intro/"},
			{Text: learn.Text{EN: "Why transactions of Redis have no rollback", ZH: "Redis 事务为什么没有回滚"}, URL: "https://redis.io/docs/latest/develop/using-commands/transactions/"},
		},
	}
}
