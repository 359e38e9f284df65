package museum

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"queuelab/bench/learn"
)

func slowHandler() Exhibit {
	return Exhibit{
		Number: 20, Name: "slow-is-never-redelivered", Found: []string{"004"},
		Idea: learn.Text{
			EN: "RabbitMQ has no time-out: while a consumer is connected its message never comes again, however slow the handler.",
			ZH: "RabbitMQ 没有超时：只要消费者连着，处理再慢也不会重新投递。",
		},
		Needs: []learn.Need{{Kind: "rabbitmq", Own: true}}, Takes: 15 * time.Second,
		Damage: func(s *learn.Stand) {
			s.Must(s.Broker("rabbitmq").SetAckTimeout(s.Context(), 2*time.Second))
			conn := s.RabbitMQ()
			name := s.Name("orders")
			s.Step("This RabbitMQ gives a consumer 2 seconds, where the default is 30 minutes. The handler takes longer.", "这个 RabbitMQ 把默认 30 分钟的超时改成 2 秒，而处理更慢。")
			first, closed := consumer(s, conn, name)
			ch, err := conn.Channel()
			s.Must(err)
			s.Must(ch.PublishWithContext(s.Context(), "", name, false, false, amqp.Publishing{Body: []byte(s.ID)}))
			d := next(s, first)
			var reason *amqp.Error
			select {
			case reason = <-closed:
			case <-time.After(12 * time.Second):
			}
			lost := int64(0)
			if reason != nil {
				lost = 1
			}
			s.Count("damage-closed", lost, "channels closed under a slow handler", "因处理太慢被关闭的信道")
			late := int64(0)
			if d.Ack(false) != nil {
				late = 1
			}
			s.Count("damage-late-acks", late, "acks that came too late", "来不及的确认")
			second, _ := consumer(s, conn, name)
			again := int64(0)
			if next(s, second).Redelivered {
				again = 1
			}
			s.Count("damage-redelivered", again, "orders given to somebody else meanwhile, of 1", "期间又交给别人的订单，共 1 条")
		},
		Repair: func(s *learn.Stand) {
			conn := s.RabbitMQ()
			name := s.Name("orders2")
			s.Step("The same slow work in the background: the order is written down first, and acked at once.", "同样慢的工作放到后台：先把订单落库，马上确认。")
			only, closed := consumer(s, conn, name)
			ch, err := conn.Channel()
			s.Must(err)
			s.Must(ch.PublishWithContext(s.Context(), "", name, false, false, amqp.Publishing{Body: []byte(s.ID)}))
			s.Must(next(s, only).Ack(false))
			lost := int64(0)
			select {
			case reason := <-closed:
				if reason != nil {
					lost = 1
				}
			case <-time.After(4 * time.Second):
			}
			s.Count("repair-closed", lost, "channels closed under a slow handler", "因处理太慢被关闭的信道")
		},
		Shows: learn.Conditions{
			"damage-closed": learn.Is(1), "damage-late-acks": learn.Is(1), "damage-redelivered": learn.Is(1), "repair-closed": learn.Is(0),
		},
		Happens: learn.Text{
			EN: "Once a delivery has been without an ack for longer than consumer_timeout the broker closes the channel ({damage-closed}), the late ack fails ({damage-late-acks}), and the order goes to another consumer ({damage-redelivered}) while the first still works on it.",
			ZH: "一条消息超过 consumer_timeout 还没确认，服务端就关闭信道（{damage-closed} 个），迟到的确认失败（{damage-late-acks} 次），订单被交给别的消费者（{damage-redelivered} 条），而第一个还在处理。",
		},
		Mend: learn.Text{
			EN: "Bound the handler's time below the time-out, or write the work down and ack at once ({repair-closed} channels closed); in any case make the effect unique.",
			ZH: "处理时间要有上限且小于超时；或者先落库立即确认（被关闭的信道 {repair-closed} 个）；无论如何都要幂等。",
		},
		Further: []learn.Link{{Text: learn.Text{EN: "RabbitMQ on acknowledgement timeouts", ZH: "RabbitMQ 的确认超时"}, URL: "https://www.rabbitmq.com/docs/consumers#acknowledgement-timeout"}},
	}
}

// consumer consumes from a new classic queue, on a channel of its own; closed
// tells why that ended.
func consumer(s *learn.Stand, conn *amqp.Connection, name string) (<-chan amqp.Delivery, <-chan *amqp.Error) {
	ch, err := conn.Channel()
	s.Must(err)
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	_, err = ch.QueueDeclare(name, true, false, false, false, nil)
	s.Must(err, ch.Qos(1, 0, false))
	ds, err := ch.Consume(name, "", false, false, false, false, nil)
	s.Must(err)
	return ds, closed
}

func next(s *learn.Stand, ds <-chan amqp.Delivery) amqp.Delivery {
	select {
	case d, open := <-ds:
		if !open {
			s.Fail("the channel was closed before the order came")
		}
		return d
	case <-time.After(10 * time.Second):
		s.Fail("the order did not come within 10 s")
	}
	return amqp.Delivery{}
}
