package museum

import (
	"time"

	"queuelab/bench/learn"
)

// naiveShop keeps in a field what its consumer needs, and a request fills it in.
type naiveShop struct {
	save func(order string)
}

func (n *naiveShop) click(save func(order string)) { n.save = save }

func (n *naiveShop) handle(order string) { n.save(order) }

// handleOnce reports whether handling ended without a panic.
func (n *naiveShop) handleOnce(order string) (ok bool) {
	defer func() { ok = recover() == nil }()
	n.handle(order)
	return true
}

func requestField() Exhibit {
	// twoLives sells one order in the first life of an instance, and lets the second
	// one handle what the first has left.
	twoLives := func(s *learn.Stand, name string, begin func(save func(string)) *naiveShop) (failed, saved int64) {
		redis := s.Redis()
		save := func(string) { saved++ }
		first := begin(save)
		key := stream(s, redis, name, 0)
		first.click(save)
		send(s, redis, key, 1)
		s.Step("The instance is restarted before its consumer has read the order.", "消费者还没读到订单，实例重启了。")
		second := begin(save)
		from := ">"
		for range rounds {
			for _, e := range group(s, redis, "c1", key, from, 1) {
				if from = "0"; !second.handleOnce(e.fields["order"]) {
					failed++
					continue
				}
				s.Do(redis, "XACK", key, "g", e.id)
			}
		}
		return failed, saved
	}
	return Exhibit{
		Number: 4, Name: "field-set-by-a-request", Found: []string{"000", "001"},
		Idea: learn.Text{
			EN: "The thread of a request stores in a field what the consumer needs later to write the order.",
			ZH: "请求线程把消费者以后写订单要用的对象存进成员变量。",
		},
		Needs: []learn.Need{{Kind: "redis"}}, Takes: time.Second,
		Damage: func(s *learn.Stand) {
			failed, saved := twoLives(s, "orders", func(func(string)) *naiveShop { return &naiveShop{} })
			s.Count("damage-failed", failed, "tries that ended in a nil pointer, in 100 rounds", "100 轮里空指针的次数")
			s.Count("damage-saved", saved, "orders saved, of 1", "写入的订单，共 1 条")
		},
		Repair: func(s *learn.Stand) {
			failed, saved := twoLives(s, "orders2", func(save func(string)) *naiveShop { return &naiveShop{save} })
			s.Count("repair-failed", failed, "tries that failed", "失败的次数")
			s.Count("repair-saved", saved, "orders saved, of 1", "写入的订单，共 1 条")
		},
		Shows: learn.Conditions{
			"damage-failed": learn.Is(rounds), "damage-saved": learn.Is(0), "repair-failed": learn.Is(0), "repair-saved": learn.Is(1),
		},
		Happens: learn.Text{
			EN: "After a restart, and on every instance that had no request yet, the field is empty: {damage-failed} tries failed, {damage-saved} orders were saved, and the order stays pending for ever.",
			ZH: "重启之后、或者还没收到请求的实例上，这个变量是空的：失败 {damage-failed} 次，写入 {damage-saved} 条，订单一直挂在待确认列表里。",
		},
		Mend: learn.Text{
			EN: "What a consumer needs is given to it when it is made, and comes from no request: {repair-saved} saved.",
			ZH: "消费者需要的东西在构造时给它，不靠请求带来：写入 {repair-saved} 条。",
		},
	}
}
