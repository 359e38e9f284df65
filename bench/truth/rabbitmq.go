package truth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"queuelab/bench/proxy"
)

func rabbitExperiments() []Experiment {
	on := func(name, claim, remedy string, try func(context.Context, stand) (Seen, error)) Experiment {
		return Experiment{Name: name, Library: "github.com/rabbitmq/amqp091-go", Broker: "rabbitmq", Claim: claim, Remedy: remedy, try: try}
	}
	return []Experiment{
		on("rabbitmq-unroutable", "A publish that no queue is bound for is confirmed with an ack, and the message is gone.",
			"Publish with mandatory, and look for returned messages before taking the ack for a yes.", unroutable),
		on("rabbitmq-mandatory", "With mandatory the message comes back before its confirm, which is an ack all the same.", "", mandatory),
		on("rabbitmq-drop-head", "A queue at its x-max-length drops its oldest message for each new one: the first buyers go first, all were confirmed.",
			"Declare x-overflow=reject-publish.", dropHead),
		on("rabbitmq-reject-publish", "With x-overflow=reject-publish the queue refuses what is too much, with a nack, and keeps the first.", "", rejectPublish),
		on("rabbitmq-confirm-lost", "When the connection ends, every confirm that is missing resolves as not acked, although the message may be stored.",
			"Take it for unknown, and publish again with the same message id.", confirmLost),
		on("rabbitmq-auto-ack", "With autoAck the broker forgets a message as it sends it: a consumer that ends after its first takes the whole queue with it.",
			"Ack by hand, after the effect.", autoAck),
		on("rabbitmq-no-prefetch", "Without Qos one consumer holds every message in its memory, and a second one gets nothing.",
			"Set Qos to what one consumer can work off soon.", noPrefetch),
	}
}

// rabbitStand is a connection with a channel that confirms.
type rabbitStand struct {
	conn *amqp.Connection
	ch   *amqp.Channel
}

func openRabbit(rawURL string) (*rabbitStand, error) {
	conn, err := amqp.Dial(rawURL)
	if err != nil {
		return nil, err
	}
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &rabbitStand{conn, ch}, nil
}

// close takes down what was declared, and the connection.
func (r *rabbitStand) close(queue string) {
	_, _ = r.ch.QueueDelete(queue, false, false, false) // in a broker that is about to go, or full of others
	_ = r.conn.Close()
}

// publish sends one message through the default exchange, and waits for its
// confirm.
func (r *rabbitStand) publish(ctx context.Context, queue string, mandatory bool, body string) (acked bool, err error) {
	c, err := r.ch.PublishWithDeferredConfirmWithContext(ctx, "", queue, mandatory, false,
		amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(body)})
	if err != nil {
		return false, err
	}
	return c.WaitContext(ctx)
}

func (r *rabbitStand) declare(queue string, args amqp.Table) error {
	_, err := r.ch.QueueDeclare(queue, true, false, false, false, args)
	return err
}

// ready is how many messages wait.
func (r *rabbitStand) ready(queue string) (int64, error) {
	q, err := r.ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	return int64(q.Messages), err
}

