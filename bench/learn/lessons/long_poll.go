package lessons

import (
	"bufio"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"queuelab/bench/learn"
)

func longPoll() learn.Lesson {
	const each, every, held = 8, 400 * time.Millisecond, 2 * time.Second
	return learn.Lesson{
		Number: 40, Name: "how-to-tell", Topic: learn.Running,
		Question: learn.Text{
			EN: "The order is decided two seconds after the click. Polling every 400 ms, long polling, or a stream of events (SSE): what does each cost, and who knows first?",
			ZH: "点击之后两秒订单才有结果。400 毫秒一次的短轮询、长轮询、SSE：各要多少请求，谁先知道？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "All know at the same time; polling only needs more requests.", ZH: "同时知道，短轮询只是请求多一些。"},
				If: learn.Conditions{"late-ratio": learn.AtMost(1.5)}},
			{Text: learn.Text{EN: "Long polling and SSE know at once with one request; polling needs several and knows later.", ZH: "长轮询和 SSE 一个请求就能立刻知道；短轮询要好几个，还知道得晚。"},
				If: learn.Conditions{"late-ratio": learn.AtLeast(1.6), "poll-requests": learn.AtLeast(3), "long-requests": learn.AtMost(1.5), "sse-requests": learn.Is(1)}},
			{Text: learn.Text{EN: "Only SSE is at once: a long poll is many short ones to the server.", ZH: "只有 SSE 是立刻的：长轮询在服务端就是很多次短轮询。"},
				If: learn.Conditions{"late-ratio": learn.AtLeast(1.6), "long-requests": learn.AtLeast(1.6)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "postgres"}},
		Takes: 5 * time.Second,
		Try: func(s *learn.Stand) {
			var shop *learn.Service
			var voucher string
			s.Quietly(func() {
				shop = s.Service(learn.ServiceOptions{Postgres: true})
				voucher = shop.Sell(100)
			})
			s.Step("The voucher's row is locked in the database, so that orders wait. 24 buyers click.", "在数据库里锁住这张券的行，让订单等待。24 个买家点击。")
			lock, err := shop.DB.BeginTx(s.Context(), nil)
			s.Must(err)
			defer lock.Rollback()
			_, err = lock.ExecContext(s.Context(), "SELECT id FROM vouchers WHERE id = $1 FOR UPDATE", id(s, voucher))
			s.Must(err)
			orders := make([]string, 3*each)
			for i := range orders {
				orders[i], _ = shop.Click(voucher, i+1)
			}

			s.Step("8 buyers ask every 400 ms, 8 send one long poll, 8 read events. Then the lock is lifted.", "8 人每 400 毫秒问一次，8 人发一个长轮询，8 人读事件流。然后放开锁。")
			var requests [3]atomic.Int64
			knew := make([]time.Time, len(orders))
			get := func(i int, wait time.Duration) (bool, error) {
				requests[i%3].Add(1)
				_, a, err := shop.Do(s.Context(), http.MethodGet, "/api/orders/"+orders[i]+"?wait="+wait.String(), fmt.Sprint(i+1), nil)
				return a.Status == "confirmed", err
			}
			var lifted time.Time
			s.Together(len(orders)+1, func(i int) error {
				if i == len(orders) {
					time.Sleep(held)
					lifted = time.Now()
					return lock.Rollback()
				}
				time.Sleep(time.Duration(i/3) * every / each) // they do not ask in step
				var known bool
				var err error
				for end := time.Now().Add(15 * time.Second); !known && err == nil && time.Now().Before(end); {
					switch i % 3 {
					case 0:
						if known, err = get(i, 0); !known {
							time.Sleep(every)
						}
					case 1:
						known, err = get(i, 10*time.Second)
					case 2:
						requests[2].Add(1)
						known, err = events(s, shop, orders[i], i+1)
					}
				}
				if err == nil && !known {
					err = fmt.Errorf("order %s has no answer", orders[i])
				}
				knew[i] = time.Now()
				return err
			})
			late := func(which int) time.Duration {
				var all []time.Duration
				for i := which; i < len(orders); i += 3 {
					all = append(all, knew[i].Sub(lifted))
				}
				slices.Sort(all)
				return all[len(all)/2]
			}
			for i, of := range []struct{ name, en, zh string }{{"poll", "polling", "短轮询"}, {"long", "long polling", "长轮询"}, {"sse", "SSE", "SSE"}} {
				s.Figure(of.name+"-requests", float64(requests[i].Load())/each, "", learn.Text{EN: "requests per order, " + of.en, ZH: "每单请求数，" + of.zh})
				s.Millis(of.name+"-late", late(i), "median until known after the lock was lifted, "+of.en, "放开锁之后多久知道（中位数），"+of.zh)
			}
			s.Figure("late-ratio", float64(late(0))/float64(max(late(1), late(2))), "×", learn.Text{EN: "later by polling", ZH: "短轮询晚了多少倍"})
			shop.Tell(http.MethodGet, "/api/vouchers/"+voucher, "1", nil)
		},
		Why: learn.Text{
			EN: "Polling asks whether or not there is news: {poll-requests} requests per order, and the answer is old by up to the interval ({poll-late} in the median). A long poll is kept by the server until the order is decided: {long-requests} request, known after {long-late}. A stream is the same with the connection left open: {sse-requests} request, {sse-late}.",
			ZH: "短轮询不管有没有消息都要问：每单 {poll-requests} 个请求，而且知道得最多晚一个间隔（中位数 {poll-late}）。长轮询由服务端挂住，订单有结果才返回：{long-requests} 个请求，{long-late} 就知道。SSE 也一样，只是连接一直开着：{sse-requests} 个请求，{sse-late}。",
		},
		Say: learn.Text{
			EN: "For one result I use long polling: one request, plain HTTP, works behind every proxy; SSE where more news follow, such as the place in the line. Both hold a connection per waiting buyer, so bound them and fall back to polling with jitter and a growing pause. Every path must end in a final status, or buyers wait for ever.",
			ZH: "只等一个结果用长轮询：一个请求、普通 HTTP、过得了各种代理；后面还有消息（如排队位置）就用 SSE。两者都要为每个等待者占一个连接，所以要限量，超出的退回带抖动、间隔递增的短轮询。每条失败路径都要写终态，否则用户会一直等。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "Server-sent events", ZH: "Server-sent events"}, URL: "https://html.spec.whatwg.org/multipage/server-sent-events.html"},
		},
	}
}

// events reads the stream of an order until it is decided.
func events(s *learn.Stand, shop *learn.Service, order string, user int) (confirmed bool, err error) {
	req, err := http.NewRequestWithContext(s.Context(), http.MethodGet, shop.URL+"/api/orders/"+order+"/events", nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("X-User-ID", fmt.Sprint(user))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if strings.Contains(lines.Text(), `"status":"confirmed"`) {
			return true, nil
		}
	}
	return false, lines.Err()
}
