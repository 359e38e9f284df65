package reconcile

import (
	"time"

	"queuelab/app/sale"
	"queuelab/queue"
)

// AccountReport is an Account for programs.
type AccountReport struct {
	ID        sale.ID `json:"id"`
	Title     string  `json:"title"`
	Stock     int64   `json:"stock"`
	Left      int64   `json:"left"`
	Held      int64   `json:"held"`
	Confirmed int64   `json:"confirmed"`
	Paid      int64   `json:"paid"`
	Failed    int64   `json:"failed"`
	Cancelled int64   `json:"cancelled"`
	Refunded  int64   `json:"refunded"`
	GiveBack  int64   `json:"giveBack"`
	// Gate is null where the gate cannot be seen.
	Gate     *GateReport `json:"gate"`
	Balanced bool        `json:"balanced"`
	Wrong    []string    `json:"wrong"` // the equations that do not hold, in words
	Faults   []Fault     `json:"faults"`
}

// Fault is what Wrong says, for who says it in other words.
type Fault struct {
	Kind   Kind     `json:"kind"`
	Facts  []string `json:"facts"` // the numbers of Detail, in their order
	Detail string   `json:"detail"`
}

// GateReport is the gate's part of an AccountReport.
type GateReport struct {
	Loaded bool `json:"loaded"`
	// Stockless: the gate of this mode holds no stock, and Units and Left are 0.
	Stockless bool  `json:"stockless"`
	Units     int64 `json:"units"`
	Left      int64 `json:"left"`
	Buyers    int64 `json:"buyers"`
	InFlight  int64 `json:"inFlight"` // orders that are not known to be decided
}

// QueueReport is what a queue tells of itself; null is what it does not tell.
type QueueReport struct {
	Ready    *int64 `json:"ready"`
	InFlight *int64 `json:"inFlight"`
	Dead     *int64 `json:"dead"`
}

// DriftReport is a Drift for programs.
type DriftReport struct {
	Kind      Kind      `json:"kind"`
	VoucherID sale.ID   `json:"voucherId"`
	OrderID   *sale.ID  `json:"orderId"` // null: it is about the voucher
	Detail    string    `json:"detail"`
	Facts     []string  `json:"facts"` // the numbers and names of Detail, in their order
	Since     time.Time `json:"since"`
	Done      string    `json:"done"`     // what was done about it; empty: nothing yet
	Did       Step      `json:"did"`      // Done for programs
	DidFacts  []string  `json:"didFacts"` // likewise
}

// ReportAccounts is never null in JSON, like the others.
func ReportAccounts(as []Account) []AccountReport {
	out := make([]AccountReport, len(as))
	for i, a := range as {
		wrong := a.Wrong()
		out[i] = AccountReport{ID: a.ID, Title: a.Title, Stock: a.Stock, Left: a.Left, Held: a.Held(), Confirmed: a.Confirmed, Paid: a.Paid,
			Failed: a.Failed, Cancelled: a.Cancelled, Refunded: a.Refunded, GiveBack: a.GiveBack,
			Balanced: len(wrong) == 0, Wrong: append([]string{}, wrong...), Faults: []Fault{}}
		for _, d := range a.Faults() {
			out[i].Faults = append(out[i].Faults, Fault{Kind: d.Kind, Facts: append([]string{}, d.Facts...), Detail: d.Detail})
		}
		if g := a.Gate; g != nil {
			out[i].Gate = &GateReport{Loaded: g.Loaded, Units: g.Units, Left: g.Left, Buyers: g.Buyers, InFlight: g.Marks}
			if g.Stockless() {
				out[i].Gate.Stockless, out[i].Gate.Units, out[i].Gate.Left = true, 0, 0
			}
		}
	}
	return out
}

// ReportQueue is nil where the queue cannot tell.
func ReportQueue(b *queue.Backlog) *QueueReport {
	if b == nil {
		return nil
	}
	told := func(n int64) *int64 {
		if n < 0 {
			return nil
		}
		return &n
	}
	return &QueueReport{Ready: told(b.Ready), InFlight: told(b.InFlight), Dead: told(b.Dead)}
}

// ReportDrift tells of differences in their order.
func ReportDrift(ds []Drift) []DriftReport {
	out := make([]DriftReport, len(ds))
	for i, d := range ds {
		out[i] = DriftReport{Kind: d.Kind, VoucherID: d.Voucher, Detail: d.Detail, Facts: append([]string{}, d.Facts...),
			Since: d.Since.UTC(), Done: d.Done, Did: d.Did, DidFacts: append([]string{}, d.DidFacts...)}
		if d.Order != 0 {
			out[i].OrderID = &d.Order
		}
	}
	return out
}
