package rabbitmq

import (
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"queuelab/backends/internal/params"
	"queuelab/queue"
)

// parseRoute reads how the exchange finds the queues of a message.
func (c *config) parseRoute(p *params.Params) error {
	c.exchangeKind = p.OneOf("exchange", amqp.ExchangeFanout, amqp.ExchangeDirect, amqp.ExchangeTopic)
	route, bind := p.OneOf("route", "", "queue", "key"), p.String("bind", "")
	c.routed = route == "key" || c.exchangeKind == amqp.ExchangeTopic
	switch {
	case c.exchangeKind == amqp.ExchangeFanout && route == "key":
		return errors.New("route=key has no meaning with exchange=fanout, which copies every message to every queue: use exchange=direct or exchange=topic")
	case c.exchangeKind == amqp.ExchangeTopic && route == "queue":
		return errors.New("route=queue has no meaning with exchange=topic, which routes by key: leave it out, or use exchange=direct")
	case bind != "" && !c.routed:
		return fmt.Errorf("bind=%s has no meaning where messages are not routed by key: use exchange=topic, or exchange=direct with route=key", bind)
	case bind == "" && c.routed && c.exchangeKind == amqp.ExchangeDirect:
		return errors.New("exchange=direct with route=key needs bind=KEY,KEY: it has no pattern for every key")
	}
	switch {
	case bind != "":
		c.bindings = strings.Split(bind, ",")
	case c.routed:
		c.bindings = []string{"#"}
	default:
		c.bindings = []string{c.routeOf(queue.Message{})}
	}
	for _, b := range c.bindings {
		if len(b) > maxShort {
			return fmt.Errorf("bind has a key of %d bytes: AMQP allows %d", len(b), maxShort)
		}
	}
	return nil
}

// routeOf is the routing key of a message.
func (c *config) routeOf(m queue.Message) string {
	switch {
	case c.routed:
		return m.Key
	case c.exchangeKind == amqp.ExchangeDirect:
		return c.exchange
	}
	return ""
}
