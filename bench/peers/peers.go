// Package peers measures our backends side by side with each broker's own load
// tool: on the same broker, with the same payload and guarantee, in the same
// minute, in pairs whose order alternates.
//
// Either side is a process of its own. What a pair compares is stated in its
// row, since no two programs are driven alike: how many connections and callers,
// what shares a round trip, which part of the run is timed. Where no stock tool
// does what a backend does, a bare loop over the client library stands in.
package peers

import (
	"time"

	"queuelab/bench/trial"
)

// The directions of a row.
const (
	Publish = "publish"
	Consume = "consume"
)

// BareLoop is the tool of the rows for which no stock tool consumes.
const BareLoop = "bare go-redis loop"

// FewestPairs is how many pairs a ratio takes that is called a median.
const FewestPairs = 3

// payload is the bytes of a message's body, on either side.
const payload = 100

// Result is one run, as written to peers.json.
type Result struct {
	Rows    []Row        `json:"rows"`
	Latency []LatencyRow `json:"latency"`
	Skipped []Skipped    `json:"skipped"`
	Failed  []Skipped    `json:"failed"`

	StartedAt    time.Time         `json:"startedAt"`
	FinishedAt   time.Time         `json:"finishedAt"`
	Complete     bool              `json:"complete"` // false: interrupted, what was finished is here
	Pairs        int               `json:"pairs"`    // of each row
	Scale        float64           `json:"scale"`    // of the numbers of messages and of the durations
	PayloadBytes int               `json:"payloadBytes"`
	Note         string            `json:"note"`
	Commit       string            `json:"commit"`
	Host         trial.Host        `json:"host"`
	Versions     map[string]string `json:"versions"` // of brokers, tools and client libraries
}

// Row is one backend beside one tool. Rates are messages a second, each the
// median over the pairs; Ratio is the median of the pairs' ratios, ours by the
// tool's, and thus need not be the ratio of the two rates.
type Row struct {
	Backend   string  `json:"backend"`
	Client    string  `json:"client"`
	Tool      string  `json:"tool"`
	Guarantee string  `json:"guarantee"`
	Direction string  `json:"direction"`
	ToolRate  float64 `json:"toolRate"`
	OursRate  float64 `json:"oursRate"`
	Ratio     float64 `json:"ratio"`

	Target       float64 `json:"target"` // least ratio that is aimed at; 0: none
	Reached      bool    `json:"reached"`
	ToolSettings string  `json:"toolSettings"`
	OursSettings string  `json:"oursSettings"`
	Timed        string  `json:"timed"` // which part of the run the rates are of
	Pairs        []Pair  `json:"pairs"`
}

// Pair is one run of either side, one after the other.
type Pair struct {
	ToolFirst bool      `json:"toolFirst"`
	ToolRate  float64   `json:"toolRate"`
	OursRate  float64   `json:"oursRate"`
	Ratio     float64   `json:"ratio"`
	StartedAt time.Time `json:"startedAt"`
	// CPUPressure is the share of time, in per cent over the ten seconds before,
	// in which something runnable had to wait for a core. 0 where it is not known.
	CPUPressure float64 `json:"cpuPressure"`
}

// LatencyRow is the end-to-end latency of one backend beside that of a bare loop
// over its client library. Both are medians over the pairs of the p50, in
// microseconds from the time a message is due until it is received; Ratio is the
// median of the pairs' ratios, ours by the raw one.
type LatencyRow struct {
	Backend       string  `json:"backend"`
	Client        string  `json:"client"`
	RawP50Micros  float64 `json:"rawP50Micros"`
	OursP50Micros float64 `json:"oursP50Micros"`
	Ratio         float64 `json:"ratio"`

	Target        float64       `json:"target"` // greatest ratio that is aimed at
	Reached       bool          `json:"reached"`
	Saturated     bool          `json:"saturated"` // the bare loop did not keep up: there is nothing to compare with
	Guarantee     string        `json:"guarantee"`
	RatePerSecond float64       `json:"ratePerSecond"` // open loop
	RawSettings   string        `json:"rawSettings"`
	OursSettings  string        `json:"oursSettings"`
	Pairs         []LatencyPair `json:"pairs"`
}

// LatencyPair is one run of either side, in microseconds.
type LatencyPair struct {
	RawFirst  bool      `json:"rawFirst"`
	Raw       Micros    `json:"rawMicros"`
	Ours      Micros    `json:"oursMicros"`
	Ratio     float64   `json:"ratio"` // of the p50
	StartedAt time.Time `json:"startedAt"`

	CPUPressure float64 `json:"cpuPressure"` // as in Pair
}

// Micros are percentiles of a latency in microseconds.
type Micros struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
	N   int     `json:"n"`
}

// Skipped is a row that could not be measured, and why.
type Skipped struct {
	Backend   string `json:"backend"`
	Client    string `json:"client"`
	Tool      string `json:"tool"`
	Guarantee string `json:"guarantee"`
	Direction string `json:"direction"` // "latency" for one of those
	Reason    string `json:"reason"`
}

// target is the ratio that a row is to reach: at least that for a rate.
func target(backend, client, direction string) float64 {
	for _, t := range []struct {
		backend, client, direction string
		ratio                      float64
	}{
		{"redis-list", "go-redis", Publish, 1.0},
		{"redis-streams", "go-redis", Publish, 1.0},
		{"redis-pubsub", "go-redis", Publish, 1.0},
		{"rabbitmq", "amqp091-go", Publish, 1.0},
		{"kafka", "kafka-go", Publish, 0.5},
		{"kafka", "franz-go", Publish, 1.0},

		{"redis-list", "go-redis", Consume, 0.8},
		{"redis-streams", "go-redis", Consume, 0.9}, // of a bare loop
		{"redis-pubsub", "go-redis", Consume, 0.9},  // of a bare loop
		{"rabbitmq", "amqp091-go", Consume, 0.8},
		{"kafka", "kafka-go", Consume, 0.35},
		{"kafka", "franz-go", Consume, 0.8},
	} {
		if t.backend == backend && t.client == client && t.direction == direction {
			return t.ratio
		}
	}
	return 0
}

// latencyTarget is the greatest ratio of the p50 that is aimed at.
const latencyTarget = 1.10

// saturatedAt is the p50 in microseconds from which a side waits for itself, not
// for the broker: at that rate ten messages are then under way at any time.
const saturatedAt = 10_000

// Reached reports whether every row that was measured reached its target.
func (r Result) Reached() bool {
	for _, x := range r.Rows {
		if !x.Reached {
			return false
		}
	}
	for _, x := range r.Latency {
		if !x.Reached {
			return false
		}
	}
	return true
}
