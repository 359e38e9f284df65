package learn

import (
	"net/url"

	"queuelab/bench/broker"
	"queuelab/bench/proxy"
)

// Node stands before one node of a cluster, and writes down what is said to it by
// those who connect here. Clients of Kafka and of a Sentinel go on to where the
// cluster sends them, unseen.
func (s *Stand) Node(b *broker.Broker) *proxy.Proxy {
	u, err := url.Parse(b.URL())
	s.Must(err)
	p, err := proxy.New("127.0.0.1:0", u.Host, proxy.Speaks(b.Kind()))
	s.Must(err)
	s.After(p.Close)
	s.Must(s.script.listen(p, s.ID, b.Kind()))
	return p
}
