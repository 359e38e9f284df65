package broker_test

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
)

// Whoever comes to Kafka through its listener for a proxy is told to go to the
// proxy, and whoever comes directly is not.
func TestKafkaSendsTheClientsOfAProxyToTheProxy(t *testing.T) {
	ctx := within(t, 3*time.Minute)
	b := brokertest.Start(t, "kafka", "")
	listen, target, err := b.ProxyAddrs()
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{u.Host: u.Host, target: listen} {
		transport := &kafka.Transport{MetadataTTL: time.Minute}
		m, err := (&kafka.Client{Addr: kafka.TCP(at), Transport: transport}).Metadata(ctx, &kafka.MetadataRequest{Topics: []string{}})
		transport.CloseIdleConnections()
		if err != nil {
			t.Fatal(err)
		}
		if got := net.JoinHostPort(m.Brokers[0].Host, strconv.Itoa(m.Brokers[0].Port)); got != want {
			t.Errorf("at %s it names %s, want %s", at, got, want)
		}
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		t.Errorf("the proxy's address is not free: %v", err)
	} else {
		l.Close()
	}
}

func TestAProxyOfMostBrokersMayListenAnywhere(t *testing.T) {
	for _, c := range []struct{ kind, url, target, err string }{
		{"redis", "redis://127.0.0.1:7000/0", "127.0.0.1:7000", ""},
		{"rabbitmq", "amqp://guest:guest@127.0.0.1:7000/", "127.0.0.1:7000", ""},
		{"postgres", "postgres://lab@127.0.0.1:7000/lab", "127.0.0.1:7000", ""},
		{"kafka", "kafka://127.0.0.1:7000", "", "advertises no address"},
	} {
		b, err := broker.External(c.kind, c.url)
		if err != nil {
			t.Fatal(err)
		}
		listen, target, err := b.ProxyAddrs()
		if c.err != "" {
			if !errors.Is(err, broker.ErrNoProxy) || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: got %v, want ErrNoProxy with %q", c.kind, err, c.err)
			}
			continue
		}
		if err != nil || listen != "127.0.0.1:0" || target != c.target {
			t.Errorf("%s: got %s, %s, %v, want any port, leading to %s", c.kind, listen, target, err, c.target)
		}
	}
}
