package wire

import (
	"fmt"
	"math"
	"strings"
)

// amqpMethods are the methods of AMQP 0-9-1 by class and number, each with its
// arguments: a type and a name. 1, 2, 4 and 8 are numbers of so many bytes, s is
// a short text, S a long one, T a table, b a bit that is shown where it is set, B
// a bit that is always shown. Without a name an argument is not shown.
var amqpMethods = map[[2]int]string{
	{10, 10}: "connection.start", {10, 11}: "connection.start-ok", {10, 20}: "connection.secure", {10, 21}: "connection.secure-ok",
	{10, 30}: "connection.tune 2:channel-max 4:frame-max 2:heartbeat", {10, 31}: "connection.tune-ok 2:channel-max 4:frame-max 2:heartbeat",
	{10, 40}: "connection.open s:vhost", {10, 41}: "connection.open-ok",
	{10, 50}: "connection.close 2:code s:text 2 2", {10, 51}: "connection.close-ok",
	{10, 60}: "connection.blocked s:reason", {10, 61}: "connection.unblocked",
	{10, 70}: "connection.update-secret", {10, 71}: "connection.update-secret-ok",
	{20, 10}: "channel.open", {20, 11}: "channel.open-ok", {20, 20}: "channel.flow B:active", {20, 21}: "channel.flow-ok B:active",
	{20, 40}: "channel.close 2:code s:text 2 2", {20, 41}: "channel.close-ok",
	{40, 10}: "exchange.declare 2 s:exchange s:type b:passive b:durable b:auto-delete b:internal b:no-wait T:arguments", {40, 11}: "exchange.declare-ok",
	{40, 20}: "exchange.delete 2 s:exchange b:if-unused b:no-wait", {40, 21}: "exchange.delete-ok",
	{40, 30}: "exchange.bind 2 s:destination s:source s:routing-key b:no-wait T:arguments", {40, 31}: "exchange.bind-ok",
	{40, 40}: "exchange.unbind 2 s:destination s:source s:routing-key b:no-wait T:arguments", {40, 51}: "exchange.unbind-ok",
	{50, 10}: "queue.declare 2 s:queue b:passive b:durable b:exclusive b:auto-delete b:no-wait T:arguments", {50, 11}: "queue.declare-ok s:queue 4:messages 4:consumers",
	{50, 20}: "queue.bind 2 s:queue s:exchange s:routing-key b:no-wait T:arguments", {50, 21}: "queue.bind-ok",
	{50, 30}: "queue.purge 2 s:queue b:no-wait", {50, 31}: "queue.purge-ok 4:messages",
	{50, 40}: "queue.delete 2 s:queue b:if-unused b:if-empty b:no-wait", {50, 41}: "queue.delete-ok 4:messages",
	{50, 50}: "queue.unbind 2 s:queue s:exchange s:routing-key T:arguments", {50, 51}: "queue.unbind-ok",
	{60, 10}: "basic.qos 4 2:prefetch b:global", {60, 11}: "basic.qos-ok",
	{60, 20}: "basic.consume 2 s:queue s:consumer-tag b:no-local b:no-ack b:exclusive b:no-wait T:arguments", {60, 21}: "basic.consume-ok s:consumer-tag",
	{60, 30}: "basic.cancel s:consumer-tag b:no-wait", {60, 31}: "basic.cancel-ok s:consumer-tag",
	{60, 40}: "basic.publish 2 s:exchange s:routing-key b:mandatory b:immediate",
	{60, 50}: "basic.return 2:code s:text s:exchange s:routing-key",
	{60, 60}: "basic.deliver s:consumer-tag 8:tag b:redelivered s:exchange s:routing-key",
	{60, 70}: "basic.get 2 s:queue b:no-ack", {60, 71}: "basic.get-ok 8:tag b:redelivered s:exchange s:routing-key 4:messages", {60, 72}: "basic.get-empty",
	{60, 80}: "basic.ack 8:tag b:multiple", {60, 90}: "basic.reject 8:tag B:requeue", {60, 120}: "basic.nack 8:tag b:multiple B:requeue",
	{60, 100}: "basic.recover-async B:requeue", {60, 110}: "basic.recover B:requeue", {60, 111}: "basic.recover-ok",
	{85, 10}: "confirm.select b:no-wait", {85, 11}: "confirm.select-ok",
	{90, 10}: "tx.select", {90, 11}: "tx.select-ok", {90, 20}: "tx.commit", {90, 21}: "tx.commit-ok", {90, 30}: "tx.rollback", {90, 31}: "tx.rollback-ok",
}

