package rabbitmq

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"queuelab/backends/internal/params"
	"queuelab/queue"
)

// settleTime is how long RabbitMQ 3.10 needs until a new queue is on disk. Of
// quorum queues that were killed up to 0.7 s after their declaration, six of six
// came back without a leader, for ever; after 1.5 s, none of four did.
const settleTime = 2 * time.Second

// config is what the URL says. It does not change while the queue is open.
type config struct {
	target         // where the broker is
	exchange       string
	exchangeKind   string   // fanout, direct or topic
	routed         bool     // by the message's key
	bindings       []string // of the group's queue
	queue          string
	kind           string // the broker's x-queue-type
	persistent     bool
	confirm        bool
	mandatory      bool
	maxLength      int // 0: no bound
	members        int // of a quorum queue; 0: as many as the broker has it
	overflow       string
	autoAck        bool
	prefetch       int
	window         int
	channels       int
	confirmTimeout time.Duration
	settle         time.Duration
}

func parse(u *url.URL) (config, error) {
	p := params.New(u)
	p.Preset(map[string]map[string]string{
		"latency":    {"prefetch": "16"},
		"throughput": {"prefetch": "1000", "window": "1000"},
	})
	c := config{
		exchange:       p.Name("queue", "orders"),
		kind:           p.OneOf("type", "classic", "quorum"),
		persistent:     p.Bool("persistent", true),
		confirm:        p.Bool("confirm", true),
		autoAck:        p.Bool("auto-ack", false),
		prefetch:       p.Int("prefetch", 64, 1, 65535),
		window:         p.Int("window", 500, 1, 1000),
		channels:       p.Int("channels", 2, 1, 16),
		confirmTimeout: p.Duration("confirm-timeout", 10*time.Second, 10*time.Millisecond, 10*time.Minute),
	}
	c.mandatory = p.Bool("mandatory", c.confirm)
	c.members = p.Int("members", 0, 1, 99)
	c.maxLength = p.Int("max-length", 0, 1, 1_000_000_000)
	c.overflow = p.OneOf("overflow", amqp.QueueOverflowDropHead, amqp.QueueOverflowRejectPublish)
	c.queue = c.exchange + "." + p.Name("group", "workers")
	routeErr := c.parseRoute(p)
	heartbeat := p.Duration("heartbeat", 10*time.Second, time.Second, 10*time.Minute)
	settle := time.Duration(0)
	if c.persistent && c.confirm {
		settle = settleTime
	}
	c.settle = p.Duration("settle", settle, 0, time.Minute)
	if err := p.Err(); err != nil {
		return config{}, err
	}
	switch {
	case routeErr != nil:
		return config{}, routeErr
	case strings.HasPrefix(c.exchange, "amq."):
		return config{}, fmt.Errorf("parameter queue=%q: names that begin with \"amq.\" belong to the broker", c.exchange)
	case len(c.queue) > maxShort:
		return config{}, fmt.Errorf("queue and group together are %d bytes: RabbitMQ allows %d", len(c.queue), maxShort)
	case c.kind == "quorum" && !c.persistent:
		return config{}, errors.New("persistent=false has no meaning with type=quorum, which stores every message: leave it out, or use type=classic")
	case heartbeat%time.Second != 0:
		return config{}, fmt.Errorf("parameter heartbeat=%v: AMQP counts them in whole seconds", heartbeat)
	case c.mandatory && !c.confirm:
		return config{}, errors.New("mandatory=true needs confirm=true: nobody would wait for what comes back")
	case c.members > 0 && c.kind != "quorum":
		return config{}, errors.New("members= is how many nodes have a quorum queue: give type=quorum as well")
	case c.maxLength == 0 && u.Query().Has("overflow"):
		return config{}, errors.New("overflow says what a full queue does: give max-length as well")
	case c.rejects() && !c.confirm:
		return config{}, errors.New("overflow=reject-publish needs confirm=true: nobody would hear the rejection")
	}
	var err error
	c.target, err = parseTarget(u)
	c.heartbeat = heartbeat
	return c, err
}

// rejects reports whether a full queue rejects, and does not drop its oldest.
func (c config) rejects() bool {
	return c.maxLength > 0 && c.overflow == amqp.QueueOverflowRejectPublish
}

// syncsClassic reports whether a classic queue of that version syncs to disk
// before it confirms: measured on 3.10, and certainly not so in 4.
func syncsClassic(version string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return n == 2 && major == 3 && minor <= 10
}

// capabilities claims for a broker of that version.
func (c config) capabilities(version string) queue.Capabilities {
	caps := queue.Capabilities{
		Guarantee:     queue.AtLeastOnce,
		Attempts:      queue.FlaggedByBroker,
		Groups:        true,
		Nack:          !c.autoAck,
		OrderedPerKey: true,
		Stored:        true,
		Durable:       c.persistent && c.confirm,
		Shared:        true,
		Routing:       c.routed,
		Bounded:       c.rejects(),
		DropsOldest:   c.maxLength > 0 && !c.rejects(),
	}
	if c.autoAck {
		caps.Guarantee = queue.AtMostOnce
	}
	if c.kind == "quorum" {
		caps.Attempts = queue.CountedByBroker
	}
	switch {
	case !c.confirm:
		caps.Confirm = queue.ConfirmNone
	case !c.persistent:
		caps.Confirm = queue.ConfirmMemory
	case c.members > 1:
		caps.Confirm = queue.ConfirmReplicas
	case c.kind == "quorum", syncsClassic(version):
		caps.Confirm = queue.ConfirmDisk
	default:
		caps.Confirm = queue.ConfirmOS
	}
	return caps
}
