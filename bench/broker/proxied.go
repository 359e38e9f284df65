package broker

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
)

// ErrNoProxy means that a broker cannot be put behind a proxy: it tells its
// clients to connect elsewhere. It comes wrapped, with the reason.
var ErrNoProxy = errors.New("this broker cannot be put behind a proxy")

// proxied is what a broker tells its clients to connect to, and where the proxy
// that listens there must lead.
type proxied struct{ listen, target int }

// behindProxy is a host whose broker has a listener for the clients of a proxy.
type behindProxy interface{ proxied() proxied }

// ProxyAddrs returns where a proxy for this broker must listen, and where it must
// lead. Most brokers do not care where clients come from, and any port of the
// loopback address will do, which is 127.0.0.1:0. Kafka's clients go where Kafka
// tells them to: a broker of ours has one address for a proxy, so that there can
// be one proxy at a time.
func (b *Broker) ProxyAddrs() (listen, target string, err error) {
	u, err := url.Parse(b.url)
	if err != nil {
		return "", "", fmt.Errorf("proxy of %s: %w", b.kind.name, err)
	}
	switch b.kind.name {
	case "redis", "rabbitmq", "nats", "postgres":
		return "127.0.0.1:0", u.Host, nil
	case "kafka":
	default:
		return "", "", fmt.Errorf("proxy of %s at %s: %w: it has several nodes, and clients choose among them", b.kind.name, u.Host, ErrNoProxy)
	}
	if h, ok := b.host.(behindProxy); ok && h.proxied().listen != 0 {
		p := h.proxied()
		return loopback(p.listen), loopback(p.target), nil
	}
	return "", "", fmt.Errorf("proxy of kafka at %s: %w: it advertises no address for one; use a Kafka that queuelab starts", u.Host, ErrNoProxy)
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func (c *container) proxied() proxied { return c.behind }
