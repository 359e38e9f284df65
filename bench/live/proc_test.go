package live

import (
	"testing"

	"queuelab/bench/ledger"
)

func TestWhatWasAckedIsHeldNoMore(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []ledger.Event
		want   int
	}{
		{"it holds what it was handed", []ledger.Event{ledger.Delivered, ledger.Effect}, 1},
		{"an ack ends that", []ledger.Event{ledger.Delivered, ledger.Effect, ledger.Acked}, 0},
		{"a broker that died before the ack hands it over again", []ledger.Event{ledger.Delivered, ledger.Effect, ledger.Delivered, ledger.Effect}, 1},
		{"and its ack is that of both", []ledger.Event{ledger.Delivered, ledger.Effect, ledger.Delivered, ledger.Effect, ledger.Acked}, 0},
		{"who gives it back may have it again", []ledger.Event{ledger.Delivered, ledger.Nacked, ledger.Delivered}, 1},
	} {
		p := &process{holds: map[ledger.ID]hold{}}
		for _, e := range c.events {
			p.take(ledger.Record{Event: e})
		}
		if len(p.holds) != c.want {
			t.Errorf("%s: got %d messages held, want %d", c.name, len(p.holds), c.want)
		}
	}
}
