package wire

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// amqpTalk joins the content of a message to the method that announces it, and
// pairs confirms with their publishes.
type amqpTalk struct {
	in, out  frames
	channels map[int]*amqpChannel
}

// amqpChannel is what is known of a channel, since it was opened.
type amqpChannel struct {
	in, out   *amqpContent      // under way
	consumers map[string]string // queues by consumer tag
	consuming []string          // queues of those that the broker will name
	getting   queue[string]     // queues that were asked for one message
	delivered []amqpTag         // and not yet settled
	confirms  bool
	published uint64    // since confirms was set
	asked     []amqpTag // publishes not yet confirmed
}

type amqpTag struct {
	tag     uint64
	subject string
}

type amqpContent struct {
	line Line
	left uint64 // bytes of the body to come
	head bool   // it was read
	body bytesOf
}

const (
	mostChannels = 32
	mostTags     = 128
	mostBody     = 80
)

func newAMQP() *amqpTalk { return &amqpTalk{channels: map[int]*amqpChannel{}} }

func (t *amqpTalk) client(b []byte) []Line { return t.feed(&t.in, b, true, "the client") }
func (t *amqpTalk) server(b []byte) []Line { return t.feed(&t.out, b, false, "the server") }

func (t *amqpTalk) feed(f *frames, b []byte, client bool, who string) (lines []Line) {
	was := f.lost
	f.feed(b, amqpSize, func(kept []byte, total int) {
		if len(kept) == total && kept[0] != 'A' && kept[total-1] != 0xCE {
			f.lost = true
			return
		}
		lines = append(lines, t.frame(kept, total, client)...)
	})
	if f.lost && !was {
		lines = append(lines, notRead("AMQP 0-9-1", who))
	}
	return lines
}

func amqpSize(b []byte) int {
	switch {
	case b[0] == 'A': // the greeting
		return 8
	case b[0] != 1 && b[0] != 2 && b[0] != 3 && b[0] != 8:
		return -1
	case len(b) < 7:
		return 0
	}
	return 8 + int(binary.BigEndian.Uint32(b[3:]))
}

func (t *amqpTalk) frame(f []byte, total int, client bool) []Line {
	if f[0] == 'A' {
		return []Line{{Command: "AMQP", Text: "AMQP " + strings.Trim(fmt.Sprint(f[5:8]), "[]"), Noise: true}}
	}
	number := int(binary.BigEndian.Uint16(f[1:]))
	payload := f[7:min(len(f), total-1)]
	c := t.channels[number]
	switch f[0] {
	case 1:
		return t.method(number, readMethod(payload, total-8), client)
	case 8:
		return []Line{{Command: "heartbeat", Text: "heartbeat", Noise: true}}
	}
	at := c.content(client)
	if at == nil || *at == nil {
		return nil // its method was not read
	}
	under := *at
	if f[0] == 2 {
		under.header(payload)
	} else {
		n := uint64(total - 8)
		under.body.take(payload, mostBody)
		under.body.size += total - 8 - len(payload)
		under.left -= min(n, under.left)
	}
	if under.head && under.left > 0 {
		return nil
	}
	*at = nil
	return []Line{under.finish()}
}

// content is the message under way on a channel.
func (c *amqpChannel) content(client bool) **amqpContent {
	switch {
	case c == nil:
		return nil
	case client:
		return &c.in
	}
	return &c.out
}

func (u *amqpContent) header(payload []byte) {
	c := cursor{rest: payload}
	c.take(4)
	u.left, u.head = c.number(8), true
	flags := c.u16()
	for i, p := range []string{"", "", "T:headers", "1:mode", "1:priority", "s:correlation-id", "s:reply-to", "s:expiration", "s:message-id", "8", "s:type", "s", "s", "s"} {
		if flags&(1<<(15-i)) == 0 {
			continue
		}
		kind, name, _ := strings.Cut(p, ":")
		says := ""
		switch kind {
		case "T":
			if says = amqpTable(&c, 0); says != "" {
				says = "headers={" + clip(says, 120) + "}"
			}
		case "1":
			n := c.u8()
			switch {
			case name == "mode" && n == 2:
				says = "persistent"
			case name == "priority":
				says = fmt.Sprintf("priority=%d", n)
			}
		case "8":
			c.take(8)
		default:
			s := c.counted(1)
			says = name + "=" + s.word(80)
			if name == "message-id" && u.line.ID == "" {
				u.line.ID = string(s.kept)
			}
		}
		if name != "" && says != "" && !c.bad {
			u.line.Text += " " + says
		}
	}
}

