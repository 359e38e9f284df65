package lessons

import (
	"time"

	"queuelab/bench/learn"
	"queuelab/bench/storage"
)

func restartForgets() learn.Lesson {
	const orders = 500
	return learn.Lesson{
		Number: 9, Name: "redis-restart", Topic: learn.Redis,
		Question: learn.Text{
			EN: "Does a crash of Redis lose orders? What do RDB and AOF change?",
			ZH: "Redis 宕机会丢订单吗？RDB 和 AOF 有什么区别？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "A killed Redis loses up to a second with AOF everysec, and with RDB what came since the last snapshot.", ZH: "kill -9 之后，AOF everysec 最多丢一秒，RDB 丢上次快照之后的。"},
				If: learn.Conditions{"kill-rdb": learn.Is(0), "kill-everysec": learn.AtMost(orders - 1)}},
			{Text: learn.Text{EN: "A killed Redis loses nothing with either AOF; only a power cut takes the last second of everysec.", ZH: "kill -9 之后两种 AOF 都不丢；只有断电才会丢掉 everysec 的最后一秒。"},
				If: learn.Conditions{"kill-rdb": learn.Is(0), "kill-everysec": learn.Is(orders), "cut-everysec": learn.AtMost(orders - 1), "cut-always": learn.Is(orders)}},
			{Text: learn.Text{EN: "Each of the three survives both a kill and a power cut: that is what they are for.", ZH: "三种都扛得住 kill -9 和断电，这正是持久化的意义。"},
				If: learn.Conditions{"kill-rdb": learn.Is(orders), "kill-everysec": learn.Is(orders), "cut-everysec": learn.Is(orders)}},
		},
		Right: 1,
		Needs: []learn.Need{
			{Kind: "redis", Setting: "no-persistence", Own: true},
			{Kind: "redis", Setting: "rdb", Own: true},
			{Kind: "redis", Setting: "aof-everysec", Storage: true},
			{Kind: "redis", Setting: "aof-always", Storage: true},
		},
		Takes: 6 * time.Second,
		Try: func(s *learn.Stand) {
			ctx := s.Context()
			for _, c := range []struct{ name, setting string }{{"none", "no-persistence"}, {"rdb", "rdb"}} {
				s.Use("redis", c.setting)
				s.Step("500 orders into a Redis with the setting "+c.setting+", then kill -9 and a restart.", "往 "+c.setting+" 的 Redis 放 500 个订单，kill -9 再重启。")
				key := fill(s, orders)
				b := s.Broker("redis")
				s.Must(b.Kill(ctx), b.Restart(ctx))
				s.Count("kill-"+c.name, left(s, key), "orders after kill -9, "+c.setting, "kill -9 之后的订单，"+c.setting)
			}
			for _, c := range []struct{ name, setting string }{{"everysec", "aof-everysec"}, {"always", "aof-always"}} {
				s.Use("redis", c.setting)
				b := s.Broker("redis")
				s.Step("The setting "+c.setting+" on a disk that can lose power: right after a sync 500 orders come, and then all stops.", c.setting+"，放在能断电的磁盘上：刚同步完就来 500 个订单，然后一切停在这一刻。")
				redis := s.RedisUnseen()
				before, err := b.SyncStats(ctx)
				s.Must(err)
				s.Do(redis, "SET", "a", "write to be synced")
				s.Eventually("a sync of the log", 5*time.Second, func() bool {
					now, err := b.SyncStats(ctx)
					s.Must(err)
					return now.Syncs > before.Syncs && now.Syncing == 0
				})
				key := fill(s, orders)
				_, err = b.CutPower(ctx)
				s.Must(err)
				s.Step("Redis starts on what it had written by then: that is kill -9.", "用那一刻已写入的内容启动，相当于 kill -9。")
				s.Must(b.RestartFrom(ctx, storage.Crash))
				s.Count("kill-"+c.name, left(s, key), "orders after kill -9, "+c.setting, "kill -9 之后的订单，"+c.setting)
				s.Step("The same instant, with what was synced only: that is a power cut.", "同一时刻，只用已同步到磁盘的内容启动，相当于断电。")
				s.Must(b.RestartFrom(ctx, storage.Power))
				s.Count("cut-"+c.name, left(s, key), "orders after a power cut, "+c.setting, "断电之后的订单，"+c.setting)
			}
		},
		Expect: learn.Conditions{"kill-none": learn.Is(0), "kill-always": learn.Is(orders)},
		Why: learn.Text{
			EN: "Without a log Redis wakes up empty: {kill-none} of 500 orders with no persistence, and {kill-rdb} with RDB, whose first snapshot had not come yet. Both AOF settings write to the kernel before they answer, and what the kernel has outlives the process: {kill-everysec} and {kill-always} were left after kill -9. Power takes what was not synced to the disk: {cut-everysec} were left with everysec, which syncs once a second, and {cut-always} with always, which syncs before it answers.",
			ZH: "没有日志，Redis 醒来就是空的：无持久化剩 {kill-none} 个，RDB 还没到第一次快照，剩 {kill-rdb} 个。两种 AOF 都先写进内核再回复，进程死了内核里的还在：kill -9 之后分别剩 {kill-everysec} 和 {kill-always} 个。断电丢的是没同步到磁盘的：每秒同步一次的 everysec 剩 {cut-everysec} 个，回复前就同步的 always 剩 {cut-always} 个。",
		},
		Say: learn.Text{
			EN: "kill -9 is no power cut: the process is gone, the page cache is not, so AOF loses nothing unless a slow disk delays its writes. Against power only appendfsync always helps, for the price of a sync per reply, and against a lost machine only replicas. RDB alone is a backup and no queue; keep the database the truth, and rebuild stock and queue from it.",
			ZH: "kill -9 不等于断电：进程没了，页缓存还在，除非磁盘慢拖住了写入，否则 AOF 不丢。防断电只有 appendfsync always，代价是每次回复前都要刷盘；防整机损坏要靠副本。只有 RDB 那是备份，不是队列；以数据库为准，库存和队列要能从它重建。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "Persistence", ZH: "持久化"}, URL: "https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/"},
			{Cell: "redis-streams/aof-everysec power-loss"}, {Cell: "redis-streams/aof-everysec slow-fsync+broker-kill"},
		},
	}
}

// fill publishes so many orders, each of them accepted, and returns the key of
// their Stream.
func fill(s *learn.Stand, orders int) string {
	q := s.Queue("redis-streams")
	s.Publish(q, orders)
	keys := s.RedisUnseen().Keys(s.Context(), "stream:{*"+s.ID+"}").Val()
	if len(keys) != 1 {
		s.Fail("%d Streams hold the orders, want one", len(keys))
	}
	return keys[0]
}

// left is how many orders a Redis that was restarted has, and has it show the
// last one.
func left(s *learn.Stand, key string) (n int64) {
	redis := s.Redis()
	s.Eventually("an answer of Redis", 5*time.Second, func() bool {
		v, err := s.Ask(redis, "XLEN", key)
		n, _ = v.(int64)
		return err == nil
	})
	s.Do(redis, "XREVRANGE", key, "+", "-", "COUNT", 1)
	return n
}