// amqpMethod is a method that was read.
type amqpMethod struct {
	name  string
	texts map[string]string // plain: exchange, queue and so on
	tag   uint64
	set   map[string]bool // the bits
	code  uint64
	shown string // its arguments
}

func readMethod(payload []byte, total int) amqpMethod {
	c := cursor{rest: payload}
	class, number := c.u16(), c.u16()
	spec, known := amqpMethods[[2]int{class, number}]
	if !known {
		return amqpMethod{name: fmt.Sprintf("method %d.%d", class, number), shown: fmt.Sprintf(" (%d bytes, not read)", total)}
	}
	fields := strings.Fields(spec)
	m := amqpMethod{name: fields[0], texts: map[string]string{}, set: map[string]bool{}}
	var shown []string
	bits, left := 0, 0
	for _, f := range fields[1:] {
		kind, name, _ := strings.Cut(f, ":")
		var says string
		switch kind {
		case "b", "B":
			if left == 0 {
				bits, left = c.u8(), 8
			}
			m.set[name] = bits&1 != 0
			if kind == "B" {
				says = fmt.Sprintf("%s=%v", name, m.set[name])
			} else if m.set[name] {
				says = name
			}
			bits, left = bits>>1, left-1
			if !c.bad && says != "" {
				shown = append(shown, says)
			}
			continue
		case "s":
			s := c.counted(1)
			m.texts[name] = string(s.kept)
			if s.size > 0 || name == "exchange" {
				says = name + "=" + s.word(100)
			}
		case "T":
			if says = amqpTable(&c, 0); says != "" {
				says = name + "={" + says + "}"
			}
		default:
			n := c.number(int(kind[0] - '0'))
			switch name {
			case "tag":
				m.tag = n
			case "code":
				m.code = n
			}
			says = fmt.Sprintf("%s=%d", name, n)
		}
		left = 0
		if name != "" && says != "" && !c.bad {
			shown = append(shown, says)
		}
	}
	if c.bad {
		shown = append(shown, fmt.Sprintf("(%d bytes, not all of them read)", total))
	}
	if len(shown) > 0 {
		m.shown = " " + strings.Join(shown, " ")
	}
	return m
}

// amqpTable shows a table of arguments or headers.
func amqpTable(c *cursor, deep int) string {
	in := cursor{rest: c.take(c.u32())}
	var pairs []string
	for len(in.rest) > 0 && len(pairs) < 30 {
		name := in.counted(1)
		says := amqpValue(&in, deep)
		if in.bad {
			pairs = append(pairs, "…")
			break
		}
		pairs = append(pairs, name.word(60)+"="+says)
	}
	return clip(strings.Join(pairs, " "), mostText)
}

func amqpValue(c *cursor, deep int) string {
	switch kind := c.u8(); kind {
	case 't':
		return fmt.Sprint(c.u8() != 0)
	case 'b':
		return fmt.Sprint(int8(c.number(1)))
	case 'B':
		return fmt.Sprint(c.number(1))
	case 's':
		return fmt.Sprint(int16(c.number(2)))
	case 'u':
		return fmt.Sprint(c.number(2))
	case 'I':
		return fmt.Sprint(int32(c.number(4)))
	case 'i':
		return fmt.Sprint(c.number(4))
	case 'l', 'L':
		return fmt.Sprint(int64(c.number(8)))
	case 'T':
		return fmt.Sprint(c.number(8))
	case 'f':
		return fmt.Sprint(math.Float32frombits(uint32(c.number(4))))
	case 'd':
		return fmt.Sprint(math.Float64frombits(c.number(8)))
	case 'S':
		return c.counted(4).word(100)
	case 'x':
		return fmt.Sprintf("(%d bytes)", c.counted(4).size)
	case 'V':
		return "none"
	case 'F':
		if deep < 4 {
			return "{" + amqpTable(c, deep+1) + "}"
		}
	case 'A':
		if in := (cursor{rest: c.take(c.u32())}); deep < 4 {
			var items []string
			for len(in.rest) > 0 && len(items) < 10 {
				items = append(items, amqpValue(&in, deep+1))
			}
			return "[" + strings.Join(items, " ") + "]"
		}
		return "[…]"
	}
	c.bad = true // a type that nobody knows the size of
	return ""
}