// until waits for so many to wait.
func (r *rabbitStand) until(ctx context.Context, queue string, want int64) error {
	for {
		n, err := r.ready(queue)
		if err != nil || n == want {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %d messages in the queue, of %d: %w", want, n, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// take empties the queue.
func (r *rabbitStand) take(queue string) (bodies []string, err error) {
	for {
		d, ok, err := r.ch.Get(queue, true)
		if err != nil || !ok {
			return bodies, err
		}
		bodies = append(bodies, string(d.Body))
	}
}

func unroutable(ctx context.Context, s stand) (Seen, error) {
	r, err := openRabbit(s.broker.URL())
	if err != nil {
		return Seen{}, err
	}
	defer r.close(s.name)
	acked, err := r.publish(ctx, s.name, false, "order 1")
	if err != nil {
		return Seen{}, err
	}
	// The queue comes too late: nothing was kept for it.
	if err := r.declare(s.name, nil); err != nil {
		return Seen{}, err
	}
	kept, err := r.ready(s.name)
	return Seen{
		Holds:   acked && kept == 0,
		What:    fmt.Sprintf("acked=%v, and %d kept", acked, kept),
		Numbers: []Number{count("lost", 1-kept)},
	}, err
}

func mandatory(ctx context.Context, s stand) (Seen, error) {
	r, err := openRabbit(s.broker.URL())
	if err != nil {
		return Seen{}, err
	}
	defer r.close(s.name)
	returns := r.ch.NotifyReturn(make(chan amqp.Return, 1))
	acked, err := r.publish(ctx, s.name, true, "order 1")
	if err != nil {
		return Seen{}, err
	}
	select {
	case back := <-returns:
		return Seen{
			Holds:   acked && back.ReplyCode == amqp.NoRoute && string(back.Body) == "order 1",
			What:    fmt.Sprintf("returned with %d %s when the confirm came, which was acked=%v", back.ReplyCode, back.ReplyText, acked),
			Numbers: []Number{count("returned", 1)},
		}, nil
	default:
		return Seen{What: fmt.Sprintf("acked=%v, and nothing had been returned by then", acked), Numbers: []Number{count("returned", 0)}}, nil
	}
}

// overfill publishes ten to a queue that holds three, and returns how many were
// acked and what is kept.
func overfill(ctx context.Context, s stand, args amqp.Table) (acked int64, kept []string, err error) {
	r, err := openRabbit(s.broker.URL())
	if err != nil {
		return 0, nil, err
	}
	defer r.close(s.name)
	if err := r.declare(s.name, args); err != nil {
		return 0, nil, err
	}
	for i := range 10 {
		ok, err := r.publish(ctx, s.name, false, fmt.Sprint("order ", i+1))
		if err != nil {
			return 0, nil, err
		}
		if ok {
			acked++
		}
	}
	kept, err = r.take(s.name)
	return acked, kept, err
}

func dropHead(ctx context.Context, s stand) (Seen, error) {
	acked, kept, err := overfill(ctx, s, amqp.Table{amqp.QueueMaxLenArg: int32(3)})
	return Seen{
		Holds:   acked == 10 && len(kept) == 3 && kept[0] == "order 8",
		What:    fmt.Sprintf("of 10 to a queue of 3, %d were acked and %q are kept", acked, kept),
		Numbers: []Number{count("acked", acked), count("lost", acked-int64(len(kept)))},
	}, err
}

func rejectPublish(ctx context.Context, s stand) (Seen, error) {
	acked, kept, err := overfill(ctx, s, amqp.Table{amqp.QueueMaxLenArg: int32(3), amqp.QueueOverflowArg: amqp.QueueOverflowRejectPublish})
	return Seen{
		Holds:   acked == int64(len(kept)) && acked < 10 && len(kept) > 0 && kept[0] == "order 1",
		What:    fmt.Sprintf("of 10 to a queue of 3, %d were acked and %q are kept", acked, kept),
		Numbers: []Number{count("acked", acked), count("lost", acked-int64(len(kept)))},
	}, err
}

func confirmLost(ctx context.Context, s stand) (Seen, error) {
	p, err := s.proxy()
	if err != nil {
		return Seen{}, err
	}
	defer p.Close()
	u, err := url.Parse(s.broker.URL())
	if err != nil {
		return Seen{}, err
	}
	u.Host = p.Addr()
	r, err := openRabbit(u.String())
	if err != nil {
		return Seen{}, err
	}
	defer r.conn.Close()
	direct, err := openRabbit(s.broker.URL())
	if err != nil {
		return Seen{}, err
	}
	defer direct.close(s.name)
	if err := direct.declare(s.name, nil); err != nil {
		return Seen{}, err
	}
	lost := p.LoseReply(proxy.Published("rabbitmq"))
	acked, waited := r.publish(ctx, s.name, false, "order 1")
	if err := happened(ctx, lost); err != nil {
		return Seen{}, err
	}
	if errors.Is(waited, context.DeadlineExceeded) {
		return Seen{}, waited // it did not resolve
	}
	stored, err := direct.ready(s.name)
	return Seen{
		Holds:   !acked && waited == nil && stored == 1,
		What:    fmt.Sprintf("acked=%v with %s, and %d stored", acked, told(waited), stored),
		Numbers: []Number{count("stored", stored)},
	}, err
}

// fill puts messages into a queue and has one consumer begin to take them.
func fill(ctx context.Context, s stand, n int64, auto bool) (publisher, consumer *rabbitStand, first amqp.Delivery, err error) {
	fail := func(err error) (*rabbitStand, *rabbitStand, amqp.Delivery, error) {
		if consumer != nil {
			consumer.conn.Close()
		}
		if publisher != nil {
			publisher.close(s.name)
		}
		return nil, nil, first, err
	}
	if publisher, err = openRabbit(s.broker.URL()); err != nil {
		return fail(err)
	}
	if err := publisher.declare(s.name, nil); err != nil {
		return fail(err)
	}
	for range n {
		if _, err := publisher.ch.PublishWithDeferredConfirmWithContext(ctx, "", s.name, false, false, amqp.Publishing{Body: []byte("order")}); err != nil {
			return fail(err)
		}
	}
	if err := publisher.until(ctx, s.name, n); err != nil {
		return fail(err)
	}
	if consumer, err = openRabbit(s.broker.URL()); err != nil {
		return fail(err)
	}
	ds, err := consumer.ch.Consume(s.name, "", auto, false, false, false, nil)
	if err != nil {
		return fail(err)
	}
	select {
	case first = <-ds:
	case <-ctx.Done():
		return fail(ctx.Err())
	}
	// The others are with the client, which nobody has asked for them.
	if err := publisher.until(ctx, s.name, 0); err != nil {
		return fail(err)
	}
	return publisher, consumer, first, nil
}

const filled = 500

func autoAck(ctx context.Context, s stand) (Seen, error) {
	publisher, consumer, _, err := fill(ctx, s, filled, true)
	if err != nil {
		return Seen{}, err
	}
	defer publisher.close(s.name)
	if err := consumer.conn.Close(); err != nil {
		return Seen{}, err
	}
	left, err := publisher.ready(s.name)
	return Seen{
		Holds:   left == 0,
		What:    fmt.Sprintf("of %d messages one was taken before the consumer ended, and %d are left", filled, left),
		Numbers: []Number{count("lost", filled-1-left)},
	}, err
}

func noPrefetch(ctx context.Context, s stand) (Seen, error) {
	publisher, consumer, first, err := fill(ctx, s, filled, false)
	if err != nil {
		return Seen{}, err
	}
	defer publisher.close(s.name)
	defer consumer.conn.Close()
	_, second, err := publisher.ch.Get(s.name, false)
	if err != nil {
		return Seen{}, err
	}
	if err := first.Ack(false); err != nil {
		return Seen{}, err
	}
	if err := consumer.conn.Close(); err != nil {
		return Seen{}, err
	}
	back := publisher.until(ctx, s.name, filled-1)
	return Seen{
		Holds:   !second && back == nil,
		What:    fmt.Sprintf("one consumer worked on the first of %d, a second one got anything=%v; once the first had ended the others were back", filled, second),
		Numbers: []Number{count("held by the first", filled)},
	}, back
}
