package fault

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Unroutable deletes the queue under an open publisher: the exchange then has
// nowhere to put what is published. Only a publisher that asks for what comes
// back (mandatory) hears of it; the broker confirms each of them all the same.
func Unroutable() Fault {
	return Fault{
		Name:    "unroutable",
		Summary: "the queue behind the exchange is deleted under an open publisher",
		Trials:  3,
		Means: func(t Target) string {
			if t.Broker != "rabbitmq" {
				return "there is no exchange that could have no queue"
			}
			return ""
		},
		Run: func(ctx context.Context, s Scene) error {
			producer, err := s.Start(ctx, Role{Producer: &Producer{Count: s.Target().Messages}})
			if err != nil {
				return err
			}
			if err := s.Settle(ctx); err != nil {
				return err
			}
			s.Asked()
			if _, err := deleteQueue(s); err != nil {
				return err
			}
			s.Confirmed()
			if err := producer.Produce(); err != nil {
				return err
			}
			if err := producer.Produced(ctx); err != nil {
				return err
			}
			p, err := parameters(s)
			if err != nil {
				return err
			}
			if p.Get("mandatory") == "false" || p.Get("confirm") == "false" {
				s.Facts().Unheard += int64(s.Target().Messages)
			}
			return readBack(ctx, s)
		},
	}
}

// deleteQueue deletes the trial's queue, and not its exchange. It returns how
// many messages were in it.
func deleteQueue(s Scene) (int, error) {
	p, err := parameters(s)
	if err != nil {
		return 0, err
	}
	group := p.Get("group")
	if group == "" {
		group = "workers"
	}
	name := p.Get("queue") + "." + group
	conn, err := amqp.Dial(s.Broker().URL())
	if err != nil {
		return 0, fmt.Errorf("connect to delete the queue %s: %w", name, err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return 0, fmt.Errorf("open a channel to delete the queue %s: %w", name, err)
	}
	// To delete what is not there is no error in AMQP, and would prove nothing.
	if _, err := ch.QueueDeclarePassive(name, true, false, false, false, nil); err != nil {
		return 0, fmt.Errorf("look for the queue %s: %w", name, err)
	}
	n, err := ch.QueueDelete(name, false, false, false)
	if err != nil {
		return 0, fmt.Errorf("delete the queue %s: %w", name, err)
	}
	return n, nil
}
