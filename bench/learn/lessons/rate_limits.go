package lessons

import (
	"fmt"
	"log/slog"
	"time"

	"queuelab/app/door"
	"queuelab/bench/learn"
)

// Naive limits of 10 in a second. Each takes the time of the request in ms.
const (
	fixedWindow = `local key = KEYS[1] .. ':' .. math.floor(ARGV[1] / 1000)
local n = redis.call('INCR', key)
redis.call('PEXPIRE', key, 60000)
return n <= 10 and 1 or 0`
	slidingLog = `redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1] - 1000)
if redis.call('ZCARD', KEYS[1]) >= 10 then return 0 end
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
return 1`
	// The bucket leaks one request each 100 ms; the answer is when this one is let
	// through, or 0: it overflows.
	leakyBucket = `local now = tonumber(ARGV[1])
local due = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now)
if due - now >= 1000 then return 0 end
redis.call('SET', KEYS[1], string.format('%.0f', due + 100))
return due`
)

func rateLimits() learn.Lesson {
	return learn.Lesson{
		Number: 36, Name: "rate-limits", Topic: learn.Running,
		Question: learn.Text{
			EN: "A limit of 10 requests a second. 30 come 0.1 s before a second ends, and 30 more 0.1 s after. How many get through in those 0.2 s: fixed window, sliding window, token bucket, leaky bucket?",
			ZH: "限流 10 次/秒：某一秒结束前 0.1 秒来 30 个，下一秒开始后 0.1 秒又来 30 个。固定窗口、滑动窗口、令牌桶、漏桶，这 0.2 秒各放过多少？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "10 with each of them: that is the limit.", ZH: "都是 10 个：限流就是 10。"},
				If: learn.Conditions{"fixed": learn.AtMost(10)}},
			{Text: learn.Text{EN: "20 with a fixed window; 10 with a sliding one; a token bucket 10 and what came in since; a leaky bucket a few, evenly.", ZH: "固定窗口 20 个；滑动窗口 10 个；令牌桶 10 个加这期间补的；漏桶只放几个，匀速。"},
				If: learn.Conditions{"fixed": learn.Is(20), "sliding": learn.Is(10), "bucket-over": learn.AtMost(1), "leaky": learn.AtMost(4)}},
			{Text: learn.Text{EN: "20 with each of them: two seconds are touched.", ZH: "都是 20 个：跨了两秒。"},
				If: learn.Conditions{"fixed": learn.Is(20), "sliding": learn.AtLeast(11)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "redis"}},
		Takes: time.Second,
		Try: func(s *learn.Stand) {
			redis := s.Redis()
			second := time.Now().UnixMilli()/1000*1000 + 1000
			fixed, sliding, leaky := s.Name("fixed"), s.Name("sliding"), s.Name("leaky")
			deleteAfter(s, fmt.Sprint(fixed, ":", second/1000-1), fmt.Sprint(fixed, ":", second/1000), sliding, leaky)
			// burst sends 30 at 900 ms and 30 at 1100 ms of a clock of its own.
			burst := func(script, key string) (answers []int64) {
				for _, at := range []int64{second - 100, second + 100} {
					for i := range 30 {
						answers = append(answers, s.Int(redis, "EVAL", script, 1, key, at, fmt.Sprintf("%s-%d-%d", s.ID, at, i)))
					}
				}
				return answers
			}
			sum := func(answers []int64) (n int64) {
				for _, a := range answers {
					n += a
				}
				return n
			}
			s.Step("Fixed window: a counter per second.", "固定窗口：每秒一个计数器。")
			s.Count("fixed", sum(burst(fixedWindow, fixed)), "let through by a fixed window", "固定窗口放过的")
			s.Step("Sliding window: a log of the last second.", "滑动窗口：记录最近一秒的请求。")
			s.Count("sliding", sum(burst(slidingLog, sliding)), "let through by a sliding window", "滑动窗口放过的")
			s.Do(redis, "ZRANGE", sliding, 0, -1)
			s.Step("Leaky bucket: a queue of 10 that lets one through each 100 ms.", "漏桶：容量 10 的队列，每 100 毫秒放出一个。")
			through := int64(0)
			for _, at := range burst(leakyBucket, leaky) {
				through += count(at > 0 && at <= second+100)
			}
			s.Count("leaky", through, "let through by a leaky bucket in those 0.2 s", "漏桶在这 0.2 秒内放出的")

			s.Step("The service's limit, a token bucket in Redis by Redis' clock: 30, a pause of 0.2 s, 30 more.", "服务的限流：Redis 里的令牌桶，用 Redis 的时钟。30 个，停 0.2 秒，再 30 个。")
			log := slog.New(slog.DiscardHandler)
			rate := door.Rate{N: 10, Per: time.Second}
			limit := func(name string) *door.Shared {
				return door.NewShared(door.NewLocal(rate, 1000), redis, name, log)
			}
			take := func(l door.Limiter, n int) (passed int64) {
				for range n {
					passed += count(l.Take(s.Context(), "buyer-"+s.ID) == 0)
				}
				return passed
			}
			l := limit(s.Name("one"))
			began := time.Now()
			bucket := take(l, 30)
			time.Sleep(200 * time.Millisecond)
			bucket += take(l, 30)
			s.Count("bucket", bucket, "let through by the service's token bucket", "服务的令牌桶放过的")
			more := learn.Text{EN: "more than 10 and what came in since", ZH: "超出“10 加期间补充”的数量"}
			s.Figure("bucket-over", float64(bucket)-10-time.Since(began).Seconds()*10, "", more)

			s.Step("Two instances, 30 requests each: a limit in each one's memory, and one in Redis.", "两个实例，各 30 个请求：各自内存里限流，和 Redis 里共用一个。")
			s.Count("local", take(door.NewLocal(rate, 1000), 30)+take(door.NewLocal(rate, 1000), 30), "let through by two limits in memory", "两个内存限流放过的")
			name := s.Name("two")
			began = time.Now()
			shared := take(limit(name), 30) + take(limit(name), 30)
			s.Count("shared", shared, "let through by one limit in Redis", "Redis 共用限流放过的")
			s.Figure("shared-over", float64(shared)-10-time.Since(began).Seconds()*10, "", more)
		},
		Expect: learn.Conditions{"bucket": learn.AtLeast(11), "local": learn.AtLeast(20), "shared": learn.AtLeast(10), "shared-over": learn.AtMost(1)},
		Why: learn.Text{
			EN: "A fixed window forgets at the full second, so two bursts around it are {fixed} requests in 0.2 s, twice the limit. A sliding window remembers each request of the last second ({sliding}), at the price of an entry for each. A token bucket lets a burst through and then what comes in evenly ({bucket} here), with one number per user; a leaky bucket gives a steady stream ({leaky}) and makes the others wait. Two instances with limits in their own memory let {local} through, one limit in Redis {shared}.",
			ZH: "固定窗口到整秒就清零，所以边界两侧的突发在 0.2 秒内放过 {fixed} 个，是限额的两倍。滑动窗口记住最近一秒的每个请求（{sliding} 个），代价是每个请求一条记录。令牌桶放过一个突发，之后匀速补充（这次 {bucket} 个），每个用户只存一个数；漏桶输出匀速（{leaky} 个），其余排队等。两个实例各自在内存里限流放过 {local} 个，Redis 里共用一个放过 {shared} 个。",
		},
		Say: learn.Text{
			EN: "For users I take a token bucket in Redis, as one script by Redis' clock: bursts are allowed, one key per user, all instances agree. Fixed windows are simple but let twice the limit through at the border; sliding logs are exact and cost memory; leaky buckets protect what cannot take bursts. A local limit stands before it, and if Redis is away the limit must not end the sale.",
			ZH: "面向用户我选 Redis 令牌桶：一个脚本、用 Redis 的时钟，允许突发，每人一个 key，多实例一致。固定窗口简单但边界能放过两倍；滑动日志精确但费内存；漏桶适合保护扛不住突发的下游。前面再加一层本地限流，而且 Redis 不可用时限流不能把业务停掉。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "The generic cell rate algorithm", ZH: "GCRA：令牌桶的一种实现"}, URL: "https://en.wikipedia.org/wiki/Generic_cell_rate_algorithm"},
		},
	}
}
