// Package trial runs measurements: it turns a setting, a load and a fault into
// trials, judges each by its ledger, and gathers them into cells.
package trial

import (
	"encoding/json"
	"time"

	"queuelab/bench/ledger"
)

// Schema is the version of Result's JSON form. Fields are added, never renamed.
const Schema = 1

// Result is one run of queuelab, as written to result.json.
type Result struct {
	Schema int    `json:"schema"`
	Run    Run    `json:"run"`
	Cells  []Cell `json:"cells"`
}

// Run says when, where and how the cells were measured.
type Run struct {
	ID         string    `json:"id"`
	StartedAt  time.Time `json:"startedAt"`
	FinishedAt time.Time `json:"finishedAt"`
	Complete   bool      `json:"complete"` // false: interrupted, what was finished is here
	Commit     string    `json:"commit"`
	GoVersion  string    `json:"goVersion"`
	Suite      string    `json:"suite"`
	Args       []string  `json:"args"` // passwords redacted
	Host       Host      `json:"host"`
	Floor      *Floor    `json:"floor,omitempty"` // what the harness itself adds
}

// Host is the machine that measured.
type Host struct {
	CPU         string  `json:"cpu"`
	Cores       int     `json:"cores"`
	Kernel      string  `json:"kernel"`
	MemoryBytes int64   `json:"memoryBytes"`
	FsyncMicros Fsync   `json:"fsyncMicros"`
	Load1       float64 `json:"load1"` // load average over one minute, before the run

	ClockSource string    `json:"clockSource"` // the kernel's, such as tsc
	CPUPressure *Pressure `json:"cpuPressure,omitempty"`
	NoiseMicros *Noise    `json:"noiseMicros,omitempty"`
	// ClockJumpMillis is by how much the wall clock was set during the run,
	// against the monotonic one that latencies count on.
	ClockJumpMillis int64 `json:"clockJumpMillis"`

	StealPercent float64 `json:"stealPercent"` // of the cores' time during the run, taken by the host of a virtual machine
	SwappedPages int64   `json:"swappedPages"` // in and out, during the run
}

// Pressure is the share of time, in per cent, in which something runnable had to
// wait for a core, before the run and on average during it.
type Pressure struct {
	Before float64 `json:"before"`
	During float64 `json:"during"`
}

