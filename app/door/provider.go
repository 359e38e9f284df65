package door

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"queuelab/app/sale"
)

// signedWithin is how far the moment of a signature may be from now, both ways:
// the provider's clock is not ours.
const signedWithin = 5 * time.Minute

// Provider is the payment provider, known by a key that it shares with us: nobody
// else tells of payments. It signs the order's id, the payment's, the cents and
// the moment in Unix seconds, a line each without the last line's end, with
// HMAC-SHA256. A signature that is seen twice is harmless: a payment that is told
// twice is one. It is safe for concurrent use.
type Provider struct {
	Key []byte // at least MinKey bytes
	// StandIn has the service play the provider for its buyers: no money moves.
	// It is for labs.
	StandIn bool
}

var (
	// ErrUnsigned says that nothing of the key signed a payment.
	ErrUnsigned = errors.New("the payment is not signed by the payment provider")
	// ErrSignedLong says that a signature is right, and not of now.
	ErrSignedLong = fmt.Errorf("the signature is not of the last %v", signedWithin)
)

// Sign returns the signature of a payment: t=SECONDS,v1=HEX.
func (p *Provider) Sign(pay sale.Payment, at time.Time) string {
	t := strconv.FormatInt(at.Unix(), 10)
	return "t=" + t + ",v1=" + hex.EncodeToString(p.mac(pay, t))
}

// Check returns nil for what Sign returned at most five minutes ago, or
// ErrUnsigned, or ErrSignedLong.
func (p *Provider) Check(pay sale.Payment, signature string, now time.Time) error {
	first, second, _ := strings.Cut(signature, ",")
	t, timed := strings.CutPrefix(first, "t=")
	v, signed := strings.CutPrefix(second, "v1=")
	sum, err := hex.DecodeString(v)
	if !timed || !signed || err != nil || !hmac.Equal(sum, p.mac(pay, t)) {
		return ErrUnsigned
	}
	seconds, err := strconv.ParseInt(t, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > signedWithin {
		return ErrSignedLong
	}
	return nil
}

func (p *Provider) mac(pay sale.Payment, t string) []byte {
	m := hmac.New(sha256.New, p.Key)
	m.Write([]byte(strings.Join([]string{pay.OrderID.String(), pay.ID, strconv.FormatInt(pay.Cents, 10), t}, "\n")))
	return m.Sum(nil)
}
