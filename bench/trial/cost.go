package trial

import (
	"context"
	"time"

	"queuelab/bench/broker"
	"queuelab/bench/host/meter"
)

// bill is what the client and the broker use between two moments.
type bill struct {
	broker       *broker.Broker
	before       broker.Usage
	after        broker.Usage
	known        bool
	client       time.Duration
	clientMemory int64
	at           *meter.Usage
}

// startBill begins to count; a broker that does not tell is left out.
func startBill(ctx context.Context, b *broker.Broker, node *meter.Usage) *bill {
	x := &bill{broker: b, at: node}
	if b != nil {
		before, err := b.Usage(ctx)
		x.before, x.known = before, err == nil && before.Known
	}
	return x
}

func (x *bill) stop(ctx context.Context, node *meter.Usage) {
	if node != nil && x.at != nil {
		x.client, x.clientMemory = node.CPU-x.at.CPU, node.PeakMemoryBytes
	}
	if x.known {
		after, err := x.broker.Usage(ctx)
		x.after, x.known = after, err == nil && after.Known
	}
}

// cost is the bill per million messages; nil where there were none.
func (x *bill) cost(delivered int64) *Cost {
	if delivered == 0 || x.client == 0 {
		return nil
	}
	perMillion := 1e6 / float64(delivered)
	c := &Cost{ClientCPUSeconds: x.client.Seconds() * perMillion, ClientMemoryBytes: x.clientMemory, BrokerKnown: x.known}
	if x.known {
		c.BrokerCPUSeconds = (x.after.CPU - x.before.CPU).Seconds() * perMillion
		c.BrokerMemoryBytes = x.after.MemoryBytes
		c.BrokerDiskBytes = int64(float64(max(0, x.after.DiskBytes-x.before.DiskBytes)) * perMillion)
	}
	return c
}