// Noise is how late a thread wakes that asked for a millisecond of sleep, before
// the run: what the machine itself adds to every latency now and then.
type Noise struct {
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

// Fsync is the latency of write and fsync of 4 KiB in the brokers' directory.
type Fsync struct {
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
}

// Broker is the program behind a cell.
type Broker struct {
	Name     string `json:"name"` // "none" for the memory queue
	Version  string `json:"version"`
	Emulated bool   `json:"emulated"` // a stand-in: never ranked
}

// The tests, faults and verdicts by their names in the result.
const (
	TestLatency    = "latency"
	TestThroughput = "throughput"
	TestCrash      = "crash"
	TestSale       = "sale"
	TestSLO        = "slo"   // the highest rate at a promise
	TestFault      = "fault" // the crash lab's: every fault, on many trials

	// Throughput along one dimension.
	TestScalingConsumers   = "scaling-consumers"
	TestScalingConnections = "scaling-connections"
	TestScalingPayload     = "scaling-payload"
	TestScalingBatch       = "scaling-batch"

	FaultNone                  = "none"
	FaultConsumerKillMidHandle = "consumer-kill-mid-handle"
	FaultConsumerKillBeforeAck = "consumer-kill-before-ack"
	FaultBrokerKill            = "broker-kill"
	FaultServiceKill           = "service-kill"

	VerdictAsExpected    = "as expected"
	VerdictContradiction = "contradiction"
	VerdictNotReproduced = "not reproduced" // the expected loss did not show in these trials
	VerdictOracleUpdate  = "oracle update"  // deviates from a row that was only deduced
	VerdictSaturated     = "saturated"
	VerdictInvalid       = "invalid"
	VerdictSkipped       = "skipped"
	VerdictNotApplicable = "not applicable"
)

// Cell is one setting under one test and fault, over all its trials. Counts
// are sums over the valid trials.
type Cell struct {
	Backend        string   `json:"backend"` // setting "a/b" is backend a, setting b
	Setting        string   `json:"setting"`
	Broker         Broker   `json:"broker"`
	Guarantee      string   `json:"guarantee"` // queue.Guarantee in words; "": the queue was never opened
	Confirm        string   `json:"confirm"`   // queue.Confirm in words: who had an accepted message
	Profile        string   `json:"profile"`   // the setting's; see Profiles
	Test           string   `json:"test"`
	Fault          string   `json:"fault"`
	Seed           uint64   `json:"seed"`
	Trials         int      `json:"trials"`
	Valid          int      `json:"valid"`
	InvalidReasons []string `json:"invalidReasons"` // also why a cell was skipped

	ledger.Counts

	BacklogAtFault    int64             `json:"backlogAtFault"` // in the broker, frozen, when the fault struck
	Consumers         int               `json:"consumers"`      // processes
	Concurrency       int               `json:"concurrency"`    // handlers in one consumer
	Prefetch          int               `json:"prefetch"`
	PayloadBytes      int               `json:"payloadBytes"`
	EffectiveSettings map[string]string `json:"effectiveSettings"` // read back from the broker, and the client's URL

	// LossWindowMillis is the age, at the fault, of the oldest lost message that
	// had been accepted before it, over the trials that lost something.
	LossWindowMillis *LossWindow `json:"lossWindowMillis,omitempty"`
	CrashesWithLoss  *int        `json:"crashesWithLoss,omitempty"` // of the valid trials under a fault
	// DirtyBytes were written and not synced when the power went, over all
	// trials: with none the cut was a mere kill. CrashLost is what the same
	// instants would have lost, had only the process died, without those of the
	// CrashUnknown trials of which that could not be told.
	DirtyBytes   *int64   `json:"dirtyBytes,omitempty"`
	CrashLost    int64    `json:"crashLost,omitempty"`
	CrashUnknown int64    `json:"crashUnknown,omitempty"`
	Notes        []string `json:"notes,omitempty"` // what the trials saw beside

	RecoveryMillis *Recovery `json:"recoveryMillis,omitempty"` // fault to the first delivery after it
	LatencyMicros  *Latency  `json:"latencyMicros,omitempty"`
	RatePerSecond  float64   `json:"ratePerSecond"` // offered in a latency cell, held in a throughput cell
	LoopModel      string    `json:"loopModel"`     // "open", from the due time, or "closed"
	Load           *Load     `json:"load,omitempty"`
	Sale           *Sale     `json:"sale,omitempty"`

	Runs    []TrialRun          `json:"runs,omitempty"`   // every trial, the invalid ones too
	Spread  map[string]Interval `json:"spread,omitempty"` // over the valid trials, by the names of Metrics
	Noisy   string              `json:"noisy"`            // why the cell must not be ranked; "": it may
	Curve   []CurvePoint        `json:"curve,omitempty"`  // the latency's percentiles, all trials together
	Loss    *Loss               `json:"loss,omitempty"`   // judged by the crash, not by the message
	Cost    *Cost               `json:"cost,omitempty"`
	SLO     *SLO                `json:"slo,omitempty"`
	Scaling []ScalePoint        `json:"scaling,omitempty"`

	Expected *Expected `json:"expected,omitempty"`
	Verdict  string    `json:"verdict"`
	Note     string    `json:"note"` // what this number of trials can and cannot bound, or what is odd about it

	WallMillis int64 `json:"wallMillis"` // what the cell cost to measure
}

// Percentiles of a latency in microseconds, with how many were measured.
type Percentiles struct {
	P50  int64 `json:"p50"`
	P90  int64 `json:"p90"`
	P99  int64 `json:"p99"`
	P999 int64 `json:"p999"`
	Max  int64 `json:"max"`
	N    int64 `json:"n"`
}

// Latency counts from the due time of each message, except FromSend.
type Latency struct {
	Publish  Percentiles  `json:"publish"`            // due to accepted: what reports call the response
	EndToEnd Percentiles  `json:"endToEnd"`           // due to delivered
	Effect   *Percentiles `json:"effect,omitempty"`   // due to effect committed, where there is one
	Acked    *Percentiles `json:"acked,omitempty"`    // due to the ack's return
	Lateness *Percentiles `json:"lateness,omitempty"` // due to sent: the generator's own
	// FromSend is the uncorrected view, that a stalled sender flatters: never
	// ranked, shown beside the other for what the difference teaches.
	FromSend *FromSend `json:"fromSend,omitempty"`
}

// FromSend counts from the actual send.
type FromSend struct {
	Publish  Percentiles `json:"publish"`  // sent to accepted
	EndToEnd Percentiles `json:"endToEnd"` // sent to delivered
}

// LossWindow is how far back a loss reaches, in ms, over the trials that lost.
type LossWindow struct {
	P50 int64 `json:"p50"`
	Max int64 `json:"max"`
}

// UnmarshalJSON also reads the single number that results before the crash lab
// have: the longest.
func (w *LossWindow) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &w.Max); err == nil {
		w.P50 = w.Max
		return nil
	}
	type plain LossWindow
	return json.Unmarshal(b, (*plain)(w))
}

// Recovery is the time without service after a fault, over the trials.
type Recovery struct {
	P50 int64 `json:"p50"`
	Max int64 `json:"max"`
}

// Sale is what the business saw.
type Sale struct {
	Buyers     int `json:"buyers"`
	Stock      int `json:"stock"`
	Sold       int `json:"sold"` // orders in the database
	Oversold   int `json:"oversold"`
	Undersold  int `json:"undersold"`
	Double     int `json:"double"`     // orders beyond one per buyer
	Waiting    int `json:"waiting"`    // told "queued", and no final answer by the deadline
	LostOrders int `json:"lostOrders"` // told "queued", and no order

	AnswerMicros    *Percentiles `json:"answerMicros,omitempty"`    // click to answer
	CommittedMicros *Percentiles `json:"committedMicros,omitempty"` // click to the order's row committed
}

// Expected is the oracle's row for a cell, with its bound for these trials.
type Expected struct {
	Lost        string `json:"lost"`        // as the oracle has it
	Redelivered string `json:"redelivered"` // as the oracle has it
	LostAtMost  *int64 `json:"lostAtMost"`  // the bound computed from the trials' facts; null: none
	Basis       string `json:"basis"`       // V measured, S from a source, D deduced
	Why         string `json:"why"`
}
