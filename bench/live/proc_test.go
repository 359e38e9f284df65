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

func TestWhatAnotherAckedIsHeldByThemThatAreNotDoneWithItOnly(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []ledger.Event
		at     int64
		want   int
	}{
		{"done, and its ack was not heard", []ledger.Event{ledger.Delivered, ledger.Effect}, 1, 0},
		{"frozen in the middle", []ledger.Event{ledger.Delivered}, 1, 1},
		{"it came again after that ack", []ledger.Event{ledger.Delivered, ledger.Effect}, 9, 1},
	} {
		a, b := &process{holds: map[ledger.ID]hold{}}, &process{holds: map[ledger.ID]hold{}}
		l := &lane{processes: []*process{a, b}}
		for _, e := range c.events {
			a.take(ledger.Record{Event: e, At: c.at})
		}
		l.settled(b, ledger.Record{Event: ledger.Acked, At: 5})
		if len(a.holds) != c.want {
			t.Errorf("%s: got %d messages held, want %d", c.name, len(a.holds), c.want)
		}
	}
}
