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

// Place is what became of a message: where it was lost, or why it was not.
type Place string

// The places, from the producer's answer to the committed effect. They say what
// the ledger holds; where it holds nothing they say what the fault leaves.
const (
	PlaceBroker    Place = "in the broker: accepted, delivered to nobody, and no longer in the queue at the end"
	PlaceProcess   Place = "in the process: the queue lived in it and died with it"
	PlaceWire      Place = "on the way: a client or a connection that died had taken it, and no handler received it"
	PlaceHandler   Place = "in the consumer: delivered, and it died or failed before the effect was committed, while the queue had forgotten it"
	PlaceSkipped   Place = "behind the cursor: the queue counted it as done, and no handler finished it"
	PlaceUnheard   Place = "with nobody: accepted while no consumer was there to hear it"
	PlaceUnrouted  Place = "at the exchange: accepted, and there was no queue to put it into"
	PlaceOverflow  Place = "at the limit: the queue was full and dropped it"
	PlaceNotLost   Place = "not lost"
	PlaceStranded  Place = "not lost: stranded, counted with what the queue still held at the end"
	PlaceDead      Place = "not lost: dead-lettered after its attempts"
	PlaceNoPromise Place = "nobody promised anything: it was never accepted"
	PlaceNotSent   Place = "a phantom: the ledger has no sender of it"
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
	if !slices.ContainsFunc(e.Records, func(r ledger.Record) bool { return !isFault(r) && r.ID() == id }) {
		return fmt.Errorf("the ledger of %s has no message %q; without a message it lists those that were lost", e.Trial, message)
	}
	zero, from := e.zero()
	p := &printer{w: w}
	p.say("%s, message %s, times from %s\n", e.Trial, message, from)
	for _, r := range e.Records {
		if isFault(r) || r.ID() == id {
			p.say("%12s  %s", since(r.At, zero), e.line(r))
		}
	}
	p.say("\n%d committed effects. %s", e.Effects[message], verdictOf(e.Place(id)))
	return p.err
}

func isFault(r ledger.Record) bool {
	return r.Event == ledger.FaultAsked || r.Event == ledger.FaultConfirmed || r.Event == ledger.FaultHealed
}

func (p Place) lost() bool {
	switch p {
	case PlaceNotLost, PlaceStranded, PlaceDead, PlaceNoPromise, PlaceNotSent:
		return false
	}
	return true
}

func verdictOf(place Place) string {
	if place.lost() {
		return "Lost " + string(place) + "."
	}
	return strings.ToUpper(string(place[:1])) + string(place[1:]) + "."
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

const theFault = "the fault"

// zero is the moment that times are told from.
func (e Evidence) zero() (at int64, name string) {
	for _, r := range e.Records {
		if r.Event == ledger.FaultConfirmed {
			return r.At, theFault
		}
	}
	if len(e.Records) > 0 {
		at = e.Records[0].At
	}
	return at, "the first record"
}

// role is what a process was: a queue that lives in a process has its producer
// and its consumer in one.
func (e Evidence) role(process uint16) string {
	role := e.Processes[process].Role
	published := func(r ledger.Record) bool { return r.Event == ledger.Intent && r.Process == process }
	if role == "consumer" && slices.ContainsFunc(e.Records, published) {
		return "producer and consumer"
	}
	return role
}

// line is a record in words.
func (e Evidence) line(r ledger.Record) string {
	who := fmt.Sprintf("process %d", r.Process)
	if p, ok := e.Processes[r.Process]; ok {
		who = fmt.Sprintf("%s %d", e.role(r.Process), r.Process)
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
	var sent, accepted, unheard, delivered, acked, dead bool
	producer := uint16(0)
	for _, r := range e.Records {
		if r.ID() != id {
			continue
		}
		switch r.Event {
		case ledger.Intent:
			sent, producer = true, r.Process
		case ledger.Accepted:
			unheard = (unheard || !accepted) && r.Arg == 1 // heard by anybody once is heard
			accepted = true
		case ledger.Delivered:
			delivered = true
		case ledger.Acked:
			acked = true
		case ledger.DeadLettered:
			dead = true
		}
	}
	switch name := id.String(); {
	case !sent:
		return PlaceNotSent
	case e.Effects[name] > 0:
		return PlaceNotLost
	case dead:
		return PlaceDead
	case !accepted: // neither unknown nor rejected promises anything
		return PlaceNoPromise
	case slices.Contains(e.Remaining, name):
		return PlaceStranded
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
	case e.Processes[producer].Victim: // who published from the process that was struck has its queue there
		return PlaceProcess
	case strings.Contains(e.Trial, ":consumer-kill") && strings.HasPrefix(e.Trial, "kafka"):
		return PlaceSkipped // it keeps what it gives out, and only counts how far a group is
	case strings.Contains(e.Trial, ":lost-reply-receive:"), strings.Contains(e.Trial, ":black-hole-consumer:"), strings.Contains(e.Trial, ":consumer-kill"):
		return PlaceWire
	}
	return PlaceBroker
}

// tell tells the trial, and lists what was lost by where.
func (e Evidence) tell(w io.Writer) error {
	p := &printer{w: w}
	report := ledger.Account(ledger.Input{Records: e.Records, Effects: e.Effects, Remaining: e.Remaining, Confirm: queue.ConfirmMemory})
	zero, from := e.zero()
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
		p.say("  process %d: %s%s", n, e.role(n), victim)
	}
	for _, r := range e.Records {
		if isFault(r) {
			p.say("%12s  %s", since(r.At, zero), r.Event)
		}
	}
	for _, n := range e.Notes {
		p.say("  %s", n)
	}
	if from != theFault && slices.ContainsFunc(e.Records, isFault) {
		p.say("  no fault was confirmed: times are from %s", from)
	}
	p.say("%d sent: %d accepted, %d rejected, %d unknown; %d lost, %d delivered again, %d effects twice, %d out of order",
		report.Sent, report.Accepted, report.Rejected, report.Unknown, report.Lost, report.Redelivered, report.EffectDuplicates, report.Reordered)
	for _, x := range []struct {
		n    int64
		what string
	}{
		{report.DeadLettered, "dead-lettered"},
		{report.Stranded, "stranded: the queue still held so many at the end, and does not say which"},
		{report.Recovered, "recovered: unknown, yet delivered"},
		{report.ProducerDuplicates, "delivered again since they were published again"},
		{report.RejectedDelivered, "rejected, yet delivered"},
		{report.Phantom, "phantom: delivered, never sent"},
	} {
		if x.n > 0 {
			p.say("  %d %s", x.n, x.what)
		}
	}
	if report.Conservation != nil {
		p.say("  the ledger does not balance, and proves nothing: %s", strings.ReplaceAll(report.Conservation.Error(), "\n", "; "))
	}
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
		p.say("\n%d lost %s:\n  %s", len(by[place]), place, some(by[place]))
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
