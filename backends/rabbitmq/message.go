package rabbitmq

import (
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"queuelab/queue"
)

const (
	maxShort      = 255 // bytes in an AMQP short string
	headerKey     = "key"
	headerHeaders = "headers"
	// propertiesRoom is what a header frame needs besides id, key and headers.
	propertiesRoom = 256
)

// encode makes the AMQP message, or says what does not fit into one.
func (q *rabbitQueue) encode(m queue.Message) (amqp.Publishing, error) {
	switch {
	case m.ID == "":
		return amqp.Publishing{}, errors.New("a message without an id")
	case len(m.ID) > maxShort:
		return amqp.Publishing{}, fmt.Errorf("an id of %d bytes: AMQP allows %d", len(m.ID), maxShort)
	case q.routed && len(m.Key) > maxShort:
		return amqp.Publishing{}, fmt.Errorf("message %s: a key of %d bytes: AMQP routes by %d at most", m.ID, len(m.Key), maxShort)
	}
	p := amqp.Publishing{MessageId: m.ID, Body: m.Body, DeliveryMode: amqp.Persistent}
	if !q.persistent {
		p.DeliveryMode = amqp.Transient
	}
	// A table of their own keeps the caller's headers apart from ours and from
	// the broker's, which begin with "x-".
	size := len(m.ID) + len(m.Key)
	var headers amqp.Table
	if len(m.Headers) > 0 {
		headers = make(amqp.Table, len(m.Headers))
		for name, value := range m.Headers {
			if len(name) > maxShort {
				return amqp.Publishing{}, fmt.Errorf("message %s: a header name of %d bytes: AMQP allows %d", m.ID, len(name), maxShort)
			}
			headers[name] = value
			size += len(name) + len(value) + 6
		}
	}
	if size > q.frameMax-propertiesRoom {
		return amqp.Publishing{}, fmt.Errorf("message %s: id, key and headers are %d bytes: a frame of this broker has room for %d", m.ID, size, q.frameMax-propertiesRoom)
	}
	if m.Key != "" || headers != nil {
		p.Headers = make(amqp.Table, 2)
		if m.Key != "" {
			p.Headers[headerKey] = m.Key
		}
		if headers != nil {
			p.Headers[headerHeaders] = headers
		}
	}
	return p, nil
}

func decode(d *amqp.Delivery) queue.Message {
	m := queue.Message{ID: d.MessageId, Body: d.Body}
	m.Key, _ = d.Headers[headerKey].(string)
	if headers, ok := d.Headers[headerHeaders].(amqp.Table); ok && len(headers) > 0 {
		m.Headers = make(map[string]string, len(headers))
		for name, value := range headers {
			m.Headers[name], _ = value.(string)
		}
	}
	return m
}

// attemptOf is 1 for a first delivery. A quorum queue counts what came back;
// RabbitMQ 4.3 has a second count, which a nack raises where it no longer raises
// the first. A classic queue has a flag.
func attemptOf(d *amqp.Delivery) int {
	returned := max(countOf(d.Headers["x-delivery-count"]), countOf(d.Headers["x-acquired-count"]))
	if returned == 0 && d.Redelivered {
		returned = 1
	}
	return returned + 1
}

func countOf(v any) int {
	switch n := v.(type) {
	case int64:
		return int(n)
	case int32:
		return int(n)
	}
	return 0
}
