package fault

import (
	"context"
	"os"
	"time"

	"queuelab/bench/broker"
	"queuelab/queue"
)

// Fault is one way in which things go wrong during a trial, with how it is
// injected, confirmed and healed. Each is a file of this package.
type Fault struct {
	Name    string
	Summary string // one line for people
	// Trials is how many screen a cell of it: fewer where a named place makes the
	// outcome certain. 0: as many as the campaign has for what chance decides.
	Trials int
	// Alone is set where it takes timings, or starves the machine: nothing else
	// may run beside it.
	Alone bool
	// Storage is set where the broker's files must be on a file system that can
	// lose power, fsync slowly or be full: see broker.Storage.
	Storage bool
	// Network is set where the nodes of the broker must be in networks of their own:
	// see broker.Options.Network.
	Network bool
	// OwnDatabase is set where it strikes the database that effects are committed
	// to, which other trials share otherwise.
	OwnDatabase bool
	// OwnBroker is set where it kills, stops or fills the broker: one that was
	// given by URL is left alone.
	OwnBroker bool
	// EmptyHand is set where the victim holds nothing by design.
	EmptyHand bool
	// Means says why the fault means nothing to such a target; "" where it does.
	// nil: it means something to all.
	Means func(Target) string
	// Missing says what this machine lacks for it; "" where it lacks nothing.
	// nil: it needs nothing.
	Missing func() string
	// Run carries the fault out: load, Asked, the injection, Confirmed, the
	// heal, Healed, and in the end Scene.Finish. Whatever keeps the trial from
	// proving something is told to Scene.Invalid; an error says that the lab
	// failed. What was injected is undone also when ctx ends.
	Run func(ctx context.Context, s Scene) error
}

// Target is the queue that a fault strikes.
type Target struct {
	Backend string // as in backends.All
	Setting string // backend/setting
	Broker  string // the broker program: "", "redis", "rabbitmq", "kafka"
	Scheme  string // of the queue's URL
	Caps    queue.Capabilities
	// Messages is how many the trial publishes before or while the fault
	// strikes, at Rate a second where that is open.
	Messages uint64
	Rate     float64
	Lease    time.Duration // after which what a silent consumer holds comes again; 0: there is none
}

// Scene is a trial under way, as a fault sees it: it starts processes, breaks
// them and says so in the ledger.
type Scene interface {
	Target() Target
	// Broker is the one that the queue is on; nil for a queue in a process.
	Broker() *broker.Broker
	// Database is the PostgreSQL that effects are committed to; nil where they
	// are not.
	Database() *broker.Broker
	// DatabaseURL is the URL that consumers commit effects to; addr as in QueueURL.
	DatabaseURL(addr string) string
	// Moment is where in its cycle this trial's fault strikes, in [0, 1): the
	// trials of a cell are spread evenly over it, in an order by chance.
	Moment() float64
	// QueueURL is the URL of the trial's queue. extra are parameters to add;
	// addr, where it is not "", is the host:port to connect to instead of the
	// broker's own, as of a proxy.
	QueueURL(addr string, extra ...string) string
	// Queue is the queue opened by the harness, to look into and to prepare; nil
	// for a queue in a process.
	Queue() queue.Queue

	// Start starts a process and returns once it is ready.
	Start(ctx context.Context, r Role) (Node, error)

	// Settle waits until what was declared is as durable as it gets, so that the
	// trial is about messages. To be called before the load.
	Settle(ctx context.Context) error
	// Freeze waits until the backlog, with no consumer, stands still, and notes it
	// as what was at stake. It returns how many messages wait.
	Freeze(ctx context.Context) (int64, error)
	// Written waits until the broker has handed to the operating system all that
	// it confirmed, where it answers before it writes.
	Written(ctx context.Context) error
	// Delivered waits until at least n deliveries are in the ledger.
	Delivered(ctx context.Context, n int64) error
	// Accepted is how many messages the ledgers say were accepted until now.
	Accepted() (int64, error)
	// AcceptedIDs are the ids of those messages.
	AcceptedIDs() (map[string]bool, error)

	// Asked, Confirmed and Healed are the fault's events in the ledger.
	Asked()
	Confirmed()
	Healed()
	// StruckAt is the instant of the fault, as of ledger.Now, from a fault that
	// knows it better than by Confirmed: the age of a loss counts back from it.
	StruckAt(at int64)

	// Probe publishes a few messages by a second producer, after the heal: a
	// broker that takes none proves nothing by its silence.
	Probe(ctx context.Context) (Node, error)
	// Finish waits for the producers, then for the queue to run dry, then stops
	// whatever still runs.
	Finish(ctx context.Context, producers ...Node) error

	// Facts are what the oracle's bounds are computed from, beside what the
	// ledger tells.
	Facts() *Facts
	// Invalid says why the trial proves nothing.
	Invalid(format string, args ...any)
	// Note says what else was seen, for the trial's record.
	Note(format string, args ...any)
}

