package trial

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"queuelab/bench/ledger"
	"queuelab/queue"
)

// Place is where a lost message was lost.
type Place string

// The places, from the producer's answer to the committed effect.
const (
	PlaceBroker    Place = "the broker: accepted, and when the fault was healed nothing of it was in the queue"
	PlaceWire      Place = "on the way: the queue gave it out, and no consumer received it"
	PlaceHandler   Place = "the consumer: delivered, and it died or failed before the effect was committed, while the queue had forgotten it"
	PlaceSkipped   Place = "the cursor: it was acked or passed over without a delivery to a handler that finished"
	PlaceUnheard   Place = "nobody: accepted while no consumer was there to hear it"
	PlaceUnrouted  Place = "the exchange: accepted, and there was no queue to put it into"
	PlaceOverflow  Place = "the limit: the queue was full and dropped it"
	PlaceNotLost   Place = "not lost"
	PlaceDead      Place = "not lost: dead-lettered after its attempts"
	PlaceNoPromise Place = "nobody promised anything: it was never accepted"
)

// Explain tells the story of one message, or without one of the trial, from its
// ledger. Times are relative to the fault, or where there was none to the first
// record.
func Explain(w io.Writer, e Evidence, message string) error {
	if message == "" {
		return e.tell(w)
	}
	id, err := ledger.ParseID(message)
	if err != nil {
		return err
	}
	zero := e.zero()
	found := false
	p := &printer{w: w}
	p.say("%s, message %s, times from the fault\n", e.Trial, message)
	for _, r := range e.Records {
		isFault := r.Event == ledger.FaultAsked || r.Event == ledger.FaultConfirmed || r.Event == ledger.FaultHealed
		if !isFault && r.ID() != id {
			continue
		}
		found = found || !isFault
		p.say("%12s  %s", since(r.At, zero), e.line(r))
	}
	if !found {
		return fmt.Errorf("the ledger of %s has no message %q; without a message it lists those that were lost", e.Trial, message)
	}
	place := e.Place(id)
	p.say("\n%d committed effects. %s", e.Effects[message], verdictOf(place))
	return p.err
}

func verdictOf(place Place) string {
	switch place {
	case PlaceNotLost, PlaceNoPromise, PlaceDead:
		return strings.ToUpper(string(place[:1])) + string(place[1:]) + "."
	}
	return "Lost at " + string(place) + "."
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) say(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func since(at, zero int64) string {
	return fmt.Sprintf("%+.3f ms", float64(at-zero)/float64(time.Millisecond))
}

// zero is the moment of the fault.
func (e Evidence) zero() int64 {
	for _, r := range e.Records {
		if r.Event == ledger.FaultConfirmed {
			return r.At
		}
	}
	if len(e.Records) > 0 {
		return e.Records[0].At
	}
	return 0
}

// line is a record in words.
func (e Evidence) line(r ledger.Record) string {
	who := fmt.Sprintf("process %d", r.Process)
	if p, ok := e.Processes[r.Process]; ok {
		who = fmt.Sprintf("%s %d", p.Role, r.Process)
		if p.Victim {
			who += ", the victim"
		}
	}
	switch r.Event {
	case ledger.Intent:
		return "about to be published by " + who
	case ledger.Accepted:
		if r.Arg > 0 {
			return fmt.Sprintf("accepted, heard by %d", r.Arg-1)
		}
		return "accepted: the queue's answer came"
	case ledger.Rejected:
		return "rejected: certainly not in the queue"
	case ledger.Unknown:
		return "unknown: no answer that says whether it is in the queue"
	case ledger.Delivered:
		attempt := ""
		if r.Attempt > 0 {
			attempt = fmt.Sprintf(", attempt %d", r.Attempt)
		}
		return "delivered to " + who + attempt
	case ledger.Effect:
		return "its effect was committed by " + who
	case ledger.Acked:
		return "acked by " + who
	case ledger.EffectUnknown:
		return "its effect may be committed: the database did not answer " + who
	case ledger.DeadLettered:
		return "given up and dead-lettered by " + who
	case ledger.Nacked:
		return "given back by " + who
	}
	return "-- " + r.Event.String() + " --"
}

// Place says where the message was lost.
func (e Evidence) Place(id ledger.ID) Place {
	var accepted, unheard, delivered, acked, dead bool
	for _, r := range e.Records {
		if r.ID() != id {
			continue
		}
		switch r.Event {
		case ledger.Accepted:
			accepted, unheard = true, r.Arg == 1
		case ledger.Delivered:
			delivered = true
		case ledger.Acked:
			acked = true
		case ledger.DeadLettered:
			dead = true
		}
	}
	switch name := id.String(); {
	case e.Effects[name] > 0 || slices.Contains(e.Remaining, name):
		return PlaceNotLost
	case dead:
		return PlaceDead
	case !accepted: // neither unknown nor rejected promises anything
		return PlaceNoPromise
	case delivered && acked:
		return PlaceSkipped
	case delivered:
		return PlaceHandler
	case unheard:
		return PlaceUnheard
	case strings.Contains(e.Trial, ":unroutable:"):
		return PlaceUnrouted
	case strings.Contains(e.Trial, ":queue-limit:"):
		return PlaceOverflow
	case strings.Contains(e.Trial, ":lost-reply-receive:"), strings.Contains(e.Trial, ":black-hole-consumer:"), strings.Contains(e.Trial, ":consumer-kill"):
		return PlaceWire
	}
	return PlaceBroker
}

// tell tells the trial, and lists what was lost by where.
func (e Evidence) tell(w io.Writer) error {
	p := &printer{w: w}
	report := ledger.Account(ledger.Input{Records: e.Records, Effects: e.Effects, Remaining: e.Remaining, Confirm: queue.ConfirmMemory})
	zero := e.zero()
	p.say("%s", e.Trial)
	var numbers []uint16
	for n := range e.Processes {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		victim := ""
		if e.Processes[n].Victim {
			victim = ", the victim"
		}
		p.say("  process %d: %s%s", n, e.Processes[n].Role, victim)
	}
	for _, r := range e.Records {
		if r.Event == ledger.FaultAsked || r.Event == ledger.FaultConfirmed || r.Event == ledger.FaultHealed {
			p.say("%12s  %s", since(r.At, zero), r.Event)
		}
	}
	for _, n := range e.Notes {
		p.say("  %s", n)
	}
	p.say("%d sent: %d accepted, %d rejected, %d unknown; %d lost, %d delivered again, %d effects twice, %d out of order",
		report.Sent, report.Accepted, report.Rejected, report.Unknown, report.Lost, report.Redelivered, report.EffectDuplicates, report.Reordered)
	by := map[Place][]ledger.ID{}
	var places []Place
	for _, id := range report.LostIDs {
		place := e.Place(id)
		if by[place] == nil {
			places = append(places, place)
		}
		by[place] = append(by[place], id)
	}
	for _, place := range places {
		p.say("\n%d lost at %s:\n  %s", len(by[place]), place, some(by[place]))
	}
	return p.err
}

func some(ids []ledger.ID) string {
	var names []string
	for i, id := range ids {
		if i == 8 {
			names = append(names, fmt.Sprintf("… and %d more", len(ids)-i))
			break
		}
		names = append(names, id.String())
	}
	return strings.Join(names, " ")
}
