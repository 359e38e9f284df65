package ledger

import (
	"errors"
	"fmt"
)

// faults counts what cannot be if the ledger is complete and its order rules
// were kept.
type faults struct {
	noIntent, tooMany, early, unseenAck, unseenEffect int
}

func (f *faults) add(m *message, effectsGiven bool) {
	outcomes := m.accepted + m.rejected + m.unknown
	switch {
	case !m.sent() && outcomes > 0:
		f.noIntent++
	case outcomes > m.intents:
		f.tooMany++
	case m.sent() && m.deliveries > 0 && m.firstDelivery < m.intended:
		f.early++
	}
	if m.acks > m.deliveries {
		f.unseenAck++
	}
	if effectsGiven && m.effects > 0 && m.deliveries == 0 {
		f.unseenEffect++
	}
}

func (f *faults) errors() []error {
	var errs []error
	for _, x := range []struct {
		n    int
		what string
	}{
		{f.noIntent, "with an outcome and no intent"},
		{f.tooMany, "with more outcomes than intents"},
		{f.early, "delivered before they were sent"},
		{f.unseenAck, "acked more often than delivered"},
		{f.unseenEffect, "with an effect and no delivery"},
	} {
		if x.n > 0 {
			errs = append(errs, fmt.Errorf("%d messages %s: the ledger is incomplete", x.n, x.what))
		}
	}
	return errs
}

// balance checks that each message is in exactly one class.
func balance(c Counts, withEffect int64) error {
	var errs []error
	if got := c.Accepted + c.Rejected + c.Unknown; got != c.Sent {
		errs = append(errs, fmt.Errorf("%d accepted + %d rejected + %d unknown are not the %d sent", c.Accepted, c.Rejected, c.Unknown, c.Sent))
	}
	if got := withEffect + c.DeadLettered + c.PolicyDropped + c.Stranded + c.Lost; got != c.Accepted {
		errs = append(errs, fmt.Errorf("%d with an effect + %d dead-lettered + %d dropped by policy + %d stranded + %d lost are not the %d accepted",
			withEffect, c.DeadLettered, c.PolicyDropped, c.Stranded, c.Lost, c.Accepted))
	}
	return errors.Join(errs...)
}
