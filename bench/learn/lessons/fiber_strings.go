package lessons

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"queuelab/bench/learn"
)

func fiberStrings() learn.Lesson {
	const connections, each = 8, 100
	return learn.Lesson{
		Number: 41, Name: "fiber-strings", Topic: learn.Running,
		Question: learn.Text{
			EN: "A fiber handler puts c.Params(\"user\") into a channel and returns; a consumer writes the order later. Whose name is in it?",
			ZH: "Go 的 fiber 为什么会串用户？handler 把 c.Params(\"user\") 放进 channel 就返回，消费者稍后写订单，里面是谁的名字？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "The buyer's: strings in Go never change.", ZH: "买家自己的：Go 的字符串不可变。"},
				If: learn.Conditions{"naive-wrong": learn.Is(0)}},
			{Text: learn.Text{EN: "Mostly somebody else's: the string points into a buffer that the next request fills. A copy is right.", ZH: "大多是别人的：字符串指向会被下一个请求覆盖的缓冲区，复制一份就对了。"},
				If: learn.Conditions{"naive-wrong": learn.AtLeast(connections * each / 2), "copy-wrong": learn.Is(0)}},
			{Text: learn.Text{EN: "Somebody else's, and a copy does not help: the mistake is the channel.", ZH: "会串，复制也没用：问题出在 channel。"},
				If: learn.Conditions{"naive-wrong": learn.AtLeast(1), "copy-wrong": learn.AtLeast(1)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "redis"}},
		Takes: 2 * time.Second,
		Try: func(s *learn.Stand) {
			s.Step("A fiber server: its handler queues the name as it is, and a copy of it. 8 connections send 100 requests each.", "一个 fiber 服务：handler 把名字原样入队，再入队一份副本。8 个连接各发 100 个请求。")
			type order struct{ asIs, copied, number string }
			queue := make(chan order, connections*each)
			app := fiber.New(fiber.Config{DisableStartupMessage: true})
			app.Post("/buy/:user", func(c *fiber.Ctx) error {
				user := c.Params("user")
				queue <- order{user, strings.Clone(user), strings.Clone(c.Query("number"))}
				return c.SendStatus(http.StatusAccepted)
			})
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			s.Must(err)
			served := make(chan error, 1)
			go func() { served <- app.Listener(listener) }()
			buyer := func(i int) string { return fmt.Sprintf("buyer%04d-%s", i, s.ID) }
			s.Together(connections, func(c int) error {
				client := &http.Client{Transport: &http.Transport{}} // a connection of its own
				defer client.CloseIdleConnections()
				for i := c * each; i < (c+1)*each; i++ {
					resp, err := client.Post("http://"+listener.Addr().String()+"/buy/"+buyer(i)+"?number="+strconv.Itoa(i), "", nil)
					if err != nil {
						return err
					}
					resp.Body.Close()
				}
				return nil
			})
			s.Must(app.ShutdownWithTimeout(5*time.Second), <-served)
			close(queue)

			s.Step("The consumer writes them into two lists.", "消费者把它们写进两个列表。")
			redis, asIs, copied := s.Redis(), s.Name("as-is"), s.Name("copied")
			deleteAfter(s, asIs, copied)
			var naiveWrong, copyWrong, requests int64
			for o := range queue {
				n, err := strconv.Atoi(o.number)
				s.Must(err)
				requests++
				naiveWrong += count(o.asIs != buyer(n))
				copyWrong += count(o.copied != buyer(n))
				s.Do(redis, "RPUSH", asIs, o.number+" of "+o.asIs)
				s.Do(redis, "RPUSH", copied, o.number+" of "+o.copied)
			}
			s.Do(redis, "LRANGE", asIs, 0, 4)
			s.Do(redis, "LRANGE", copied, 0, 4)
			s.Count("requests", requests, "requests", "请求")
			s.Count("naive-wrong", naiveWrong, "orders with somebody else's name, as it is", "原样入队：名字是别人的订单")
			s.Count("copy-wrong", copyWrong, "orders with somebody else's name, copied", "复制之后：名字是别人的订单")

			s.Step("The service, which is a fiber server with its queue in the same process: 800 buyers.", "服务本身也是 fiber，队列就在同一进程里：800 个买家。")
			var shop *learn.Service
			var voucher string
			s.Quietly(func() {
				shop = s.Service(learn.ServiceOptions{})
				voucher = shop.Sell(connections * each)
			})
			buyers := shop.Unseen()
			var mu sync.Mutex
			of := map[string]string{}
			s.Together(connections, func(c int) error {
				for i := c * each; i < (c+1)*each; i++ {
					_, a, err := buyers.Buy(s.Context(), voucher, 10000+i)
					if err != nil {
						return err
					}
					mu.Lock()
					of[a.OrderID] = strconv.Itoa(10000 + i)
					mu.Unlock()
				}
				return nil
			})
			s.Eventually("the orders to be in the database", 10*time.Second, func() bool {
				return shop.Query("SELECT count(*) FROM orders WHERE status = 'confirmed'") == connections*each
			})
			rows, err := shop.DB.QueryContext(s.Context(), "SELECT CAST(id AS TEXT), user_id FROM orders")
			s.Must(err)
			defer rows.Close()
			wrong := int64(0)
			for rows.Next() {
				var id, user string
				s.Must(rows.Scan(&id, &user))
				wrong += count(of[id] != user)
			}
			s.Must(rows.Err())
			s.Count("service-wrong", wrong, "orders of the service with somebody else's name", "服务里名字是别人的订单")
		},
		Expect: learn.Conditions{"requests": learn.Is(connections * each), "service-wrong": learn.Is(0)},
		Why: learn.Text{
			EN: "fiber makes strings of a request without copying: they point into a buffer that is used again once the handler has returned. So {naive-wrong} of {requests} orders had somebody else's name when the consumer read them, and of the copies {copy-wrong}. The compiler and most tests see nothing, since within the handler all is right. The service copies, or parses to numbers, whatever outlives a handler: {service-wrong} wrong.",
			ZH: "fiber 为了零拷贝，请求里的字符串直接指向缓冲区，handler 返回后缓冲区会被复用。所以消费者读到时，{requests} 个订单里有 {naive-wrong} 个是别人的名字，复制的那份错 {copy-wrong} 个。编译器和大多数测试都看不出来，因为在 handler 里一切正常。服务对所有比 handler 活得久的值都复制或转成数字：错 {service-wrong} 个。",
		},
		Say: learn.Text{
			EN: "fasthttp and fiber reuse request buffers, and a string made without a copy changes under you. Copy what leaves the handler: strings.Clone, utils.CopyString, a number, or Immutable: true for all at some cost. An in-process channel is the first victim, because a network queue copies when it sends.",
			ZH: "fasthttp/fiber 复用请求缓冲区，不拷贝得到的字符串会被改写。凡是离开 handler 的值都要复制：strings.Clone、utils.CopyString、转成数字，或者打开 Immutable（有开销）。进程内 channel 首当其冲，因为网络队列发送时已经拷贝了。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "Fiber on zero allocation", ZH: "Fiber：零分配与值的有效期"}, URL: "https://docs.gofiber.io/#zero-allocation"},
		},
	}
}
