package reconcile

import (
	"time"

	"queuelab/app/sale"
)

// Kind names how gate, queue and database differ.
type Kind string

// Those of the database are certain at the first look, and nothing repairs
// them: the database is the truth, so somebody must find out who changed it.
const (
	// Oversold: more orders have a unit than there are.
	Oversold Kind = "oversold"
	// SoldTwice: two orders have the same unit of a buyer.
	SoldTwice Kind = "unit_sold_twice"
	// StockSumDiffers: the units left and the orders that have one are not the stock.
	StockSumDiffers Kind = "stock_sum_differs"
	// DatabasesDiffer: the database of the stock has other units left than the one of
	// the orders, and nothing is on its way between them.
	DatabasesDiffer Kind = "databases_differ"
)

// Those of the gate are what an order's way looks like between two steps, for a
// moment; what stands is drift.
const (
	// GateNotLoaded: a voucher is on sale and its gate does not know it.
	GateNotLoaded Kind = "gate_not_loaded"
	// GateUnreadable: the gate holds something of the voucher that nobody can read.
	GateUnreadable Kind = "gate_unreadable"
	// UnitsDiffer: gate and database disagree about how many units there were.
	UnitsDiffer Kind = "units_differ"
	// StockDiffers: the gate's units left are not those that nobody holds.
	StockDiffers Kind = "stock_differs"
	// OrderWithoutBuyer: an order has a unit, and the gate holds none for it: it
	// could be sold again.
	OrderWithoutBuyer Kind = "order_without_buyer"
	// ClosedOrderHolds: the gate holds a unit for an order that has none: nobody
	// can buy it.
	ClosedOrderHolds Kind = "closed_order_still_holds"
	// BuyerWithoutOrder: the gate holds a unit for an order that neither the
	// database nor a mark knows: nobody will ever decide it.
	BuyerWithoutOrder Kind = "buyer_without_order_or_mark"
	// MarkWithoutBuyer: an order waits for its decision, and another one holds its
	// unit, or none.
	MarkWithoutBuyer Kind = "mark_without_buyer"
	// MarkOfDecided: an order is decided and counts as in flight all the same.
	MarkOfDecided Kind = "mark_of_decided_order"
	// MarkUnreadable: nobody can read the mark, so no rescan publishes its order.
	MarkUnreadable Kind = "mark_unreadable"
	// OrderWaits: an order waits for its decision, longer than any should.
	OrderWaits Kind = "order_waits"
)

// Kinds lists them all.
func Kinds() []Kind {
	return []Kind{Oversold, SoldTwice, StockSumDiffers, DatabasesDiffer, GateNotLoaded, GateUnreadable, UnitsDiffer, StockDiffers, OrderWithoutBuyer,
		ClosedOrderHolds, BuyerWithoutOrder, MarkWithoutBuyer, MarkOfDecided, MarkUnreadable, OrderWaits}
}

// Step names what was done about a difference.
type Step string

const (
	AskedToLoad Step = "asked_to_load" // the voucher is to be loaded into the gate
	Held        Step = "held"          // the gate holds the unit for the order; its status
	GaveBack    Step = "gave_back"     // the gate gave the unit back; the order's status
	ToBeFound   Step = "to_be_found"   // a rescan finds the order again
	Republished Step = "republished"   // the order's message is in the queue again
	Levelled    Step = "levelled"      // the gate's units left were changed; by how many
	UnitsSet    Step = "units_set"     // so were its units of the beginning; how many those are, and that change
	Dropped     Step = "dropped"       // what nobody can read was removed; how much
	NotDone     Step = "not_done"      // it failed; why, in English
)

// Steps lists them all.
func Steps() []Step {
	return []Step{AskedToLoad, Held, GaveBack, ToBeFound, Republished, Levelled, UnitsSet, Dropped, NotDone}
}

// Uneven is a Kind of Account.Faults alone: the gate's buyers are not the orders
// that have a unit, though nothing is in flight. Drift then says which.
const Uneven Kind = "buyers_differ"

// Sure reports whether one look is enough: the numbers are all of one moment.
func (k Kind) Sure() bool {
	return k == Oversold || k == SoldTwice || k == StockSumDiffers || k == DatabasesDiffer
}

// Drift is one difference.
type Drift struct {
	Kind    Kind
	Voucher sale.ID
	Order   sale.ID // 0: it is about the voucher
	Detail  string  // in words
	// Facts are the numbers and names of Detail, in their order, for who says it in
	// other words: those of one kind are always the same ones.
	Facts []string
	Since time.Time
	// Done is what was done about it, in words; "" is nothing yet.
	Done     string
	Did      Step // Done for programs; its Facts are DidFacts
	DidFacts []string

	reservation sale.Reservation // of Order, as far as it is known
	scraps      []sale.Scrap     // that it is about
}

// key is what makes two findings the same one.
type key struct {
	kind           Kind
	voucher, order sale.ID
}

func (d Drift) key() key { return key{d.Kind, d.Voucher, d.Order} }
