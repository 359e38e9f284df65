// Package ledger is the append-only record of what happened to every message,
// and the verdicts drawn from it.
package ledger

// Counts is the ledger's account of every message.
type Counts struct {
	Sent               int64 `json:"sent"`
	Accepted           int64 `json:"accepted"`
	Rejected           int64 `json:"rejected"`
	Unknown            int64 `json:"unknown"`
	Unconfirmed        int64 `json:"unconfirmed"` // accepted where nobody confirms
	Lost               int64 `json:"lost"`        // accepted, and no effect, and nowhere to be found
	Recovered          int64 `json:"recovered"`   // unknown, yet delivered
	Phantom            int64 `json:"phantom"`     // delivered, never sent
	RejectedDelivered  int64 `json:"rejectedDelivered"`
	Redelivered        int64 `json:"redelivered"`        // deliveries beyond the first of a copy
	ProducerDuplicates int64 `json:"producerDuplicates"` // copies beyond the first, made by retries
	EffectDuplicates   int64 `json:"effectDuplicates"`   // effects beyond the first, had nobody made them unique
	Reordered          int64 `json:"reordered"`          // first deliveries that came after that of a later message of their key
	Stranded           int64 `json:"stranded"`           // still in the broker after the drain's deadline
	DeadLettered       int64 `json:"deadLettered"`
	PolicyDropped      int64 `json:"policyDropped"` // dropped by a limit, and reported by the queue
}
