package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/apiversions"
	"github.com/segmentio/kafka-go/protocol/metadata"
)

const clientID = "queuelab"

// memberID is the client id of a member of a group: who has which partition can
// then be told from the broker, by the process.
func memberID() string { return fmt.Sprintf("%s-%d", clientID, os.Getpid()) }

// cluster finds and reaches the brokers that lead a topic.
//
// It does so without kafka-go's Transport: that one keeps an old layout until
// its time is up, dials a second connection when a request comes a moment
// early (which reorders messages that nobody confirms), and cannot tell whether
// a byte of a failed request was sent.
type cluster struct {
	hosts   []string
	topic   string
	timeout time.Duration
}

// layout is where a topic's partitions are.
type layout struct {
	leaders  []string // address of the leader by partition, "" while it has none
	replicas int      // of the partition with the fewest
}

// link is one connection to a broker that speaks the versions it knows.
type link struct {
	*protocol.Conn
	wire     *wire
	versions map[protocol.ApiKey]int16
	stop     func() bool // ends the watch for a context, if there is one

	answer []byte // the last one that was read as it came
}

func (l *link) Close() error {
	if l.stop != nil {
		l.stop()
	}
	return l.Conn.Close()
}

// wire counts what was written, so that a request of which nothing was sent is
// known to be refused.
type wire struct {
	net.Conn
	written int64
}

func (w *wire) Write(b []byte) (int, error) {
	n, err := w.Conn.Write(b)
	w.written += int64(n)
	return n, err
}

// dial connects to a broker; the protocol is not spoken yet.
func (c *cluster) dial(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: c.timeout}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("kafka: no broker can be reached at %s: %w", addr, err)
	}
	return conn, nil
}

// connect dials a broker and agrees on versions with it.
func (c *cluster) connect(ctx context.Context, addr string) (*link, error) {
	conn, err := c.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	w := &wire{Conn: conn}
	l := &link{Conn: protocol.NewConn(w, clientID), wire: w}
	err = l.handshake(time.Now().Add(c.timeout))
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("kafka: what listens at %s does not answer like a Kafka broker: %w", addr, err)
	}
	return l, nil
}

func (l *link) handshake(deadline time.Time) error {
	_ = l.SetDeadline(deadline)
	req := new(apiversions.Request)
	if err := protocol.WriteRequest(l, 0, 0, clientID, req); err != nil {
		return err
	}
	// Anything else than Kafka begins with letters, which read as a length are
	// gigabytes that would never come.
	head, err := l.Peek(4)
	if err != nil {
		return err
	}
	if head[0] != 0 {
		return fmt.Errorf("its answer begins with %q", head)
	}
	_, msg, err := protocol.ReadResponse(l, req.ApiKey(), 0)
	if err != nil {
		return err
	}
	res, ok := msg.(*apiversions.Response)
	if !ok {
		return fmt.Errorf("its answer is a %T", msg)
	}
	if res.ErrorCode != 0 {
		return kafkago.Error(res.ErrorCode)
	}
	versions := make(map[protocol.ApiKey]int16, len(res.ApiKeys))
	for _, k := range res.ApiKeys {
		key := protocol.ApiKey(k.ApiKey)
		versions[key] = key.SelectVersion(k.MinVersion, k.MaxVersion)
	}
	l.versions = versions
	l.SetVersions(versions)
	return l.SetDeadline(time.Time{})
}

// locate asks the brokers where the topic's partitions are. The error of a
// topic that is not there is UnknownTopicOrPartition.
func (c *cluster) locate(ctx context.Context) (layout, error) {
	var errs []error
	for _, host := range c.hosts {
		lay, err := c.locateAt(ctx, host)
		if err == nil || ctx.Err() != nil {
			return lay, err
		}
		errs = append(errs, err)
	}
	return layout{}, errors.Join(errs...)
}

func (c *cluster) locateAt(ctx context.Context, host string) (layout, error) {
	l, err := c.connect(ctx, host)
	if err != nil {
		return layout{}, err
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	_ = l.SetDeadline(time.Now().Add(c.timeout))
	msg, err := l.RoundTrip(&metadata.Request{TopicNames: []string{c.topic}})
	if err != nil {
		return layout{}, fmt.Errorf("kafka: ask %s for topic %s: %w", host, c.topic, err)
	}
	lay, err := readLayout(msg.(*metadata.Response))
	if err != nil {
		return layout{}, fmt.Errorf("kafka: topic %s: %w", c.topic, err)
	}
	return lay, nil
}

func readLayout(m *metadata.Response) (layout, error) {
	if len(m.Topics) != 1 {
		return layout{}, fmt.Errorf("broker told of %d topics, want 1", len(m.Topics))
	}
	t := m.Topics[0]
	if t.ErrorCode != 0 {
		return layout{}, kafkago.Error(t.ErrorCode)
	}
	addrs := map[int32]string{}
	for _, b := range m.Brokers {
		addrs[b.NodeID] = net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
	}
	lay := layout{leaders: make([]string, len(t.Partitions))}
	for _, p := range t.Partitions {
		if int(p.PartitionIndex) >= len(lay.leaders) {
			return layout{}, fmt.Errorf("broker told of partition %d of %d", p.PartitionIndex, len(lay.leaders))
		}
		lay.leaders[p.PartitionIndex] = addrs[p.LeaderID]
		if n := len(p.ReplicaNodes); lay.replicas == 0 || n < lay.replicas {
			lay.replicas = n
		}
	}
	return lay, nil
}

// leader is the address of the broker that leads a partition.
func (c *cluster) leader(ctx context.Context, partition int) (string, error) {
	lay, err := c.locate(ctx)
	if err != nil {
		return "", err
	}
	return lay.leader(c.topic, partition)
}

func (l layout) leader(topic string, partition int) (string, error) {
	if partition >= len(l.leaders) {
		return "", fmt.Errorf("kafka: topic %s, partition %d: %w", topic, partition, kafkago.UnknownTopicOrPartition)
	}
	if l.leaders[partition] == "" {
		return "", fmt.Errorf("kafka: topic %s, partition %d: %w", topic, partition, kafkago.LeaderNotAvailable)
	}
	return l.leaders[partition], nil
}

// admin calls do with a client for requests that must find a controller or a
// coordinator, and again while there is none: a broker that starts, or that was
// stopped for a while, is not its own controller at once. The client's
// background work ends with the call.
func (c *cluster) admin(ctx context.Context, do func(context.Context, *kafkago.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, 4*c.timeout)
	defer cancel()
	for {
		err := c.adminOnce(ctx, do)
		if !unled(err) || pause(ctx, pollEvery) != nil {
			return err
		}
	}
}

// unled reports whether a request found no controller or coordinator, or one
// that is not ready; then it was not acted on.
func unled(err error) bool {
	for _, e := range []kafkago.Error{
		kafkago.BrokerNotAvailable, kafkago.NotController, kafkago.NotCoordinatorForGroup,
		kafkago.GroupCoordinatorNotAvailable, kafkago.GroupLoadInProgress,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (c *cluster) adminOnce(ctx context.Context, do func(context.Context, *kafkago.Client) error) error {
	tr := &kafkago.Transport{
		ClientID:       clientID,
		DialTimeout:    c.timeout,
		MetadataTTL:    c.timeout,
		MetadataTopics: []string{c.topic},
	}
	defer tr.CloseIdleConnections()
	return do(ctx, &kafkago.Client{Addr: kafkago.TCP(c.hosts...), Timeout: c.timeout, Transport: tr})
}
