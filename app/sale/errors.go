package sale

import (
	"errors"
	"time"
)

// Code is what a program reads of a refusal; the message is for people.
type Code string

const (
	CodeSoldOut       Code = "sold_out"
	CodeAlreadyBought Code = "already_bought"
	CodeNotStarted    Code = "not_started"
	CodeEnded         Code = "ended"
	CodeNotFound      Code = "not_found"
	CodeBusy          Code = "busy" // nothing was bought; try again later
	CodeInvalid       Code = "invalid"
	CodeTooLate       Code = "too_late"     // the payment was kept, and its money is to go back
	CodeAlreadyPaid   Code = "already_paid" // likewise
	CodeWrongState    Code = "wrong_state"  // what was asked for does not fit where the order stands
)

// Error is a refusal. Any other error is a failure of ours.
type Error struct {
	Code       Code
	Message    string
	OrderID    ID            // the order that the buyer has, with CodeAlreadyBought
	RetryAfter time.Duration // with CodeBusy
	cause      error
}

func (e *Error) Error() string {
	if e.cause != nil {
		return string(e.Code) + ": " + e.Message + ": " + e.cause.Error()
	}
	return string(e.Code) + ": " + e.Message
}

func (e *Error) Unwrap() error { return e.cause }

// CodeOf returns the code of a refusal, or "" when err is none.
func CodeOf(err error) Code {
	if err == nil {
		return "" // which costs nothing: most clicks ask
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// NotFound is the refusal for what does not exist.
func NotFound(message string) error { return &Error{Code: CodeNotFound, Message: message} }

// NoVoucher is the refusal for a voucher that does not exist.
func NoVoucher() error {
	return NotFound("no such voucher: GET /api/vouchers lists those that there are")
}

// NoOrder is the refusal for an order that does not exist, or is somebody else's.
func NoOrder() error { return NotFound("no such order: GET /api/orders lists yours") }

// NotYet is the refusal before a sale; of a voucher that is not known, whose id is
// 0, it does not say when it opens.
func NotYet(v Voucher) error {
	when := "GET /api/vouchers says when"
	switch {
	case v.ID == 0:
	case v.Signal:
		when = "it opens by a signal, not before " + v.Begin.UTC().Format(time.RFC3339)
	default:
		when = "it opens at " + v.Begin.UTC().Format(time.RFC3339)
	}
	return &Error{Code: CodeNotStarted, Message: "the sale has not started yet: " + when}
}

// Over is the refusal after a sale.
func Over() error {
	return &Error{Code: CodeEnded, Message: "the sale has ended: GET /api/vouchers lists what is on sale"}
}

func invalid(message string) error { return &Error{Code: CodeInvalid, Message: message} }

// busy hides the cause from the buyer and keeps it for the log.
func busy(message string, cause error) error {
	return &Error{Code: CodeBusy, Message: message, RetryAfter: time.Second, cause: cause}
}
