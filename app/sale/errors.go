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

func invalid(message string) error { return &Error{Code: CodeInvalid, Message: message} }

// busy hides the cause from the buyer and keeps it for the log.
func busy(message string, cause error) error {
	return &Error{Code: CodeBusy, Message: message, RetryAfter: time.Second, cause: cause}
}
