package sale

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The bounds of a voucher. They keep sums of money and of stock far from the
// limits of 63 bits, and of the 53 bits that Lua and JavaScript count exactly.
const (
	MaxTitle = 200             // characters
	MaxStock = 10_000_000      // units
	MaxMoney = 100_000_000_000 // cents
	// MaxPayWithin is the longest time to pay.
	MaxPayWithin = 30 * 24 * time.Hour
	// MaxPerUser is the most units that one buyer may be allowed.
	MaxPerUser = 10
	// MaxBuckets is the most parts that a voucher's stock may be in.
	MaxBuckets = 64
)

// Offer is what an operator asks to sell.
type Offer struct {
	Title       string
	Stock       int64
	PayValue    int64
	ActualValue int64
	Begin, End  time.Time
	PayWithin   time.Duration // 0: no deadline
	PerUser     int           // units that one buyer may have; 0: one
	MaxInFlight int64         // orders that may wait for their decision at a time, beyond which buyers are told to come again; 0: that of the Service
	// Buckets is how many parts the stock is kept in, so that the clicks on a hot
	// voucher are shared by the nodes of a Redis Cluster; 0: one. It is for the
	// voucher's life. MaxInFlight is divided among them.
	Buckets int
	Start   StartBy
	// OpenFrom and OpenTo, for a start by signal: it is given at a random moment
	// between the two, or at OpenFrom where OpenTo is zero. Both zero: the operator
	// gives it.
	OpenFrom, OpenTo time.Time
}

// Validate says what is wrong with an offer, in one sentence: an *Error with
// CodeInvalid.
func (o Offer) Validate() error {
	switch {
	case !strings.ContainsFunc(o.Title, visible):
		return invalid("title is missing, or nothing of it can be seen")
	case !utf8.ValidString(o.Title) || strings.ContainsFunc(o.Title, hides):
		return invalid("title has characters that cannot be shown")
	case utf8.RuneCountInString(o.Title) > MaxTitle:
		return invalid("title is longer than 200 characters")
	case o.Stock < 1 || o.Stock > MaxStock:
		return invalid("stock must be from 1 to 10000000")
	case o.PayValue < 0 || o.PayValue > MaxMoney:
		return invalid("payValue must be from 0 to 100000000000 cents")
	case o.ActualValue < 0 || o.ActualValue > MaxMoney:
		return invalid("actualValue must be from 0 to 100000000000 cents")
	case o.Begin.IsZero() || o.End.IsZero():
		return invalid("beginTime and endTime are needed, as in 2026-11-11T00:00:00+08:00")
	case o.Begin.Year() < 2000 || o.End.Year() > 2200:
		return invalid("beginTime and endTime must be between the years 2000 and 2200")
	case o.PayWithin < 0 || o.PayWithin > MaxPayWithin || o.PayWithin > 0 && o.PayWithin < time.Second:
		return invalid("payWithinSeconds must be 0, for no deadline, or from 1 to 2592000")
	case o.PerUser < 0 || o.PerUser > MaxPerUser:
		return invalid("perUser must be from 1 to 10")
	case o.MaxInFlight < 0 || o.MaxInFlight > MaxStock:
		return invalid("maxInFlight must be 0, for no bound, or from 1 to 10000000")
	case o.Buckets < 0 || o.Buckets > MaxBuckets:
		return invalid("buckets must be from 1 to 64")
	case o.MaxInFlight > 0 && o.MaxInFlight < int64(o.Buckets):
		return invalid("maxInFlight must be 0, for no bound, or at least as many as buckets: each bucket allows its part of it")
	case !o.End.After(o.Begin):
		return invalid("endTime must be after beginTime")
	}
	return o.checkStart()
}

func visible(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.IsMark(r) }

// hides reports whether a character changes how others look, such as their
// direction: with one a title reads as something that it is not.
func hides(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }
