package report

import (
	"fmt"
	"slices"
	"strings"

	"queuelab/bench/trial"
	"queuelab/queue"
)

// CapabilityRow is a setting and what its open queue says of itself.
type CapabilityRow struct {
	Setting      string
	Capabilities queue.Capabilities
}

// language holds the words of the README's blocks.
type language struct {
	setting, guarantee, confirm, p50, p99, held, sale string
	killed                                            map[string]string
	atLeast, atMost                                   string
	floor, emulated, skipped, invalid                 string
	legend                                            string
	yes, no, comma                                    string
	capabilities                                      []string
	words                                             map[string]string
}

func english() language {
	return language{
		setting: "setting", guarantee: "guarantee", confirm: "confirmed by", p50: "end to end p50", p99: "p99", held: "held", sale: "sale, ",
		killed:  map[string]string{},
		atLeast: "at least once", atMost: "at most once",
		floor: "harness floor", emulated: "emulated", skipped: "skipped", invalid: "invalid",
		legend: "Latency: open loop at the offered rate, from the due time. Held: closed loop. Killed: messages lost / delivered again, n valid trials. Sale: units sold / in stock.",
		yes:    "yes", no: "-",
		capabilities: []string{"setting", "guarantee", "confirmed by", "a message goes to", "attempts", "survives a killed broker", "it can", "beware"}, comma: ", ",
	}
}

func chinese() language {
	return language{
		setting: "配置", guarantee: "投递保证", confirm: "由谁确认", p50: "端到端 p50", p99: "p99", held: "吞吐", sale: "秒杀，",
		killed: map[string]string{
			trial.FaultNone: "无故障", trial.FaultConsumerKillMidHandle: "处理中杀死消费者", trial.FaultConsumerKillBeforeAck: "确认前杀死消费者",
			trial.FaultBrokerKill: "杀死消息服务器", trial.FaultServiceKill: "杀死秒杀服务",
		},
		atLeast: "至少一次", atMost: "至多一次",
		floor: "测试框架下限", emulated: "模拟", skipped: "跳过", invalid: "无效",
		legend: "延迟：开环、按设定速率发送，从应发时刻算起。吞吐：闭环。杀死：丢失条数 / 重复投递条数，n 为有效试验次数。秒杀：售出 / 库存。",
		yes:    "是", no: "-",
		capabilities: []string{"配置", "投递保证", "由谁确认", "一条消息投给", "投递计数", "服务器被杀后仍在", "能够", "当心"}, comma: "、",
		words: map[string]string{
			"nobody": "无人", "memory": "内存", "operating system": "操作系统", "disk": "磁盘", "replicas": "副本",
			"not counted": "不计数", "counted by the broker": "服务器计数", "flagged by the broker": "服务器标记",
			"answer an ack": "应答 ack", "nack": "nack", "groups": "消费组", "order per key": "同键有序", "replay": "重放", "route by key": "按键路由", "bound itself": "限制长度", "fence a lost lease": "拦截失效租约",
			"keeps nothing for later consumers": "不为后来的消费者保留", "only within one process": "仅限一个进程", "drops the oldest when full": "满时丢弃最旧的", "a pop on its way dies with its consumer": "弹出途中消费者被杀即丢失",
			"a message may wait for the next one": "消息可能滞留到下一条到来", "skips what comes while nobody receives": "无人接收时到来的会被跳过",
			"every consumer": "每个消费者", "one consumer": "其中一个", "at least once": "至少一次", "at most once": "至多一次",
			"lost": "丢失", "oversold": "超卖", "double": "重复下单", "waiting": "仍在等待", "undersold": "少卖",
		},
	}
}

func (l language) word(s string) string {
	if w, ok := l.words[s]; ok {
		return w
	}
	return s
}

func (l language) fault(f string) string {
	if w, ok := l.killed[f]; ok {
		return w
	}
	return faultTitle(f).String()
}

// ReadmeTable is the result as one compact Markdown table, one row for each
// setting, under a line with its date, machine and versions.
func ReadmeTable(result trial.Result) string { return readmeTable(result, english()) }

// ReadmeTableZh is ReadmeTable in Chinese.
func ReadmeTableZh(result trial.Result) string { return readmeTable(result, chinese()) }

func readmeTable(result trial.Result, l language) string {
	v := newView(result)
	h := v.run.Host
	var b strings.Builder
	fmt.Fprintf(&b, "%s; %s; %s\n\n", md(day(v.run.StartedAt)), md(fmt.Sprintf("%s × %d, %s, %s, fsync p50 %s p99 %s", orDash(h.CPU), h.Cores, bytesSize(h.MemoryBytes), orDash(h.Kernel),
		fsyncText(h.FsyncMicros.P50), fsyncText(h.FsyncMicros.P99))), md(v.brokerText().String()+", "+orDash(v.run.GoVersion)+", commit "+orDash(v.run.Commit)))
	crash, sale := v.faults(trial.TestCrash), v.faults(trial.TestSale)
	head := []string{l.setting, l.guarantee, l.confirm, l.p50, l.p99, l.held}
	crashN, crashEven := v.evenTrials(trial.TestCrash)
	saleN, saleEven := v.evenTrials(trial.TestSale)
	for _, f := range crash {
		head = append(head, md(l.fault(f))+trialsOf(crashN, crashEven))
	}
	for _, f := range sale {
		head = append(head, md(l.sale+l.fault(f))+trialsOf(saleN, saleEven))
	}
	var rows [][]string
	for _, r := range v.rows {
		cells := []string{"`" + strings.ReplaceAll(plain(r.Setting()), "`", "'") + "`", md(orDash(l.word(r.Guarantee))), md(orDash(l.word(r.Confirm)))}
		switch {
		case r.Broker.Emulated:
			cells[0] += " (" + l.emulated + ")"
		case r.Floor():
			cells[0] += " (" + l.floor + ")"
		}
		for _, f := range append(latencyBrief(r), heldBrief(r)) {
			cells = append(cells, md(l.outcome(f.Text.String())))
		}
		for _, f := range crash {
			cells = append(cells, md(l.outcome(crashField(r.find(trial.TestCrash, f), crashEven).Text.String())))
		}
		for _, f := range sale {
			cells = append(cells, md(l.outcome(saleText(r.find(trial.TestSale, f), saleEven, true).Text.String())))
		}
		rows = append(rows, cells)
	}
	b.WriteString(pipeTable(head, rows, 3, 5))
	b.WriteString("\n" + md(l.legend) + "\n")
	return b.String()
}

// trialsOf says once what all cells of a column share.
func trialsOf(n figure, even bool) string {
	if !even {
		return ""
	}
	return fmt.Sprintf(" (n=%s)", n)
}

// outcome puts the words of a field into the language.
func (l language) outcome(s string) string {
	for from, to := range map[string]string{trial.VerdictSkipped: l.skipped, trial.VerdictInvalid: l.invalid} {
		s = strings.ReplaceAll(s, from, to)
	}
	parts := strings.Split(s, " ")
	for i := range parts {
		parts[i] = l.word(parts[i])
	}
	return strings.Join(parts, " ")
}

// CapabilityTable is what each setting's queue says of itself, as a Markdown
// table in the order of rows.
func CapabilityTable(rows []CapabilityRow) string { return capabilityTable(rows, english()) }

// CapabilityTableZh is CapabilityTable in Chinese.
func CapabilityTableZh(rows []CapabilityRow) string { return capabilityTable(rows, chinese()) }

func capabilityTable(rows []CapabilityRow, l language) string {
	yes := func(b bool) string {
		if b {
			return l.yes
		}
		return l.no
	}
	var out [][]string
	for _, r := range rows {
		c := r.Capabilities
		to := "one consumer"
		if c.Broadcast {
			to = "every consumer"
		}
		can := l.list([]claim{{c.AckConfirmed, "answer an ack"}, {c.Nack, "nack"}, {c.Groups, "groups"}, {c.OrderedPerKey, "order per key"}, {c.Replay, "replay"},
			{c.Routing, "route by key"}, {c.Bounded, "bound itself"}, {c.LeaseFenced, "fence a lost lease"}})
		beware := l.list([]claim{{!c.Shared, "only within one process"}, {!c.Stored, "keeps nothing for later consumers"}, {c.DropsOldest, "drops the oldest when full"},
			{c.PopGap, "a pop on its way dies with its consumer"}, {c.MayStrand, "a message may wait for the next one"}, {c.Skips, "skips what comes while nobody receives"}})
		out = append(out, []string{
			"`" + strings.ReplaceAll(plain(r.Setting), "`", "'") + "`", l.word(c.Guarantee.String()), l.word(c.Confirm.String()), l.word(to), l.word(c.Attempts.String()), yes(c.Durable), can, beware,
		})
	}
	return pipeTable(l.capabilities, out)
}

// claim is a capability in words.
type claim struct {
	holds bool
	words string
}

// list is the claims that hold, in words; none is a dash.
func (l language) list(claims []claim) string {
	var holding []string
	for _, c := range claims {
		if c.holds {
			holding = append(holding, l.word(c.words))
		}
	}
	if len(holding) == 0 {
		return l.no
	}
	return strings.Join(holding, l.comma)
}

// pipeTable draws a Markdown table whose fields are escaped already; right is
// the first and the last of the columns that stand to the right.
func pipeTable(head []string, rows [][]string, right ...int) string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(head)
	rule := slices.Repeat([]string{"---"}, len(head))
	if len(right) == 2 {
		for i := right[0]; i <= right[1]; i++ {
			rule[i] = "---:"
		}
	}
	line(rule)
	for _, r := range rows {
		line(r)
	}
	return b.String()
}
