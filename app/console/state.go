// Package console reads what the operator's page shows: one picture of gate,
// queue, database and instances. What cannot be read is null in it, never 0.
package console

import (
	"time"

	"queuelab/app/fleet"
	"queuelab/app/reconcile"
	"queuelab/app/sale"
)

// State is the picture.
type State struct {
	At       time.Time `json:"at"`
	Instance int       `json:"instance"` // the number of the one that answers
	Lab      bool      `json:"lab"`      // workers can be killed
	// Failed names what did not answer: database, gate, queue.
	Failed []string `json:"failed"`

	Stockless bool                       `json:"stockless"` // the gate holds no stock in this mode
	Queue     Queue                      `json:"queue"`
	InFlight  *int64                     `json:"inFlight"` // orders without a known decision, of all vouchers
	Oldest    *Age                       `json:"oldest"`   // the longest wait of these; null: unknown, or nobody waits
	Total     Funnel                     `json:"total"`
	Vouchers  []Voucher                  `json:"vouchers"` // the newest first
	More      bool                       `json:"more"`     // there are older ones
	Letters   map[sale.LetterState]int64 `json:"letters"`
	Instances []Instance                 `json:"instances"`
}

// Queue is what the queue tells of itself.
type Queue struct {
	Name string `json:"name"`
	Used bool   `json:"used"` // false: this mode sells without one
	// Tells is false where the queue has no way to be asked.
	Tells bool                   `json:"tells"`
	Depth *reconcile.QueueReport `json:"depth"` // null: it does not tell, or did not answer
}

// Age is how long somebody waits.
type Age struct {
	Millis int64 `json:"ms"`
	// AtLeast: there were too many to look at all of them.
	AtLeast bool `json:"atLeast"`
}

// Funnel is how far clicks came. Each number counts all that came at least so
// far, also those that later failed, were cancelled or refunded.
type Funnel struct {
	Clicked   *int64 `json:"clicked"`
	Admitted  *int64 `json:"admitted"`
	Queued    *int64 `json:"queued"` // null also where there is no queue
	Committed *int64 `json:"committed"`
	Paid      *int64 `json:"paid"`
	// Refused says why clicks were not admitted; null: nobody counted.
	Refused *Refused `json:"refused"`
}

// Refused counts clicks that came to nothing.
type Refused struct {
	SoldOut       int64 `json:"soldOut"`
	AlreadyBought int64 `json:"alreadyBought"`
	Busy          int64 `json:"busy"`
}

// Voucher is one sale.
type Voucher struct {
	reconcile.AccountReport
	Begin       time.Time  `json:"beginTime"`
	End         time.Time  `json:"endTime"`
	PayValue    int64      `json:"payValue"`
	ActualValue int64      `json:"actualValue"`
	PayWithin   int64      `json:"payWithinSeconds"`
	PerUser     int        `json:"perUser"`
	MaxInFlight int64      `json:"maxInFlight"`
	BySignal    bool       `json:"bySignal"` // it opens by the start signal
	OpenAt      *time.Time `json:"openAt"`   // when that is due; null: when the operator gives it
	Opened      *time.Time `json:"opened"`   // when it was given; null: not yet
	Funnel      Funnel     `json:"funnel"`
}

// Instance is one process of the service.
type Instance struct {
	Number  int          `json:"number"`
	Name    string       `json:"name"`
	Role    string       `json:"role"`
	Version string       `json:"version"`
	Queue   string       `json:"queue"`
	Health  fleet.Health `json:"health"`
	Failing []string     `json:"failing"`
	Up      int64        `json:"upSeconds"`
	Silent  int64        `json:"silentSeconds"`
}

func instancesOf(is []fleet.Instance) []Instance {
	out := make([]Instance, len(is))
	for n, i := range is {
		out[n] = Instance{Number: i.Number, Role: i.Role, Version: i.Version, Queue: i.Queue, Name: i.Name, Health: i.Health(),
			Failing: append([]string{}, i.Failing...), Up: int64(i.Up.Seconds()), Silent: int64(i.Silent.Seconds())}
	}
	return out
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func voucherOf(a reconcile.Account, f Funnel) Voucher {
	return Voucher{AccountReport: reconcile.ReportAccounts([]reconcile.Account{a})[0], Begin: a.Begin.UTC(), End: a.End.UTC(),
		PayValue: a.PayValue, ActualValue: a.ActualValue, PayWithin: int64(a.PayWithin / time.Second), PerUser: a.PerUser, MaxInFlight: a.MaxInFlight,
		BySignal: a.Signal, OpenAt: moment(a.OpenAt), Opened: moment(a.Opened), Funnel: f}
}
