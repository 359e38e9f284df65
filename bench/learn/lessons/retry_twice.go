package lessons

import (
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/app/sale"
	"queuelab/bench/learn"
	"queuelab/bench/proxy"
)

// takeAndQueue is right but for one thing: it cannot tell a second try from a
// second wish.
const takeAndQueue = `if tonumber(redis.call('GET', KEYS[1])) < 1 then return 'sold out' end
redis.call('DECR', KEYS[1])
redis.call('XADD', KEYS[2], '*', 'buyer', ARGV[1])
return 'ok'`

func retryTwice() learn.Lesson {
	return learn.Lesson{
		Number: 15, Name: "retry-twice", Topic: learn.Admission,
		Question: learn.Text{
			EN: "The script's answer is late, and the client times out. Can one click take two units?",
			ZH: "脚本的回复超时了：一次点击会不会扣两次库存？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "No: a call that timed out was not done, and the caller gets an error.", ZH: "不会：超时就是没执行，调用方会得到错误。"},
				If: learn.Conditions{"taken": learn.AtMost(1)}},
			{Text: learn.Text{EN: "Yes, and the caller sees an error, so it can give one back.", ZH: "会，但调用方能看到错误，可以补回一件。"},
				If: learn.Conditions{"taken": learn.AtLeast(2), "told": learn.Is(1)}},
			{Text: learn.Text{EN: "Yes, and nobody is told: the client library tries again by itself.", ZH: "会，而且没人知道：客户端库自己悄悄重试了。"},
				If: learn.Conditions{"taken": learn.AtLeast(2), "told": learn.Is(0)}},
		},
		Right: 2,
		Needs: []learn.Need{{Kind: "redis"}},
		Takes: 2 * time.Second,
		Try: func(s *learn.Stand) {
			left, orders := s.Name("left"), s.Name("orders")
			deleteAfter(s, left, orders)
			network := s.Proxy("redis")

			g := openGate(s, 10, nil)
			how := g.enqueues()

			s.Step("A client of go-redis as it comes, but that it waits 300 ms. The answer to its script is held up for 3 s.", "go-redis 默认配置，只把读超时设为 300 毫秒；脚本的回复被网络拖住 3 秒。")
			o, err := redis.ParseURL(s.Broker("redis").URL())
			s.Must(err)
			o.Addr, o.ReadTimeout, o.DisableIdentity = network.Addr(), 300*time.Millisecond, true
			plain := redis.NewClient(o)
			s.After(plain.Close)
			s.Count("retries", int64(plain.Options().MaxRetries), "retries that go-redis makes by default", "go-redis 默认的重试次数")
			s.Do(plain, "SET", left, 10)
			held := network.Counts().Held[proxy.ToClient]
			network.Set(proxy.ToClient, proxy.Rule{Delay: 3 * time.Second})
			type answer struct {
				said any
				err  error
			}
			answered := make(chan answer, 1)
			go func() {
				said, err := s.Ask(plain, "EVAL", takeAndQueue, 2, left, orders, "buyer-"+s.ID)
				answered <- answer{said, err}
			}()
			s.Must(network.Await(s.Context(), func(c proxy.Counts) bool { return c.Held[proxy.ToClient] > held }))
			network.Set(proxy.ToClient, proxy.Rule{})
			got := <-answered
			s.Count("told", count(got.err != nil || got.said != "ok"), "errors that the caller saw", "调用方看到的错误")
			s.Count("taken", 10-s.Int(plain, "GET", left), "units taken by one click", "一次点击扣掉的库存")
			s.Count("queued", s.Int(plain, "XLEN", orders), "orders queued by it", "一次点击写进队列的订单")
			s.Do(plain, "XRANGE", orders, "-", "+")

			s.Step("The service's gate loses an answer: it gets an error, and asks again with the same order id.", "服务的准入丢了一个回复：它得到错误，用同一个订单号再问一次。")
			r := g.order(g.buyer(1))
			lost := network.LoseReply(proxy.RedisCommand("evalsha"))
			_, err = g.Click(s.Context(), sale.Click{Reservation: r})
			s.Count("gate-told", count(err != nil), "errors that the gate saw", "准入看到的错误")
			s.Eventually("a reply to be lost", 5*time.Second, func() bool { return closed(lost) })
			a, err := g.Click(s.Context(), sale.Click{Reservation: r, Again: true})
			s.Must(err)
			s.Count("gate-same", count(a.Verdict == sale.Admitted && a.Order == r.OrderID), "admitted with the same order when it asks again", "重问后以同一订单通过")
			s.Count("gate-taken", 10-g.left(), "units taken by that click", "这次点击扣掉的库存")
			s.Count("gate-queued", s.Int(plain, "XLEN", how.Key), "orders queued by it", "这次点击写进队列的订单")
		},
		Expect: learn.Conditions{
			"retries": learn.AtLeast(1), "queued": learn.AtLeast(2), "gate-told": learn.Is(1), "gate-same": learn.Is(1), "gate-taken": learn.Is(1), "gate-queued": learn.Is(1),
		},
		Why: learn.Text{
			EN: "A time-out says nothing about what the server did: here the script had run, and only its answer was late. go-redis tries up to {retries} times more by default, so that one click took {taken} units and queued {queued} orders, with {told} errors. The service's client does not retry; its gate got {gate-told} error, asked again with the same order id, and the script answered that the order has its unit: {gate-taken} taken, {gate-queued} queued.",
			ZH: "超时并不说明服务端做没做：这次脚本已经执行，只是回复晚了。go-redis 默认最多再重试 {retries} 次，于是一次点击扣了 {taken} 件、写了 {queued} 个订单，错误 {told} 个。服务的客户端关掉了重试；准入得到 {gate-told} 个错误，用同一个订单号再问，脚本回答这单已经占到库存：扣 {gate-taken} 件，入队 {gate-queued} 单。",
		},
		Say: learn.Text{
			EN: "A time-out is unknown, not failed. Switch off the client library's retries for anything that is not idempotent, and make the script idempotent by a request id that the caller chose, so that a retry gets the first answer. Then retry as often as you like.",
			ZH: "超时是“未知”，不是“失败”。对非幂等的命令关掉客户端库的自动重试，并让脚本按调用方生成的请求号幂等，重试拿到的是第一次的结果。这样就可以放心重试。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "go-redis: MaxRetries and its default", ZH: "go-redis：MaxRetries 及其默认值"}, URL: "https://pkg.go.dev/github.com/redis/go-redis/v9#Options"},
			{Cell: "redis-list/client-retries lost-reply-publish"},
		},
	}
}