// Role is what a process of a trial is to be: a producer, a consumer, or both.
type Role struct {
	Producer *Producer
	Consumer *Consumer
	// QueueURL of this process; "" is the trial's own.
	QueueURL string
	// Victim is set where the fault strikes this process: what it holds at
	// that moment is at stake.
	Victim bool
}

// Producer publishes when it is told to.
type Producer struct {
	Count uint64
	Rate  float64 // messages a second, open loop; 0: half of the target's
	// Payload is how many bytes a message has; 0: as many as the trial's.
	Payload int
	// Retries is how often a publish that ended unknown is tried again by us,
	// with the same id.
	Retries int
}

// Consumer handles one message after the other: delivered, effect, ack.
type Consumer struct {
	Point       string // where it kills itself with SIGKILL; see Point
	Nth         int64  // at which pass
	HandleDelay time.Duration
	// Effects is the URL of its database, as of a proxy; "" is the trial's own.
	Effects string
	// CommitTimeout is how long a commit is waited for; 0: 10 s.
	CommitTimeout time.Duration
	// Poison makes the handler fail for the message with this sequence number,
	// each time that it comes; 0: none.
	Poison uint64
}

// Node is a process of a trial.
type Node interface {
	// Produce begins to publish, and returns at once.
	Produce() error
	// Produced waits until all is published.
	Produced(ctx context.Context) error
	// Struck waits for the node's own death at its crash point, and confirms
	// that it was SIGKILL.
	Struck(ctx context.Context) error
	// Signal sends a signal and, for SIGSTOP, SIGCONT and SIGKILL, waits until
	// the kernel shows what it is for.
	Signal(s os.Signal) error
	// Stop lets it finish what it has in hand, and ends it.
	Stop(ctx context.Context) error
}

// Facts are what a bound is computed from: sums over the valid trials of a cell.
type Facts struct {
	Backlog int64 // accepted messages that the victim held, frozen, when it was killed; not those in a consumer's hand
	// InHand is the deliveries that the killed consumers had received and not
	// settled, and InHandDone those of them whose effect was committed. For a
	// batch every delivery counts.
	InHand, InHandDone int64
	Buffer             int64 // at most so many messages were in the killed consumers' client libraries and sockets, taken in advance
	Pops               int64 // consumers that were blocked in a pop when the broker was killed
	// Published is the messages accepted while perhaps nobody was subscribed;
	// Unheard those of them that certainly nobody heard: the queue said so, or
	// there was no subscriber at all.
	Published, Unheard int64
	Unacked            int64 // delivered and not settled, by all consumers, when the broker was killed
	SinceCommit        int64 // delivered since the last committed offset, by all consumers; at least Unacked and InHand is assumed
	Killed             int64 // consumer processes that were killed

	// Recent is the messages accepted within the broker's own promise before the
	// fault: see Window.
	Recent int64
	// Window is how long before the fault that began, in ms, the longest of the
	// trials: the broker's interval and what the disk took.
	Window int64
	Doubts int64 // effects whose commit had no answer: each may stand beside that of the next attempt
	Events int64 // single events injected, such as replies cut off
	Over   int64 // messages beyond what a limit holds
	Copies int64 // consumers that each get everything
	// Unusable is the messages that were accepted by a queue that never came back,
	// though its broker did.
	Unusable int64
	// DirtyBytes were written and not synced when the power went; a trial with
	// none says nothing about power.
	DirtyBytes int64
	// CrashLost is what the same instant would have lost, had only the process
	// died. CrashUnknown is the trials of which that is not known, and not in it.
	CrashLost, CrashUnknown int64
}

// Add adds the facts of another trial.
func (f *Facts) Add(g Facts) {
	f.Backlog += g.Backlog
	f.InHand += g.InHand
	f.InHandDone += g.InHandDone
	f.Buffer += g.Buffer
	f.Pops += g.Pops
	f.Published += g.Published
	f.Unheard += g.Unheard
	f.Unacked += g.Unacked
	f.SinceCommit += g.SinceCommit
	f.Killed += g.Killed
	f.Recent += g.Recent
	f.Window = max(f.Window, g.Window)
	f.Doubts += g.Doubts
	f.Events += g.Events
	f.Over += g.Over
	f.Copies = max(f.Copies, g.Copies)
	f.Unusable += g.Unusable
	f.DirtyBytes += g.DirtyBytes
	f.CrashLost += g.CrashLost
	f.CrashUnknown += g.CrashUnknown
}
