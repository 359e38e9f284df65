package lessons

import (
	"fmt"
	"sync/atomic"
	"time"

	"queuelab/bench/learn"
)

func busyNotSold() learn.Lesson {
	const clicks, units = 2000, 20
	return learn.Lesson{
		Number: 44, Name: "busy-not-sold", Topic: learn.Running,
		Question: learn.Text{
			EN: "Two sales answer 2000 clicks each: one has 20 units, the other 2000. Which has more requests per second, and what does that say about orders?",
			ZH: "为什么 QPS 高不等于卖得多？两场秒杀各有 2000 次点击，一场 20 件，一场 2000 件：谁的 QPS 高？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "The one with 2000 units: who sells more does more requests per second.", ZH: "2000 件的那场：卖得多，QPS 自然高。"},
				If: learn.Conditions{"rate-ratio": learn.AtMost(0.9)}},
			{Text: learn.Text{EN: "The one with 20 units: nearly all of its answers are refusals, and those are cheap.", ZH: "20 件的那场：几乎全是“已售罄”，拒绝很便宜。"},
				If: learn.Conditions{"rate-ratio": learn.AtLeast(1.15), "few-orders": learn.Is(units)}},
			{Text: learn.Text{EN: "Both the same: the gate does the same work for each click.", ZH: "一样：每次点击准入做的事都一样。"},
				If: learn.Conditions{"rate-ratio": learn.Between(0.91, 1.14)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "redis"}},
		Takes: 3 * time.Second,
		Try: func(s *learn.Stand) {
			var shop *learn.Service
			s.Quietly(func() {
				url := s.URL("redis-streams")
				s.Open(url)
				shop = s.Service(learn.ServiceOptions{Queue: url, Redis: true})
			})
			buyers := shop.Unseen()
			next := 0
			// run has 2000 buyers click, 32 at a time.
			run := func(stock int) (rate float64, orders, refused int64, perSecond float64) {
				var voucher string
				s.Quietly(func() {
					voucher = shop.Sell(stock)
					forgetVoucher(s, voucher)
				})
				first := next
				next += clicks
				var sold, no atomic.Int64
				began := time.Now()
				s.Together(32, func(lane int) error {
					for i := lane; i < clicks; i += 32 {
						_, a, err := buyers.Buy(s.Context(), voucher, 1+first+i)
						switch {
						case err != nil:
							return err
						case a.OrderID != "":
							sold.Add(1)
						case a.Error.Code == "sold_out":
							no.Add(1)
						default:
							return fmt.Errorf("click: %s", a.Error.Message)
						}
					}
					return nil
				})
				rate = clicks / time.Since(began).Seconds()
				s.Eventually("the orders to be in the database", 15*time.Second, func() bool {
					orders = shop.Query("SELECT count(*) FROM orders WHERE status = 'confirmed' AND voucher_id = $1", id(s, voucher))
					return orders == sold.Load()
				})
				return rate, orders, no.Load(), float64(orders) / time.Since(began).Seconds()
			}
			s.Quietly(func() { run(clicks) }) // whoever comes first warms up

			s.Step("20 units, 2000 clicks.", "20 件库存，2000 次点击。")
			fewRate, few, refused, fewPer := run(units)
			s.Step("2000 units, 2000 clicks.", "2000 件库存，2000 次点击。")
			manyRate, many, _, manyPer := run(clicks)
			s.Figure("few-rate", fewRate, "/s", learn.Text{EN: "requests, 20 units", ZH: "请求速度，20 件"})
			s.Count("few-orders", few, "orders, 20 units", "订单，20 件")
			s.Count("few-refused", refused, "refusals, 20 units", "拒绝，20 件")
			s.Figure("few-per-second", fewPer, "/s", learn.Text{EN: "orders a second, 20 units", ZH: "下单速度，20 件"})
			s.Figure("many-rate", manyRate, "/s", learn.Text{EN: "requests, 2000 units", ZH: "请求速度，2000 件"})
			s.Count("many-orders", many, "orders, 2000 units", "订单，2000 件")
			s.Figure("many-per-second", manyPer, "/s", learn.Text{EN: "orders a second, 2000 units", ZH: "下单速度，2000 件"})
			s.Figure("rate-ratio", fewRate/manyRate, "×", learn.Text{EN: "requests a second, 20 units against 2000", ZH: "QPS 之比，20 件对 2000 件"})
			s.Figure("order-ratio", manyPer/fewPer, "×", learn.Text{EN: "orders a second, 2000 units against 20", ZH: "下单速度之比，2000 件对 20 件"})
		},
		Expect: learn.Conditions{"few-refused": learn.Is(clicks - units), "many-orders": learn.Is(clicks), "order-ratio": learn.AtLeast(5)},
		Why: learn.Text{
			EN: "A refusal costs a look into memory; a sale costs a script in Redis, a message, a transaction and a result that somebody waits for. So the sale that had nothing left answered {few-rate} and made {few-orders} orders, and the one that sold everything answered {many-rate} and made {many-orders}. By orders a second it is the other way round: {few-per-second} against {many-per-second}.",
			ZH: "拒绝只要查一下内存；卖出一件要跑 Redis 脚本、发消息、一个事务，还有人等结果。所以卖光的那场 QPS {few-rate}，订单只有 {few-orders} 个；全部卖出的那场 QPS {many-rate}，订单 {many-orders} 个。按每秒订单数正好相反：{few-per-second} 对 {many-per-second}。",
		},
		Say: learn.Text{
			EN: "Requests per second of a flash sale are mostly refusals, so a high number proves a fast way to say no. I report orders per second with the share of clicks admitted, beside what was lost, doubled or oversold, since a service that drops every order is the fastest of all. And the load must have a stock that fits it.",
			ZH: "秒杀的 QPS 大部分是拒绝，数字高只说明“说不”说得快。我会报每秒订单数和准入比例，同时报丢单、重单、超卖，因为把订单全丢掉的服务 QPS 最高。压测的库存也要和流量匹配。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "How not to measure latency: coordinated omission", ZH: "压测常见误区：协同遗漏"}, URL: "https://www.infoq.com/presentations/latency-response-time/"},
		},
	}
}
