package lessons

import (
	"net/url"
	"time"

	gates "queuelab/app/admission"
	"queuelab/app/sale"
	"queuelab/bench/learn"
)

func soldOutMark() learn.Lesson {
	return learn.Lesson{
		Number: 35, Name: "sold-out-mark", Topic: learn.Running,
		Question: learn.Text{
			EN: "Each instance remembers \"sold out\" in its own memory to spare Redis. A buyer cancels at instance A. What does the next buyer get at instance B?",
			ZH: "每个实例用本地内存标记“已售罄”来挡住流量。买家在实例 A 退了一单，实例 B 的下一个买家会怎样？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "The unit: B sees it in Redis.", ZH: "买到：B 会在 Redis 里看到。"},
				If: learn.Conditions{"naive-sold": learn.Is(1)}},
			{Text: learn.Text{EN: "\"Sold out\" for ever: nobody tells B. A mark must run out by itself, and soon.", ZH: "一直是“已售罄”：没人通知 B。标记必须很快自动失效。"},
				If: learn.Conditions{"naive-sold": learn.Is(0), "gate-sold": learn.Is(1), "spared": learn.AtLeast(900)}},
			{Text: learn.Text{EN: "\"Sold out\", and there is no way out: a mark that runs out spares Redis nothing.", ZH: "“已售罄”，而且没办法：标记会过期就挡不住流量了。"},
				If: learn.Conditions{"naive-sold": learn.Is(0), "spared": learn.AtMost(500)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "redis"}},
		Takes: 2 * time.Second,
		Try: func(s *learn.Stand) {
			redis, left := s.Redis(), s.Name("left")
			deleteAfter(s, left)

			s.Step("Two naive instances and one unit, which A sells. B asks once, and marks it sold out.", "两个天真的实例，库存 1 件，A 卖出；B 问了一次，标记售罄。")
			s.Do(redis, "SET", left, 1)
			var markA, markB bool
			buy := func(mark *bool) bool {
				if *mark {
					return false
				}
				if s.Int(redis, "DECR", left) >= 0 {
					return true
				}
				s.Do(redis, "INCR", left)
				*mark = true
				return false
			}
			buy(&markA)
			buy(&markB)
			s.Step("The buyer cancels at A, which puts the unit back and takes its own mark away. 20 buyers ask at B for a second.", "买家在 A 取消：A 补回库存、清掉自己的标记。之后一秒内 20 个买家来到 B。")
			s.Do(redis, "INCR", left)
			markA = false
			sold := int64(0)
			for range 20 {
				sold += count(buy(&markB))
				time.Sleep(50 * time.Millisecond)
			}
			s.Count("naive-sold", sold, "units that B sells then", "之后 B 卖出的")
			s.Count("naive-left", s.Int(redis, "GET", left), "units that nobody can buy at B", "B 上谁也买不到的库存")

			s.Step("Two instances of the service's gate, the same story. 1000 clicks come to B while all is gone.", "换成服务的两个准入实例，同样的过程；售罄期间 B 收到 1000 次点击。")
			a := openGate(s, 1, nil)
			u, err := url.Parse(s.Broker("redis").URL())
			s.Must(err)
			u.Host = s.Proxy("redis").Addr()
			var b *gates.Redis
			s.Quietly(func() {
				b, err = gates.OpenRedis(s.Context(), u.String())
				s.Must(err)
				s.After(b.Close)
			})
			r, v := a.click(a.buyer(0))
			if v != sale.Admitted {
				s.Fail("the first buyer is %v", v)
			}
			ask := func(i int) sale.Answer {
				got, err := b.Click(s.Context(), sale.Click{Reservation: a.order(a.buyer(i))})
				s.Must(err)
				return got
			}
			spared := int64(0)
			for i := range 1000 {
				got := ask(100 + i)
				if got.Verdict != sale.SoldOut {
					s.Fail("B sold a unit that there is not")
				}
				spared += count(got.FromMemory)
			}
			s.Count("spared", spared, "of 1000 clicks that B answers without asking Redis", "1000 次点击里 B 没问 Redis 就回答的")
			_, err = a.Release(s.Context(), r)
			s.Must(err)
			back, buyer := time.Now(), 5000
			s.Eventually("B to sell the unit", 5*time.Second, func() bool {
				buyer++
				return ask(buyer).Verdict == sale.Admitted
			})
			after := time.Since(back)
			s.Count("gate-sold", 1-a.left(), "units that B sells then", "之后 B 卖出的")
			s.Do(redis, "HKEYS", a.key("buyers"))
			s.Millis("late", after, "until B sold the unit", "B 隔了多久卖出")
		},
		Expect: learn.Conditions{"naive-left": learn.Is(1), "late": learn.AtMost(1500)},
		Why: learn.Text{
			EN: "A mark in memory is a copy that nobody invalidates: A took its own away, B sold {naive-sold} of the returned unit, and {naive-left} stayed in Redis that nobody could buy there. The service believes \"sold out\" for 100 ms and then asks once more. That spared Redis {spared} of 1000 clicks all the same, and B sold the returned unit after {late}.",
			ZH: "本地标记是一份没人通知失效的副本：A 清了自己的，B 把退回的那件卖出 {naive-sold} 件，Redis 里剩 {naive-left} 件在 B 上谁也买不到。服务只相信“售罄”100 毫秒，之后再问一次。这样 1000 次点击仍有 {spared} 次不用问 Redis，而退回的那件在 {late} 后由 B 卖出。",
		},
		Say: learn.Text{
			EN: "A local sold-out mark is worth it, since most clicks of a flash sale come when all is gone. But it is a cache: give it a time to live of about 100 ms, or tell all instances by Pub/Sub and keep the time to live for when that message is lost. Never set it for ever, since cancelled and unpaid orders come back.",
			ZH: "本地售罄标记很划算，因为秒杀的大部分点击都在售罄之后。但它是缓存：给 100 毫秒左右的有效期，或者用 Pub/Sub 广播失效、再用有效期兜底。绝不能永久有效，因为取消和超时的订单会把库存退回来。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "Client-side caching in Redis, and what invalidates it", ZH: "Redis 客户端缓存与失效通知"}, URL: "https://redis.io/docs/latest/develop/clients/client-side-caching/"},
		},
	}
}
