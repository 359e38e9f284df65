package lessons

import (
	"math"
	"net/url"
	"time"

	"queuelab/backends"
	"queuelab/bench/learn"
)

func criterionSpeed() learn.Lesson {
	const rounds, singles, batches, batch = 5, 20, 10, 100
	return learn.Lesson{
		Number: 51, Name: "criterion-speed", Topic: learn.Criteria,
		Question: learn.Text{
			EN: "Speed: which is the fastest queue, and what makes the difference?",
			ZH: "性能：哪种队列最快？差别从哪里来？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "Kafka, however it is used.", ZH: "Kafka，怎么用都最快。"},
				If: learn.Conditions{"kafka-over-list": learn.AtLeast(1)}},
			{Text: learn.Text{EN: "Redis, and it hardly matters how messages are sent.", ZH: "Redis，怎么发送影响不大。"},
				If: learn.Conditions{"kafka-over-list": learn.AtMost(0.8), "gain-redis-list": learn.AtMost(2), "gain-kafka": learn.AtMost(2)}},
			{Text: learn.Text{EN: "One message per call Redis is ahead of Kafka; a hundred per call make both at least three times as fast.", ZH: "一次发一条时 Redis 快于 Kafka；一次发一百条，两者都快三倍以上。"},
				If: learn.Conditions{"kafka-over-list": learn.AtMost(0.8), "gain-redis-list": learn.AtLeast(3), "gain-kafka": learn.AtLeast(3)}},
		},
		Right: 2,
		Needs: sixNeed(),
		Takes: 6 * time.Second,
		Try: func(s *learn.Stand) {
			for _, c := range six(map[string][]string{"memory": {"capacity=10000"}}) {
				s.Step(c.backend+": what is said for one order, and for three in one call.", c.backend+"：发一个订单说了什么，一次发三个又说了什么。")
				p := s.Publisher(s.Queue(c.backend, c.params...))
				ms := s.Messages(3)
				s.Must(p.Publish(s.Context(), ms[0]), p.Publish(s.Context(), ms...))
			}
			s.Step("The rates, past the proxy: it would be measured too.", "速率不经过代理测量，否则连代理也算进去了。")
			one := map[string]float64{}
			for _, c := range six(map[string][]string{"memory": {"capacity=100000"}}) {
				p := s.Publisher(s.Open(straight(s, c)))
				ms := s.Messages(batches * batch)
				best := func(publish func()) (rate float64) { // of some rounds: others use this machine too
					for range rounds {
						began := time.Now()
						publish()
						rate = max(rate, 1/time.Since(began).Seconds())
					}
					return rate
				}
				single := math.Round(singles * best(func() {
					for _, m := range ms[:singles] {
						s.Must(p.Publish(s.Context(), m))
					}
				}))
				many := math.Round(batches * batch * best(func() {
					for at := 0; at < len(ms); at += batch {
						s.Must(p.Publish(s.Context(), ms[at:at+batch]...))
					}
				}))
				one[c.backend] = single
				s.Figure("one-"+c.backend, single, "/s", learn.Text{EN: c.backend + ": one per call", ZH: c.backend + "：一次一条"})
				s.Figure("batch-"+c.backend, many, "/s", learn.Text{EN: c.backend + ": a hundred per call", ZH: c.backend + "：一次一百条"})
				s.Figure("gain-"+c.backend, math.Round(many/single), "", learn.Text{EN: c.backend + ": so many times as fast", ZH: c.backend + "：快的倍数"})
			}
			s.Figure("kafka-over-list", one["kafka"]/one["redis-list"], "", learn.Text{EN: "Kafka's rate over the list's, one per call", ZH: "一次一条时 Kafka 与 List 的速率之比"})
		},
		Expect: learn.Conditions{"one-memory": learn.AtLeast(100_000)},
		Why: learn.Text{
			EN: "Who sends one message and waits for its answer gets one round trip at a time: {one-redis-list} with a list, {one-rabbitmq} with RabbitMQ, {one-kafka} with Kafka. A hundred in one call share round trips: that was {gain-redis-list} times as fast with the list and {gain-kafka} with Kafka. The queue in memory has no round trip at all, {one-memory}, which is what the others are measured against. All of it is the best of five rounds, on this machine and in this minute.",
			ZH: "发一条等一条，一次往返只走一条：List {one-redis-list}，RabbitMQ {one-rabbitmq}，Kafka {one-kafka}。一次一百条就共享往返：List 快 {gain-redis-list} 倍，Kafka 快 {gain-kafka} 倍。内存队列没有往返，{one-memory}，是其他几种的标尺。这些数字只属于这台机器、这一分钟，取的是最好的一轮。",
		},
		Say: learn.Text{
			EN: "I would not name a fastest broker: batching and the durability of a confirm move the rate more than the product does. For a flash sale the queue is seldom the limit, the database behind it is. So measure with your own message size, durability and load, open loop, and read p99 beside the losses.",
			ZH: "我不会说哪个 broker 最快：批量和确认的持久级别对速率的影响比产品本身更大。秒杀里瓶颈很少在队列，多半在后面的数据库。要用自己的消息大小、持久化级别和负载做开环压测，p99 和丢失数一起看。",
		},
	}
}

// straight is the URL of a new queue, past the proxy.
func straight(s *learn.Stand, c contender) string {
	through, err := url.Parse(s.URL(c.backend, c.params...))
	s.Must(err)
	b, err := backends.Lookup(c.backend)
	s.Must(err)
	if b.Broker == "" {
		return through.String()
	}
	u, err := url.Parse(s.Broker(b.Broker).URL())
	s.Must(err)
	through.Host = u.Host
	return through.String()
}
