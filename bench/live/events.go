package live

import (
	"encoding/json"

	"queuelab/bench/ledger"
)

// tick is what has happened since the last one.
type tick struct {
	N     int         `json:"n"`
	At    float64     `json:"at"` // ms since the show began
	State string      `json:"state"`
	Speed float64     `json:"speed,omitempty"` // when it was changed
	Lanes []*laneTick `json:"lanes"`
}

// laneTick has what is new of one lane; what is absent is as before.
type laneTick struct {
	Lane      int              `json:"lane"`
	State     string           `json:"state,omitempty"`
	Error     string           `json:"error,omitempty"`
	Guarantee *string          `json:"guarantee,omitempty"`
	Queue     string           `json:"queue,omitempty"`
	Available []availability   `json:"available,omitempty"`
	Records   []row            `json:"records,omitempty"`
	Flow      map[string]int64 `json:"flow,omitempty"`
	Lost      []lostRow        `json:"lost,omitempty"`
	Found     []string         `json:"found,omitempty"`
	Doubt     []string         `json:"doubt,omitempty"`
	Structure *structure       `json:"structure,omitempty"`
	Processes []processRow     `json:"processes,omitempty"`
	Counts    *counts          `json:"counts,omitempty"`
	Struck    *[]string        `json:"struck,omitempty"`
	Strikes   []strikeRow      `json:"strikes,omitempty"`
	Ended     *ended           `json:"ended,omitempty"`
}

// row is a record: at, event, process, id, attempt, key, arg.
type row struct {
	at      float64
	event   string
	process uint16
	id      string
	attempt uint16
	key     string
	arg     *int64
}

// MarshalJSON implements json.Marshaler.
func (r row) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{r.at, r.event, r.process, r.id, r.attempt, r.key, r.arg})
}

type lostRow struct{ id, place string }

// MarshalJSON implements json.Marshaler.
func (l lostRow) MarshalJSON() ([]byte, error) { return json.Marshal([]string{l.id, l.place}) }

type processRow struct {
	N      uint16 `json:"n"`
	Role   string `json:"role"`
	Name   string `json:"name"`
	PID    *int   `json:"pid"`
	Alive  bool   `json:"alive"`
	Frozen bool   `json:"frozen"`
	Slow   bool   `json:"slow"`
	Holds  *int   `json:"holds"`
}

type strikeRow struct {
	Name    string  `json:"name"`
	State   string  `json:"state"`
	At      float64 `json:"at"`
	Text    string  `json:"text"`
	Process *uint16 `json:"process"`
}

type availability struct {
	Name      string `json:"name"`
	Available bool   `json:"available"`
	Why       string `json:"why"`
}

// counts are the ledger's, and those that only a lane has. nil is unknown.
type counts struct {
	ledger.Counts
	Delivered            int64  `json:"delivered"`
	Effects              int64  `json:"effects"`
	Acked                int64  `json:"acked"`
	Unheard              int64  `json:"unheard"`
	Overtaken            int64  `json:"overtaken"` // effects after that of a later message of the key
	Missed               *int64 `json:"missed"`    // nil where each message has one consumer
	Waiting              *int64 `json:"waiting"`
	Orders               *int64 `json:"orders"`
	OrdersWithoutMessage *int64 `json:"ordersWithoutMessage"`
}

type ended struct {
	Why      string    `json:"why"`
	Counts   *counts   `json:"counts"`
	Lost     []lostRow `json:"lost"`
	Repeated []string  `json:"repeated"`
	Stranded []string  `json:"stranded"`
	Findings []string  `json:"findings"`
	Valid    bool      `json:"valid"`
}

// structure is what a broker says of its queue. nil is unknown.
type structure struct {
	Kind          string           `json:"kind"`
	Down          bool             `json:"down,omitempty"`
	Key           string           `json:"key,omitempty"`
	Channel       string           `json:"channel,omitempty"`
	Group         string           `json:"group,omitempty"`
	Exchange      string           `json:"exchange,omitempty"`
	Type          string           `json:"type,omitempty"`
	Queue         string           `json:"queue,omitempty"`
	Topic         string           `json:"topic,omitempty"`
	Length        *int64           `json:"length,omitempty"`
	Lag           *int64           `json:"lag,omitempty"`
	LastDelivered string           `json:"lastDelivered,omitempty"`
	Receivers     *int64           `json:"receivers,omitempty"`
	Ready         *int64           `json:"ready,omitempty"`
	Unacked       *int64           `json:"unacked,omitempty"`
	Consumers     *int64           `json:"consumers,omitempty"`
	Processing    []heldRow        `json:"processing,omitempty"`
	Pending       []heldRow        `json:"pending,omitempty"`
	Partitions    []partitionRow   `json:"partitions,omitempty"`
	Extra         map[string]int64 `json:"extra,omitempty"`
}

// heldRow is what a consumer has under its name in the broker.
type heldRow struct {
	Name    string  `json:"consumer"`
	Process *uint16 `json:"process"`
	N       int64   `json:"n"`
}

type partitionRow struct {
	N         int     `json:"n"`
	End       *int64  `json:"end"`
	Committed *int64  `json:"committed"`
	Process   *uint16 `json:"process"`
}

// eventName is an event's on the wire.
func eventName(e ledger.Event) string {
	switch e {
	case ledger.EffectUnknown:
		return "effectUnknown"
	case ledger.DeadLettered:
		return "dead"
	}
	return e.String()
}
