package queue

// Guarantee is what a queue promises about an accepted message once a
// consumer has it.
type Guarantee int

const (
	// AtMostOnce: delivering removes. A consumer that dies loses what it held.
	AtMostOnce Guarantee = iota
	// AtLeastOnce: only an ack removes. What a dead consumer held comes again.
	AtLeastOnce
)

func (g Guarantee) String() string {
	if g == AtLeastOnce {
		return "at least once"
	}
	return "at most once"
}

// Confirm names who had an accepted message when Publish returned nil.
type Confirm int

const (
	// ConfirmNone: nobody answered; the message was written to a socket, or to
	// whoever happened to listen.
	ConfirmNone Confirm = iota
	// ConfirmMemory: the memory of the queue's process.
	ConfirmMemory
	// ConfirmOS: the operating system of the broker's host. It survives a
	// killed broker, but not a power cut.
	ConfirmOS
	// ConfirmDisk: the broker's disk, synced.
	ConfirmDisk
	// ConfirmReplicas: more than one node, as many as the setting asks for.
	ConfirmReplicas
)

func (c Confirm) String() string {
	return [...]string{"nobody", "memory", "operating system", "disk", "replicas"}[c]
}

// AttemptCounter names who counts the deliveries of one message.
type AttemptCounter int

const (
	// NotCounted: Delivery.Attempt is always 0.
	NotCounted AttemptCounter = iota
	// CountedByBroker: Delivery.Attempt is 1 for the first delivery and grows,
	// also across crashes of consumers.
	CountedByBroker
	// FlaggedByBroker: the broker tells a first delivery (1) from a later one
	// (2), and no more. The flag may be set on a message never delivered.
	FlaggedByBroker
)

func (a AttemptCounter) String() string {
	return [...]string{"not counted", "counted by the broker", "flagged by the broker"}[a]
}

// Capabilities is what an open queue promises, true for its settings. The
// conformance suite tests each claim, and the absence of what is not claimed.
type Capabilities struct {
	Guarantee     Guarantee
	Confirm       Confirm
	AckConfirmed  bool           // a nil Ack was answered by the broker, not merely written to a socket
	Attempts      AttemptCounter // who fills in Delivery.Attempt
	Broadcast     bool           // every consumer gets every message; otherwise consumers compete
	Groups        bool           // consumer groups: each gets everything, consumers within one compete
	Nack          bool           // Nack makes a delivery available again at once
	OrderedPerKey bool           // one consumer sees one key's messages in publish order
	Stored        bool           // messages wait for a consumer that does not exist yet
	Durable       bool           // accepted messages survive kill -9 of the broker
	Shared        bool           // other processes can open the same queue
	Bounded       bool           // a full queue blocks or rejects, instead of growing
	DropsOldest   bool           // a full queue makes room by dropping its oldest messages, accepted as they are
	LeaseFenced   bool           // a settle by a consumer that lost its lease is ErrLeaseLost
	PopGap        bool           // what a consumer takes is nowhere else until it has written it down: killed in between, it loses it in spite of the guarantee
	Replay        bool           // the queue is a Replayer
	Routing       bool           // messages are routed by Key: a handle opened with bind=KEY gets those of that key only
	MayStrand     bool           // a message may lie in the queue while a consumer waits, until the next one is published
	Skips         bool           // an open consumer is not given what is published while no Receive waits
}

// Lossy reports whether an accepted message can be lost by killing one
// process with SIGKILL: a consumer, the broker, or the queue's own process; or
// by nothing more than a backlog.
func (c Capabilities) Lossy() bool {
	return c.Guarantee != AtLeastOnce || !c.Durable || c.Confirm < ConfirmOS || c.DropsOldest || c.PopGap
}
