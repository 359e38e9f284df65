package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"syscall"

	amqp "github.com/rabbitmq/amqp091-go"
)

// explain says in one sentence why there is no connection, and what to do.
func (t target) explain(err error) error {
	var ae *amqp.Error
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("rabbitmq: no answer from %s within %v: %w", t.addr, connectTimeout, err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("rabbitmq: nothing listens at %s: start a broker, or correct the URL: %w", t.addr, err)
	case errors.Is(err, amqp.ErrCredentials):
		return fmt.Errorf("rabbitmq: the broker at %s hung up at the log-in of user %q, as it does for a wrong user or password: %w", t.addr, t.user, err)
	case errors.Is(err, amqp.ErrVhost), errors.As(err, &ae) && ae.Code == amqp.NotAllowed:
		return fmt.Errorf("rabbitmq: user %q may not use virtual host %q at %s, or it does not exist: create it, or correct the URL's path: %w", t.user, t.vhost, t.addr, err)
	}
	return fmt.Errorf("rabbitmq: connect to %s: %w", t.addr, err)
}

// explain says in one sentence why the topology cannot be had, and what to do.
func (c config) explain(err error) error {
	var ae *amqp.Error
	if !errors.As(err, &ae) || ae.Code != amqp.PreconditionFailed {
		return c.target.explain(err)
	}
	// Its wording, since RabbitMQ 3.7: inequivalent arg 'x-queue-type' for queue
	// 'a' in vhost '/': received 'quorum' but current is 'classic'.
	m := regexp.MustCompile(`inequivalent arg '([^']+)' for (\w+) '([^']+)'`).FindStringSubmatch(ae.Reason)
	if m == nil {
		return fmt.Errorf("rabbitmq: queue %q exists with other properties: use another queue name, or delete it: %w", c.queue, err)
	}
	what, found, next := m[1], "another value", "use another queue name, or delete it"
	if f := regexp.MustCompile(`current is (?:the value )?'?([^' ]+)'?`).FindStringSubmatch(ae.Reason); f != nil {
		found = f[1]
	}
	if what == amqp.QueueTypeArg {
		what = "type"
		next = fmt.Sprintf("open it with type=%s, %s", found, next)
	}
	if m[2] == "exchange" && what == "type" {
		next = fmt.Sprintf("open it with exchange=%s, %s", found, next)
	}
	switch what {
	case amqp.QueueMaxLenArg:
		what = "max-length"
	case amqp.QueueOverflowArg:
		what = "overflow"
	}
	return fmt.Errorf("rabbitmq: %s %q exists with %s %s: %s: %w", m[2], m[3], what, found, next, err)
}
