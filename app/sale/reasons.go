package sale

// Why an order failed, or is over.
const (
	ReasonSoldOut       = "sold_out"       // the database had no unit left
	ReasonAlreadyBought = "already_bought" // the buyer has another confirmed order
	ReasonNoVoucher     = "not_found"      // there is no such voucher
	ReasonIDTaken       = "id_taken"       // another reservation had the same order id
	ReasonUnpaid        = "unpaid"         // the time to pay ended
	ReasonByBuyer       = "by_buyer"       // the buyer cancelled it
	ReasonByOperator    = "by_operator"    // an operator refunded it
	ReasonUndeliverable = "undeliverable"  // every attempt to decide it failed
	ReasonDiscarded     = "discarded"      // an operator discarded its message
	ReasonLost          = "lost"           // its unit was held for it, and nothing else was left of it
)

// Why a payment pays nothing.
const (
	ReasonTooLate = "too_late"     // the order is cancelled, or its time to pay has ended
	ReasonPaid    = "already_paid" // another payment pays it
	ReasonNotSold = "not_sold"     // the order failed
)

// Reasons lists all of them: a page needs words for each.
func Reasons() []string {
	return []string{ReasonSoldOut, ReasonAlreadyBought, ReasonNoVoucher, ReasonIDTaken, ReasonUnpaid, ReasonByBuyer, ReasonByOperator,
		ReasonUndeliverable, ReasonDiscarded, ReasonLost, ReasonTooLate, ReasonPaid, ReasonNotSold}
}
