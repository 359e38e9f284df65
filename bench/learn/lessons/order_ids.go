package lessons

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/bench/learn"
)

// readNumber reads an id out of JSON as JavaScript does: as a double.
const readNumber = `local o = cjson.decode(ARGV[1])
return {string.format('%.0f', o.orderId), o.shop}`

func orderIDs() learn.Lesson {
	const n = 1000
	return learn.Lesson{
		Number: 39, Name: "ids", Topic: learn.Running,
		Question: learn.Text{
			EN: "Snowflake ids: the clock goes back by 5 ms, and a browser reads the id out of JSON as a number. What comes of it?",
			ZH: "雪花算法：时钟回拨 5 毫秒会怎样？前端把 ID 当数字解析又会怎样？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "Nothing: the sequence keeps ids apart, and 64 bits fit into a JSON number.", ZH: "没事：序列号能区分，64 位整数 JSON 也放得下。"},
				If: learn.Conditions{"naive-twice": learn.Is(0), "as-number": learn.Is(n)}},
			{Text: learn.Text{EN: "Ids come twice; and as numbers different ids become the same.", ZH: "会产生重复 ID；当数字解析，不同的 ID 会变成同一个。"},
				If: learn.Conditions{"naive-twice": learn.AtLeast(1), "as-number": learn.AtMost(n - 1), "ours-twice": learn.Is(0), "as-text": learn.Is(n)}},
			{Text: learn.Text{EN: "Ids come twice; JSON is harmless.", ZH: "会产生重复 ID；JSON 没有问题。"},
				If: learn.Conditions{"naive-twice": learn.AtLeast(1), "as-number": learn.Is(n)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "redis"}},
		Takes: 2 * time.Second,
		Try: func(s *learn.Stand) {
			redis := s.Redis()
			// A clock that goes on by 20 µs at each look, and can be set back.
			var now time.Time
			clock := func() time.Time { now = now.Add(20 * time.Microsecond); return now }
			last, sequence := int64(0), int64(0)
			naive := func() int64 {
				ms := clock().UnixMilli()
				if ms == last {
					sequence++
				} else {
					last, sequence = ms, 0
				}
				return (ms-1735689600000)<<22 | 7<<12 | sequence
			}
			// twice makes ids, sets the clock back in the middle, and counts what a set
			// in Redis had already.
			twice := func(set string, next func() (int64, error), back time.Duration) (repeated, refused int64) {
				deleteAfter(s, set)
				s.Do(redis, "SADD", set, s.ID)
				now = time.Now()
				for i := range n {
					if i == n/2 {
						now = now.Add(-back)
					}
					id, err := next()
					switch {
					case errors.Is(err, sale.ErrClock):
						refused++
						continue
					case err != nil:
						s.Must(err)
					}
					repeated += 1 - s.Int(redis, "SADD", set, id)
				}
				return repeated, refused
			}

			s.Step("A naive snowflake makes 500 ids, the clock goes back by 5 ms, and it makes 500 more. A set in Redis tells which it had.", "天真的雪花算法：生成 500 个 ID，时钟回拨 5 毫秒，再生成 500 个。用 Redis 的集合查重。")
			repeated, _ := twice(s.Name("naive"), func() (int64, error) { return naive(), nil }, 5*time.Millisecond)
			s.Count("naive-twice", repeated, "ids that the naive one made twice, of 1000", "天真写法重复的 ID（共 1000 个）")

			s.Step("The service's: 5 ms back, and then 5 s back.", "服务的生成器：回拨 5 毫秒，再试回拨 5 秒。")
			var slept time.Duration
			flake, err := sale.NewSnowflakeBy(clock, func(d time.Duration) { slept += d; now = now.Add(d) }, 7, nil)
			s.Must(err)
			next := func() (int64, error) { id, err := flake.Next(); return int64(id), err }
			repeated, refused := twice(s.Name("ours"), next, 5*time.Millisecond)
			s.Count("ours-twice", repeated, "ids that the service's made twice", "服务的生成器重复的 ID")
			s.Count("ours-refused", refused, "refused", "拒绝生成的")
			s.Millis("ours-waited", slept, "that it waited", "它等待的时间")
			now = time.Now().Add(time.Hour)
			_, err = flake.Next()
			s.Must(err)
			now = now.Add(-5 * time.Second)
			_, err = flake.Next()
			s.Count("far-refused", count(errors.Is(err, sale.ErrClock)), "refused when the clock is 5 s back", "回拨 5 秒时拒绝生成")

			st, err := store.Open(s.Context(), "sqlite:"+filepath.Join(s.Dir(), "ids.db"))
			s.Must(err)
			s.After(st.Close)
			_, err = sale.TakeLease(s.Context(), st, 7)
			s.Must(err)
			_, err = sale.TakeLease(s.Context(), st, 7)
			s.Count("same-worker", count(err == nil), "second instances that get the same worker number", "拿到相同机器号的第二个实例")

			s.Step("1000 ids one after the other, in JSON as numbers. Redis' own JSON reader makes doubles of them, as a browser does.", "连续 1000 个 ID 以数字写进 JSON，由 Redis 自带的 JSON 解析器读成双精度，和浏览器一样。")
			now = time.Now().Add(2 * time.Hour)
			asNumber, asText := map[string]bool{}, map[string]bool{}
			most := int64(0)
			for range n {
				id, err := flake.Next()
				s.Must(err)
				document := fmt.Sprintf(`{"orderId":%d,"shop":"%s"}`, id, s.ID)
				answer, ok := s.Do(redis, "EVAL", readNumber, 0, document).([]any)
				if !ok || len(answer) != 2 {
					s.Fail("the script answers %v", answer)
				}
				read := fmt.Sprint(answer[0])
				asNumber[read] = true
				got, err := strconv.ParseInt(read, 10, 64)
				s.Must(err)
				most = max(most, got-int64(id), int64(id)-got)
				b, err := json.Marshal(id) // what the service sends
				s.Must(err)
				var back sale.ID
				s.Must(json.Unmarshal(b, &back))
				if back == id && b[0] == '"' {
					asText[back.String()] = true
				}
			}
			s.Count("as-number", int64(len(asNumber)), "different ids left of 1000, as numbers", "1000 个 ID 当数字解析后还剩几个不同的")
			s.Count("off", most, "by which the worst is off", "差得最多的差了多少")
			s.Count("as-text", int64(len(asText)), "different ids left, as the service sends them", "服务的写法（字符串）还剩几个不同的")
		},
		Expect: learn.Conditions{"ours-refused": learn.Is(0), "ours-waited": learn.AtLeast(4), "far-refused": learn.Is(1), "same-worker": learn.Is(0), "off": learn.AtLeast(1)},
		Why: learn.Text{
			EN: "An id is time, worker and sequence: when time comes again and the sequence begins again, so do ids, {naive-twice} of 1000 here. The service's waited {ours-waited} until its clock had caught up ({ours-twice} twice), refuses beyond 100 ms ({far-refused}), and no second instance gets its worker number ({same-worker}). A JSON number is a double in a browser, and in Redis' Lua: 53 bits. 1000 ids became {as-number}, up to {off} off; as text all {as-text} are there.",
			ZH: "ID 由时间、机器号、序列号组成：时间重来、序列号也从头开始，ID 就重来，1000 个里重复 {naive-twice} 个。服务的生成器等了 {ours-waited} 直到时钟追上（重复 {ours-twice} 个），回拨超过 100 毫秒就拒绝（{far-refused} 次），机器号用租约，第二个实例拿不到（{same-worker}）。JSON 数字在浏览器和 Redis 的 Lua 里都是双精度，只有 53 位：1000 个 ID 变成 {as-number} 个，最多差 {off}；用字符串则 {as-text} 个都在。",
		},
		Say: learn.Text{
			EN: "On a small step back wait, on a large one refuse and raise an alarm; lease worker numbers in a shared store and keep a unique key in the database as the last guard. Ids go to the front end as strings, since JavaScript numbers are exact only to 2^53. In Lua they stay strings too.",
			ZH: "小幅回拨就等，大幅回拨拒绝并报警；机器号从共享存储租用，数据库唯一键兜底。给前端的 ID 一律用字符串，因为 JavaScript 数字只精确到 2^53。Lua 里也保持字符串。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "JSON on numbers that are not doubles", ZH: "JSON 规范：超出双精度的数字"}, URL: "https://www.rfc-editor.org/rfc/rfc8259#section-6"},
		},
	}
}
