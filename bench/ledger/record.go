package ledger

import (
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
)

// Event is what a record says about a message, or about a fault.
type Event uint8

// The events. Their order of writing is what makes them evidence: an intent
// comes before the send, a delivery before the handler sees it, an effect after
// its commit, an ack after the queue's nil. A later record that is absent then
// says that the process was killed in between. EffectUnknown says that a commit
// got no answer: the effect may exist, beside that of the next attempt.
// DeadLettered says that a consumer gave a message up, before its ack.
const (
	Intent Event = 1 + iota
	Accepted
	Rejected
	Unknown
	Delivered
	Effect
	Acked
	Nacked
	EffectUnknown
	DeadLettered
	FaultAsked
	FaultConfirmed
	FaultHealed
	endOfEvents
)

func (e Event) String() string {
	names := [...]string{"unwritten", "intent", "accepted", "rejected", "unknown", "delivered", "effect",
		"acked", "nacked", "effect unknown", "dead-lettered", "fault asked", "fault confirmed", "fault healed"}
	if int(e) < len(names) {
		return names[e]
	}
	return fmt.Sprintf("event %d", uint8(e))
}

// Record is one line of a ledger.
type Record struct {
	Event       Event
	Attempt     uint16 // of a delivery: Delivery.Attempt; 0 where the queue does not count
	Process     uint16 // the Writer's
	Producer    uint16
	Incarnation uint16
	Trial       uint32
	Seq         uint64
	At          int64 // as of Now
	Due         int64 // of an intent: when the message should have been sent, as of Now
	// Arg is, by event:
	//   intent: the number of its Publish call, where that carried more than one message; messages of one call are in order
	//   accepted: receivers+1 where the queue tells them (1: nobody heard it); 0 where it does not
	//   delivered, acked, nacked: the consumer, counted from 1 within its process
	//   fault events: free
	Arg uint32
}

// ID returns the id of the record's message.
func (r Record) ID() ID {
	return ID{Trial: r.Trial, Producer: r.Producer, Incarnation: r.Incarnation, Seq: r.Seq}
}

// ID identifies a message: unique over the trials of a run, and dense per
// incarnation of a producer.
type ID struct {
	Trial       uint32
	Producer    uint16
	Incarnation uint16
	Seq         uint64
}

func (id ID) String() string { return FormatID(id) }

// foreignTrial marks ids that no ledger issued; their Seq is a hash of the id.
const foreignTrial = math.MaxUint32

// FormatID returns the id as a message carries it, for example "7-1-0-123":
// trial, producer, incarnation, sequence number.
func FormatID(id ID) string {
	b := make([]byte, 0, 48)
	b = strconv.AppendUint(b, uint64(id.Trial), 10)
	b = append(b, '-')
	b = strconv.AppendUint(b, uint64(id.Producer), 10)
	b = append(b, '-')
	b = strconv.AppendUint(b, uint64(id.Incarnation), 10)
	b = append(b, '-')
	b = strconv.AppendUint(b, id.Seq, 10)
	return string(b)
}

// ParseID reads what FormatID wrote. Any other spelling of the same numbers is
// an error, so that one message never has two ids.
func ParseID(s string) (ID, error) {
	id, err := parseID(s)
	if err == nil && id.Trial == foreignTrial {
		return ID{}, fmt.Errorf("message id %q: trial %d is reserved", s, id.Trial)
	}
	return id, err
}

func parseID(s string) (ID, error) {
	var fields [4]uint64
	rest := s
	for i, most := range [...]uint64{math.MaxUint32, math.MaxUint16, math.MaxUint16, math.MaxUint64} {
		var ok bool
		if fields[i], rest, ok = cutNumber(rest, most); !ok {
			return ID{}, fmt.Errorf("message id %q: field %d is not a number up to %d", s, i+1, most)
		}
		if i == 3 {
			break
		}
		if rest == "" || rest[0] != '-' {
			return ID{}, fmt.Errorf("message id %q: want trial-producer-incarnation-seq", s)
		}
		rest = rest[1:]
	}
	if rest != "" {
		return ID{}, fmt.Errorf("message id %q: has more than four numbers", s)
	}
	return ID{Trial: uint32(fields[0]), Producer: uint16(fields[1]), Incarnation: uint16(fields[2]), Seq: fields[3]}, nil
}

// cutNumber cuts a decimal number up to most from s. It is written by hand, as
// every record parses an id.
func cutNumber(s string, most uint64) (n uint64, rest string, ok bool) {
	i := 0
	for ; i < len(s) && s[i]-'0' <= 9; i++ {
		d := uint64(s[i] - '0')
		if n > (most-d)/10 {
			return 0, s, false
		}
		n = n*10 + d
	}
	return n, s[i:], i == 1 || i > 1 && s[0] != '0'
}

// idOf is ParseID for ids that may come from anywhere: a foreign one still gets
// an identity of its own, so that it shows as a phantom. What FormatID makes of
// a foreign id is that id again.
func idOf(s string) ID {
	id, err := parseID(s)
	if err != nil {
		h := fnv.New64a()
		h.Write([]byte(s))
		return ID{Trial: foreignTrial, Seq: h.Sum64()}
	}
	return id
}
