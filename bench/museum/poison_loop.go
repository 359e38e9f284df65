package museum

import (
	"context"
	"errors"
	"sync"
	"time"

	"queuelab/bench/learn"
	"queuelab/queue"
)

// rounds bounds the loops of exhibits, which would go on for ever.
const rounds = 100

func poisonLoop() Exhibit {
	return Exhibit{
		Number: 3, Name: "poison-loop", Found: []string{"000"},
		Idea: learn.Text{
			EN: "When handling fails, read the pending list again and again until it succeeds; somebody will look after what never does.",
			ZH: "处理失败就反复读待确认列表重试，直到成功；总也不成功的，自有人工介入。",
		},
		Needs: []learn.Need{{Kind: "redis"}}, Takes: 2 * time.Second,
		Damage: func(s *learn.Stand) {
			redis := s.Redis()
			key := stream(s, redis, "orders", 3)
			s.Step("The first of three orders can never be handled.", "三条订单里，第一条永远处理不了。")
			handled, failed := int64(0), int64(0)
			from := ">"
			for range rounds {
				for _, e := range group(s, redis, "c1", key, from, 1) {
					if from = "0"; e.fields["order"] == "1" {
						failed++
						continue
					}
					handled++
					s.Do(redis, "XACK", key, "g", e.id)
					from = ">"
				}
			}
			s.Count("damage-tried", failed, "tries of the order that cannot be handled, in 100 rounds", "100 轮里对坏订单的尝试次数")
			s.Count("damage-handled", handled, "of the two good orders handled", "两条正常订单里处理完的")
		},
		Repair: func(s *learn.Stand) {
			q := s.Queue("redis-streams", "claim=1s")
			c := s.Consumer(q)
			ms := s.Publish(q, 3)
			ctx, stop := context.WithTimeout(s.Context(), 10*time.Second)
			defer stop()
			var mu sync.Mutex
			var handled, dead, tried int64
			over := func() {
				if handled == 2 && dead == 1 {
					stop()
				}
			}
			w := queue.Worker{
				Consumer: c, MaxAttempts: 3,
				Handle: func(_ context.Context, batch []*queue.Delivery) []error {
					mu.Lock()
					defer mu.Unlock()
					errs := make([]error, len(batch))
					for i, d := range batch {
						if d.ID == ms[0].ID {
							tried++
							errs[i] = errors.New("cannot be handled")
							continue
						}
						handled++
					}
					over()
					return errs
				},
				DeadLetter: func(context.Context, *queue.Delivery, error) error {
					mu.Lock()
					defer mu.Unlock()
					dead++
					over()
					return nil
				},
			}
			if err := w.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				s.Must(err)
			}
			s.Count("repair-tried", tried, "tries of the order that cannot be handled", "对坏订单的尝试次数")
			s.Count("repair-handled", handled, "of the two good orders handled", "两条正常订单里处理完的")
			s.Count("repair-dead", dead, "given up, and kept for an operator", "放弃并留给运维的")
		},
		// The broker counts deliveries, and one that came as its lease ran out is not
		// handled.
		Shows: learn.Conditions{
			"damage-tried": learn.AtLeast(rounds - 1), "damage-handled": learn.Is(0),
			"repair-tried": learn.Between(1, 3), "repair-handled": learn.Is(2), "repair-dead": learn.Is(1),
		},
		Happens: learn.Text{
			EN: "The loop never leaves the order that cannot be handled: {damage-tried} tries in 100 rounds, and {damage-handled} of the 2 good orders behind it.",
			ZH: "循环卡在坏订单上：100 轮试了 {damage-tried} 次，后面 2 条正常订单处理了 {damage-handled} 条。",
		},
		Mend: learn.Text{
			EN: "Count the attempts, let the neighbours pass, and give up after three: {repair-tried} tries, {repair-handled} of 2 handled, {repair-dead} dead-lettered.",
			ZH: "计数、放行邻居、投递满三次就放弃：坏订单试了 {repair-tried} 次，正常订单处理 {repair-handled}/2，死信 {repair-dead} 条。",
		},
	}
}