func (u *amqpContent) finish() Line {
	u.line.Text += fmt.Sprintf(" %d bytes", u.body.size)
	if u.left > 0 || !u.head {
		u.line.Text += " (cut short)"
	}
	if u.body.size > 0 {
		u.line.Text += " " + bytesOf{u.body.kept, len(whole(u.body.kept, u.body.size))}.quote(mostBody)
		if u.body.size > mostBody {
			u.line.Text += "…"
		}
	}
	return u.line
}

func (t *amqpTalk) method(number int, m amqpMethod, client bool) (lines []Line) {
	c := t.channels[number]
	if m.name == "channel.open" || c == nil {
		c = nil
		if delete(t.channels, number); len(t.channels) < mostChannels {
			c = &amqpChannel{consumers: map[string]string{}}
			t.channels[number] = c
		}
	}
	l := Line{Command: strings.TrimSuffix(strings.TrimSuffix(m.name, "-ok"), "-empty"), Text: m.name, Noise: amqpDull(m)}
	for _, name := range []string{"queue", "exchange", "routing-key", "destination"} {
		if l.Subject == "" {
			l.Subject = m.texts[name]
		}
	}
	if m.name == "connection.start-ok" || m.name == "connection.secure-ok" || m.name == "connection.update-secret" {
		m.shown = " " + hidden
	}
	if c == nil {
		l.Text += m.shown
		return append(lines, l)
	}
	if at := c.content(client); *at != nil {
		lines = append(lines, (*at).finish()) // its content never came
		*at = nil
	}
	carries := c.meet(m, client, &l)
	l.Text += m.shown
	if carries {
		*c.content(client) = &amqpContent{line: l}
		return lines
	}
	if m.name == "channel.close-ok" {
		delete(t.channels, number)
	}
	return append(lines, l)
}

// meet notes what a method changes, and completes its line. It reports whether a
// message follows.
func (c *amqpChannel) meet(m amqpMethod, client bool, l *Line) (carries bool) {
	queue, tag := m.texts["queue"], m.texts["consumer-tag"]
	switch m.name {
	case "confirm.select":
		c.confirms = true
	case "basic.consume":
		switch {
		case tag == "" && len(c.consuming) < mostTags:
			c.consuming = append(c.consuming, queue)
		case tag != "" && len(c.consumers) < mostTags:
			c.consumers[tag] = queue
		}
	case "basic.consume-ok":
		if q, known := c.consumers[tag]; known {
			l.Subject = q
		} else if len(c.consuming) > 0 {
			l.Subject, c.consuming = c.consuming[0], c.consuming[1:]
			c.consumers[tag] = l.Subject
		}
	case "basic.cancel", "basic.cancel-ok":
		l.Subject = c.consumers[tag]
	case "basic.get":
		c.getting.push(queue)
	case "basic.get-empty":
		l.Subject, _ = c.getting.pop()
	case "basic.publish":
		if c.confirms {
			c.published++
			l.ID = fmt.Sprint(c.published)
			l.Text += " #" + l.ID
			c.asked = remember(c.asked, amqpTag{c.published, l.Subject})
		}
		return true
	case "basic.return":
		return true
	case "basic.deliver", "basic.get-ok":
		q, known := c.consumers[tag], true
		if m.name == "basic.get-ok" {
			q, known = c.getting.pop()
		}
		if q != "" && known {
			l.Subject = q
			l.Text += " queue=" + text([]byte(q)).word(100)
		}
		l.ID = fmt.Sprint(m.tag)
		c.delivered = remember(c.delivered, amqpTag{m.tag, l.Subject})
		return true
	case "basic.ack", "basic.nack", "basic.reject":
		l.ID = fmt.Sprint(m.tag)
		tags := &c.delivered
		if !client {
			l.Command, tags = "basic.publish", &c.asked
		}
		*tags = slices.DeleteFunc(*tags, func(t amqpTag) bool {
			settled := t.tag == m.tag || m.set["multiple"] && (t.tag < m.tag || m.tag == 0)
			if settled {
				l.Subject = t.subject
			}
			return settled
		})
	}
	return false
}

func remember(tags []amqpTag, t amqpTag) []amqpTag {
	if len(tags) == mostTags {
		tags = slices.Delete(tags, 0, 1)
	}
	return append(tags, t)
}

func amqpDull(m amqpMethod) bool {
	switch m.name {
	case "connection.close", "channel.close":
		return m.code == 200 || m.code == 0
	case "connection.blocked", "connection.unblocked":
		return false
	case "channel.open", "channel.open-ok", "channel.close-ok", "confirm.select-ok", "basic.qos-ok":
		return true
	}
	return strings.HasPrefix(m.name, "connection.")
}
