package museum

import (
	"context"
	"errors"
	"time"

	"queuelab/bench/learn"
	"queuelab/queue"
)

func lockBusy() Exhibit {
	return Exhibit{
		Number: 7, Name: "lock-busy-and-acked", Found: []string{"001"},
		Idea: learn.Text{
			EN: "When the buyer's lock is busy the consumer writes a line to the log and returns; the message is acked as if it were done.",
			ZH: "抢不到用户锁时，消费者打一行日志就返回，消息照样被确认。",
		},
		Needs: []learn.Need{{Kind: "redis"}}, Takes: 2 * time.Second,
		Damage: func(s *learn.Stand) {
			redis := s.Redis()
			stock, lock := s.Name("stock"), s.Name("lock")
			gone(s, stock, lock)
			key := stream(s, redis, "orders", 0)
			s.Do(redis, "SET", stock, 5)
			s.Do(redis, "DECR", stock)
			send(s, redis, key, 1)
			s.Step("The lock is held, as by another click of the same buyer, when the order comes.", "订单到来时锁正被占用，比如同一用户的另一次点击。")
			s.Do(redis, "SET", lock, "held", "NX", "PX", 300)
			orders := int64(0)
			for _, e := range group(s, redis, "c1", key, ">", 1) {
				if s.Do(redis, "SET", lock, "mine", "NX", "PX", 1000) != nil {
					orders++
				}
				s.Do(redis, "XACK", key, "g", e.id)
			}
			s.Step("The lock is free again. Does the order come again?", "锁释放了。订单还会再来吗？")
			s.Do(redis, "DEL", lock)
			orders += int64(len(group(s, redis, "c1", key, "0", 1)))
			s.Count("damage-orders", orders, "orders, of 1 that was sold", "写成的订单，卖出 1 件")
			s.Count("damage-leaked", 5-s.Int(redis, "GET", stock)-orders, "units gone without an order", "没有订单却扣掉的库存")
		},
		Repair: func(s *learn.Stand) {
			redis := s.Redis()
			stock, lock := s.Name("stock2"), s.Name("lock2")
			gone(s, stock, lock)
			q := s.Queue("redis-streams")
			c := s.Consumer(q)
			s.Do(redis, "SET", stock, 5)
			s.Do(redis, "DECR", stock)
			s.Do(redis, "SET", lock, "held", "NX", "PX", 300)
			s.Publish(q, 1)
			ctx, stop := context.WithTimeout(s.Context(), 10*time.Second)
			defer stop()
			orders, tries := int64(0), int64(0)
			w := queue.Worker{
				Consumer: c,
				Backoff:  func(int) time.Duration { return 100 * time.Millisecond },
				Handle: func(ctx context.Context, batch []*queue.Delivery) []error {
					tries++ // one lane
					took, err := redis.SetNX(ctx, lock, "mine", time.Second).Result()
					if err == nil && !took {
						err = errors.New("the lock is busy")
					}
					if err == nil {
						orders++
						stop()
					}
					return []error{err}
				},
			}
			if err := w.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				s.Must(err)
			}
			s.Count("repair-tries", tries, "deliveries until the lock was free", "锁释放之前投递的次数")
			s.Count("repair-orders", orders, "orders, of 1 that was sold", "写成的订单，卖出 1 件")
			s.Count("repair-leaked", 5-s.Int(redis, "GET", stock)-orders, "units gone without an order", "没有订单却扣掉的库存")
		},
		Shows: learn.Conditions{
			"damage-orders": learn.Is(0), "damage-leaked": learn.Is(1),
			"repair-tries": learn.AtLeast(2), "repair-orders": learn.Is(1), "repair-leaked": learn.Is(0),
		},
		Happens: learn.Text{
			EN: "The order is gone: {damage-orders} were written, {damage-leaked} unit is missing from the stock, and only a line in a log knows.",
			ZH: "订单就此消失：写成 {damage-orders} 条，库存少了 {damage-leaked} 件，只有日志里留了一行。",
		},
		Mend: learn.Text{
			EN: "What is not done is not acked: after {repair-tries} deliveries {repair-orders} order was written. A unique index makes the lock unnecessary.",
			ZH: "没做完就不确认：投递 {repair-tries} 次后写成 {repair-orders} 条。有唯一索引，这把锁本来就不需要。",
		},
	}
}
