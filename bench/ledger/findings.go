package ledger

import (
	"fmt"
	"strings"
)

// Findings says in words what is not as a faultless queue would have it, most
// serious first; nil: nothing.
func (r *Report) Findings() []string {
	var fs []string
	add := func(n int64, format string, more ...any) {
		if n > 0 {
			fs = append(fs, fmt.Sprintf(format, append([]any{n}, more...)...))
		}
	}
	if r.Conservation != nil {
		fs = append(fs, "invalid: "+strings.ReplaceAll(r.Conservation.Error(), "\n", "; "))
	}
	add(r.Phantom, "%d phantom: delivered, never sent")
	add(r.RejectedDelivered, "%d rejected, yet delivered")
	add(r.LostUndelivered, "%d lost: accepted and never delivered")
	add(r.LostUnacked, "%d lost: delivered, and forgotten by the queue before the consumer's ack")
	add(r.LostAcked, "%d lost: acked without an effect")
	add(r.Stranded, "%d stranded in the broker after the drain")
	add(r.AckedBeforeEffect, "%d acked before their effect")
	add(r.AfterAck, "%d deliveries of messages already acked")
	add(r.Redelivered, "%d redelivered")
	add(r.ProducerDuplicates, "%d producer duplicates")
	add(r.EffectDuplicates, "%d effect duplicates")
	add(r.Reordered, "%d reordered")
	add(r.Missed, "%d deliveries missed by a subscriber")
	add(r.Unheard, "%d accepted, with nobody listening")
	add(r.DeadLettered, "%d dead-lettered")
	add(r.PolicyDropped, "%d dropped by policy")
	add(r.Recovered, "%d recovered: outcome unknown, yet delivered")
	add(r.Negative, "%d latencies below zero, the lowest %v, since a clock is skewed or a message left too early: out of range", r.MostNegative)
	add(r.OutOfRange-r.Negative, "%d latencies above an hour: out of range")
	return fs
}
