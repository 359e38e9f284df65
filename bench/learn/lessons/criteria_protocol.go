package lessons

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"queuelab/bench/learn"
)

func criterionProtocol() learn.Lesson {
	return learn.Lesson{
		Number: 52, Name: "criterion-protocol", Topic: learn.Criteria,
		Question: learn.Text{
			EN: "Protocol: somebody with nothing but a socket types a line of text at each broker. What comes back?",
			ZH: "消息协议：只有一个 socket，手打一行文字发给各个 broker，会得到什么？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "All three understand text.", ZH: "三个都懂文本。"},
				If: learn.Conditions{"redis-order": learn.Is(1), "rabbitmq-version": learn.Is(0), "kafka-bytes": learn.AtLeast(1)}},
			{Text: learn.Text{EN: "None does: such protocols are binary.", ZH: "都不懂：这类协议都是二进制的。"},
				If: learn.Conditions{"redis-order": learn.Is(0)}},
			{Text: learn.Text{EN: "Redis does what the line says, RabbitMQ names the version of AMQP that it wants, and Kafka hangs up.", ZH: "Redis 照做；RabbitMQ 报出它要的 AMQP 版本；Kafka 直接挂断。"},
				If: learn.Conditions{"redis-order": learn.Is(1), "rabbitmq-version": learn.Is(1), "kafka-bytes": learn.Is(0)}},
		},
		Right: 2,
		Needs: sixNeed(),
		Takes: 4 * time.Second,
		Try: func(s *learn.Stand) {
			s.Step("An order through a Redis list, typed by hand.", "手打命令，让一个订单走过 Redis 列表。")
			key := s.Name("orders")
			deleteAfter(s, key)
			redis := stranger(s, s.Proxy("redis").Addr())
			said := redis.ask("LPUSH " + key + " " + s.ID + "-1\r\nRPOP " + key + "\r\n")
			s.Count("redis-order", count(strings.Contains(said, s.ID+"-1")), "orders that came back from Redis", "从 Redis 取回的订单")

			s.Step("A line of text to RabbitMQ.", "给 RabbitMQ 一行文字。")
			straight, err := url.Parse(s.Broker("rabbitmq").URL()) // it resets at once, and a proxy might lose its answer
			s.Must(err)
			said = stranger(s, straight.Host).ask("hello, RabbitMQ\r\n")
			s.Count("rabbitmq-version", count(said == "AMQP\x00\x00\x09\x01"), "answers that are the header of AMQP 0-9-1", "回应恰为 AMQP 0-9-1 协议头的次数")

			s.Step("The same to Kafka, which takes the first four letters for a length.", "同样一行给 Kafka，它把前四个字母当成长度。")
			s.Count("kafka-bytes", int64(len(stranger(s, s.Proxy("kafka").Addr()).ask("hello, Kafka\r\n"))), "bytes that Kafka answers", "Kafka 回应的字节数")
			s.Step("Kafka again, with the one request that every version answers: which requests do you know?", "再问 Kafka 一个任何版本都会回答的请求：你支持哪些请求？")
			apis := stranger(s, s.Proxy("kafka").Addr()).ask("\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff")
			known := int64(0)
			if len(apis) > 14 { // length, correlation id, error, and then so many
				known = int64(binary.BigEndian.Uint32([]byte(apis[10:14])))
			}
			s.Count("kafka-requests", known, "kinds of requests that Kafka knows, each with versions", "Kafka 支持的请求种类，每种还有多个版本")

			s.Step("Two client libraries that share no code: an order by kafka-go, read by franz-go.", "两个互不相干的客户端库：kafka-go 写入，franz-go 读出。")
			queueURL := s.URL("kafka", "session=1500ms")
			s.Publish(s.Open(queueURL), 1)
			franz := s.Consumer(s.Open(queueURL + "&client=franz"))
			s.Count("kafka-libraries", int64(len(s.Take(franz, 1))), "orders that the other library read", "另一个库读到的订单")
		},
		Expect: learn.Conditions{"kafka-requests": learn.AtLeast(30), "kafka-libraries": learn.Is(1)},
		Why: learn.Text{
			EN: "Redis' protocol is lines of text, so a client is an afternoon's work: {redis-order} order typed by hand went through. RabbitMQ answers whatever it does not understand with the header of AMQP 0-9-1, a standard that others implement too. Kafka's protocol is its own, binary, and of {kafka-requests} kinds of requests with versions each, which clients ask for first; an uninvited line got {kafka-bytes} bytes. It is documented all the same: what one library wrote, another one read ({kafka-libraries}).",
			ZH: "Redis 的协议是一行行文本，写个客户端不过一个下午：手打就走通了 {redis-order} 个订单。RabbitMQ 听不懂时会回 AMQP 0-9-1 的协议头，那是别人也实现的标准。Kafka 用自己的二进制协议，有 {kafka-requests} 种请求，各有多个版本，客户端要先问清楚；不请自来的一行得到 {kafka-bytes} 字节。但它有公开文档：一个库写的，另一个库读到了 {kafka-libraries} 条。",
		},
		Say: learn.Text{
			EN: "A protocol is what one is bound to when the broker changes: AMQP 0-9-1 is an open standard, those of Redis and Kafka are spoken by many other servers by now. For daily work the client library matters more, with its retries, reconnects and defaults. So keep the queue behind an interface of your own, and the choice stays open.",
			ZH: "换 broker 时，绑住你的就是协议：AMQP 0-9-1 是开放标准，Redis 和 Kafka 的协议如今也有很多别的服务端实现。日常真正要紧的是客户端库：重试、重连和默认值。所以把队列放在自己的接口后面，选择权就还在手里。",
		},
	}
}

// socket is a connection of somebody who knows no protocol.
type socket struct {
	net.Conn
	s *learn.Stand
}

func stranger(s *learn.Stand, addr string) socket {
	c, err := net.Dial("tcp", addr)
	s.Must(err)
	s.After(func() error { c.Close(); return nil })
	return socket{c, s}
}

// ask says something, and returns what came until the broker hung up or had
// nothing more to say.
func (c socket) ask(text string) string {
	_, err := fmt.Fprint(c, text)
	c.s.Must(err, c.SetReadDeadline(time.Now().Add(time.Second)))
	said, _ := io.ReadAll(c) // a deadline or a reset ends it as well as a close
	return string(said)
}
