package choose

import (
	"fmt"

	"queuelab/bench/trial"
)

// Cost is what a setting takes: measured, per million messages, and what must run.
type Cost struct {
	Runs fact   `json:"runs"`
	Load []Bill `json:"load"` // at full speed, and at the rate of the latency trials
}

// Bill is what a million messages took under one load.
type Bill struct {
	At            string  `json:"at"`
	ClientSeconds float64 `json:"clientCpuSeconds"`
	ClientBytes   int64   `json:"clientMemoryBytes"`
	BrokerKnown   bool    `json:"brokerKnown"` // false: the three are 0, since nobody tells
	BrokerSeconds float64 `json:"brokerCpuSeconds"`
	BrokerBytes   int64   `json:"brokerMemoryBytes"`
	DiskBytes     int64   `json:"brokerDiskBytes"`
	Cell          string  `json:"cell"`
	Result        string  `json:"result"`
}

func (c *candidate) cost() Cost {
	out := Cost{Runs: factsOf(c.Backend).Operations, Load: []Bill{}}
	for _, test := range []string{trial.TestThroughput, trial.TestLatency} {
		m := c.e.first(c.String(), test)
		if m == nil || m.Cost == nil {
			continue
		}
		b := Bill{At: "at full speed", ClientSeconds: m.Cost.ClientCPUSeconds, ClientBytes: m.Cost.ClientMemoryBytes, BrokerKnown: m.Cost.BrokerKnown, Cell: m.proof("", "").Cell, Result: m.file}
		if test == trial.TestLatency {
			b.At = "at " + perSecond(m.RatePerSecond)
		}
		if b.BrokerKnown {
			b.BrokerSeconds, b.BrokerBytes, b.DiskBytes = m.Cost.BrokerCPUSeconds, m.Cost.BrokerMemoryBytes, m.Cost.BrokerDiskBytes
		}
		out.Load = append(out.Load, b)
	}
	return out
}

// String is the bill in one line.
func (b Bill) String() string {
	s := fmt.Sprintf("%s: %s CPU s a million in the client", b.At, short(b.ClientSeconds))
	if !b.BrokerKnown {
		return s + ", the broker's is not known"
	}
	return s + fmt.Sprintf(", %s in the broker; its memory %s, its disk %s a million", short(b.BrokerSeconds), size(float64(b.BrokerBytes)), size(float64(b.DiskBytes)))
}
