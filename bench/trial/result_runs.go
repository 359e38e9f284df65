package trial

import (
	"time"

	"queuelab/bench/ledger"
)

// Load is what a cell's messages were and when they came.
type Load struct {
	Shape        string `json:"shape"`   // as load.ParseShape reads it, "closed" for a closed loop
	Content      string `json:"content"` // what the bytes of a message are
	Keys         string `json:"keys"`    // as load.ParseKeys reads it
	PayloadBytes int    `json:"payloadBytes"`
	Producers    int    `json:"producers"`
	Consumers    int    `json:"consumers"`
	Batch        int    `json:"batch"`             // messages in one Publish
	Millis       int64  `json:"millis"`            // how long it was measured, the warm-up not counted; 0: by the number of messages
	Promise      string `json:"promise,omitempty"` // of a search
}

// TrialRun is one trial of a cell.
type TrialRun struct {
	N         int       `json:"n"`            // from 1, within the cell
	Of        int       `json:"of,omitempty"` // how many there were to be: with the seed and N it gives the moment of a fault
	Order     int       `json:"order"`        // from 1, within the run: settings are interleaved
	Seed      uint64    `json:"seed"`
	StartedAt time.Time `json:"startedAt"`
	Invalid   []string  `json:"invalid,omitempty"`
	Saturated string    `json:"saturated,omitempty"` // why the load was not held
	Notes     []string  `json:"notes,omitempty"`     // what else was seen

	ledger.Counts

	RatePerSecond  float64  `json:"ratePerSecond"`
	LatencyMicros  *Latency `json:"latencyMicros,omitempty"`
	RecoveryMillis *int64   `json:"recoveryMillis,omitempty"`
	Sale           *Sale    `json:"sale,omitempty"`
	Cost           *Cost    `json:"cost,omitempty"`
	Stamps         string   `json:"stamps,omitempty"` // file beside result.json: the stamps of every message
}

// Interval is a median over trials with its bootstrap interval at 95 %. With
// fewer than six trials Low and High are only the least and the greatest.
type Interval struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	N      int     `json:"n"`
}

// CurvePoint is one point of the latency's distribution, in microseconds. Q is
// a quantile below 1, and as far out as the number of messages supports.
type CurvePoint struct {
	Q                float64 `json:"q"`
	Publish          int64   `json:"publish"`
	EndToEnd         int64   `json:"endToEnd"`
	EndToEndFromSend int64   `json:"endToEndFromSend"`
}

// Loss is how many of the trials lost something, with the exact interval at
// 95 % (Clopper and Pearson) of the chance that one does.
type Loss struct {
	Trials int     `json:"trials"`
	Lossy  int     `json:"lossy"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// Cost is what the messages took, per million delivered, beside the memory.
type Cost struct {
	ClientCPUSeconds  float64 `json:"clientCpuSeconds"` // producer, consumer and ledger
	BrokerCPUSeconds  float64 `json:"brokerCpuSeconds"`
	ClientMemoryBytes int64   `json:"clientMemoryBytes"` // most that was resident
	BrokerMemoryBytes int64   `json:"brokerMemoryBytes"` // resident at the end
	BrokerDiskBytes   int64   `json:"brokerDiskBytes"`   // growth of its directory, per million
	BrokerKnown       bool    `json:"brokerKnown"`       // false: it runs elsewhere, and its three are 0
}

// SLO is the highest rate at which a promise was kept.
type SLO struct {
	Promise     string      `json:"promise"`
	HighestRate float64     `json:"highestRate"` // messages a second; 0: it was kept at no rate that was tried
	Limit       string      `json:"limit"`       // what ended the search
	Curve       []RatePoint `json:"curve"`       // by rate
}

// RatePoint is a load that was held for a while, and what came of it.
type RatePoint struct {
	Offered       float64  `json:"offered"`
	Achieved      float64  `json:"achieved"`
	LatencyMicros *Latency `json:"latencyMicros,omitempty"`
	Lost          int64    `json:"lost"`
	Kept          bool     `json:"kept"`
	Why           string   `json:"why"` // what was not kept
}

// ScalePoint is the throughput at one value of the dimension.
type ScalePoint struct {
	Value  int       `json:"value"`
	Rate   Interval  `json:"rate"`
	Rates  []float64 `json:"rates"`            // of each valid trial
	Trials []int     `json:"trials"`           // their numbers
	Reason string    `json:"reason,omitempty"` // why there is none
}

// Floor is what the harness itself adds: the memory queue with the ledger on,
// measured before the run.
type Floor struct {
	RatePerSecond float64     `json:"ratePerSecond"` // offered
	EndToEnd      Percentiles `json:"endToEndMicros"`
	RecordNanos   float64     `json:"recordNanos"` // all the records of one message
}

// The profiles, weakest first: what an accepted message survives at best.
// Numbers are compared within one only.
const (
	ProfileAtMostOnce = "at-most-once" // delivered once or not at all, or not confirmed
	ProfileMemory     = "memory"       // a killed broker loses it
	ProfileDiskAsync  = "disk-async"   // a killed broker keeps it, a power cut may not
	ProfileDiskSync   = "disk-sync"    // synced before it is confirmed
)

// Profiles lists them in the order in which tables show them.
func Profiles() []string {
	return []string{ProfileDiskSync, ProfileDiskAsync, ProfileMemory, ProfileAtMostOnce}
}
