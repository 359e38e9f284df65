package fault

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"queuelab/backends"
	"queuelab/bench/broker"
	"queuelab/queue"
)

// MajorityLoss kills two nodes of three. What is confirmed must be there when they
// are back. Meanwhile RabbitMQ has no answer for a publisher; Kafka has errors.
func MajorityLoss() Fault {
	return Fault{
		Name:      "majority-loss",
		Summary:   "two of three nodes get SIGKILL under load, and come back",
		Trials:    3, // the lag that it makes decides, not the moment
		OwnBroker: true,
		Means: func(t Target) string {
			if t.Broker == "redis-sentinel" {
				return "a Redis master needs no majority: there is none to lose"
			}
			return isCluster(t)
		},
		Run: majorityLoss,
	}
}

// noAnswer is how long one is waited for.
const noAnswer = 3 * time.Second

func majorityLoss(ctx context.Context, s Scene) error {
	patience := "timeout=2s"
	var asked *question
	if s.Target().Scheme == "amqp" {
		patience = "confirm-timeout=2s"
		var err error
		if asked, err = openQuestion(ctx, s); err != nil {
			return err
		}
		defer asked.close()
	}
	producer, err := replicatedLoad(ctx, s, s.QueueURL("", patience))
	if err != nil {
		return err
	}
	_, followers, err := roles(ctx, s)
	if err != nil {
		return err
	}
	s.Asked()
	if err := each(followers, (*broker.Broker).Kill)(ctx); err != nil {
		return err
	}
	s.Confirmed()
	if asked == nil {
		err = pass(ctx, noAnswer)
	} else {
		s.Note("a publish without a majority: %s", asked.publish(ctx))
	}
	if err == nil {
		err = rejoined(ctx, s, producer, followers...)
	}
	if err == nil && asked != nil {
		asked.remove(ctx)
	}
	return err
}

// question is a queue beside the trial's, whose messages are not in its ledger.
type question struct {
	queue     queue.Queue
	publisher queue.Publisher
}

// openQuestion opens one like the trial's, and sees that it takes messages.
func openQuestion(ctx context.Context, s Scene) (*question, error) {
	u, err := url.Parse(s.QueueURL(""))
	if err != nil {
		return nil, err
	}
	q := u.Query()
	q.Set("queue", q.Get("queue")+"_asked")
	u.RawQuery = q.Encode()
	a := &question{}
	if a.queue, err = backends.Open(ctx, u.String()); err != nil {
		return nil, err
	}
	if a.publisher, err = a.queue.Publisher(ctx); err == nil {
		err = a.publisher.Publish(ctx, queue.Message{ID: "before"})
	}
	if err != nil {
		return nil, errors.Join(err, a.queue.Close())
	}
	return a, nil
}

// publish says what came of one message.
func (a *question) publish(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, noAnswer)
	defer cancel()
	err := a.publisher.Publish(ctx, queue.Message{ID: "without"})
	switch {
	case err == nil:
		return "accepted"
	case errors.Is(err, context.DeadlineExceeded) && queue.OutcomeOf(err, 0) == queue.Unknown:
		return fmt.Sprintf("no answer within %v", noAnswer)
	}
	return fmt.Sprintf("%v: %v", queue.OutcomeOf(err, 0), err)
}

func (a *question) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_ = a.queue.Delete(ctx) // left behind it costs a name
}

func (a *question) close() { _ = a.queue.Close() }
