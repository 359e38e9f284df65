package ledger

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
)

// Stamp is when one message reached each stage, in nanoseconds from when the
// first message of its file was due; NoStamp where it did not. Due and Sent are
// always there.
type Stamp struct {
	N         int   // counted from 0, in order of Due
	Due       int64 // when it should have been sent
	Sent      int64 // the first intent
	Accepted  int64 // the first accepted outcome
	Delivered int64 // the first delivery
	Effect    int64 // the first Effect record
	Acked     int64 // the first ack's return
}

// NoStamp stands in a Stamp for a stage that was not reached.
const NoStamp = math.MinInt64

// MaxStamps is how many stamps a file may have: who reads one holds them all.
const MaxStamps = 1 << 22

// Stamps yields the stamps of the messages that were sent, in order of their
// due times: those that the latencies are of, as bounded by From and To.
func (t *Tally) Stamps() iter.Seq[Stamp] {
	return func(yield func(Stamp) bool) {
		type due struct {
			at int64
			n  row
		}
		var order []due
		t.each(func(n row, m *message) {
			if m.sent() && t.Input.covers(m.due) {
				order = append(order, due{m.due, n})
			}
		})
		slices.SortFunc(order, func(a, b due) int {
			return cmp.Or(cmp.Compare(a.at, b.at), compareIDs(t.id(a.n), t.id(b.n)))
		})
		var m message
		for i, d := range order {
			if !yield(t.message(d.n, &m).stamp(i, order[0].at)) {
				return
			}
		}
	}
}

// StampsOf is Tally.Stamps for the Records of in.
func StampsOf(in Input) iter.Seq[Stamp] {
	t := NewTally(in)
	for i := range in.Records {
		t.Add(in.Records[i])
	}
	return t.Stamps()
}

func (m *message) stamp(n int, start int64) Stamp {
	since := func(seen, at int64) int64 {
		if seen == 0 {
			return NoStamp
		}
		return at - start
	}
	return Stamp{
		N: n, Due: since(1, m.due), Sent: since(1, m.intended), Accepted: since(m.accepted, m.acceptedAt),
		Delivered: since(m.deliveries, m.firstDelivery), Effect: since(m.effectRecords, m.firstEffect), Acked: since(m.acks, m.firstAck),
	}
}

const stampsHeader = "n,due,sent,accepted,delivered,effect,acked"

func (s *Stamp) times() [6]*int64 {
	return [...]*int64{&s.Due, &s.Sent, &s.Accepted, &s.Delivered, &s.Effect, &s.Acked}
}

// WriteStamps writes stamps as gzip-compressed CSV: a header, and a line for
// each, with times in microseconds with three decimals, empty where absent. More
// than MaxStamps are an error, and the file is then of no use.
func WriteStamps(w io.Writer, stamps iter.Seq[Stamp]) error {
	if err := writeStamps(w, stamps, MaxStamps); err != nil {
		return fmt.Errorf("write stamps: %w", err)
	}
	return nil
}

func writeStamps(w io.Writer, stamps iter.Seq[Stamp], most int) error {
	packed := gzip.NewWriter(w)
	out := bufio.NewWriter(packed)
	_, _ = out.WriteString(stampsHeader + "\n") // an error stays until Flush
	line := make([]byte, 0, longestLine)
	written := 0
	for s := range stamps {
		if written++; written > most {
			return fmt.Errorf("more than %d messages", most)
		}
		line = strconv.AppendInt(line[:0], int64(s.N), 10)
		for _, at := range s.times() {
			line = appendMicros(append(line, ','), *at)
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return errors.Join(out.Flush(), packed.Close())
}

// longestLine is more than a line of any seven numbers takes.
const longestLine = 256

// ReadStamps reads what WriteStamps wrote. A file that is truncated, damaged, or
// anything else is an error, and so is one of more than MaxStamps: what it may
// take in memory is bounded, whatever it unpacks to.
func ReadStamps(r io.Reader) ([]Stamp, error) {
	stamps, err := readStamps(r, MaxStamps)
	if err != nil {
		return nil, fmt.Errorf("read stamps: %w", err)
	}
	return stamps, nil
}

func readStamps(r io.Reader, most int) ([]Stamp, error) {
	packed, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(bufio.NewReader(packed))
	lines.Buffer(make([]byte, longestLine), longestLine)
	var stamps []Stamp
	n := 0
	for ; lines.Scan(); n++ {
		switch {
		case n == 0 && lines.Text() != stampsHeader:
			return nil, fmt.Errorf("the header is not %q", stampsHeader)
		case n == 0:
			continue
		case n > most:
			return nil, fmt.Errorf("more than %d messages", most)
		}
		s, err := parseStamp(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		stamps = append(stamps, s)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, errors.New("the file is empty")
	}
	return stamps, nil
}

func parseStamp(line []byte) (Stamp, error) {
	var s Stamp
	n, rest, ok := cutNumber(string(line), math.MaxInt)
	if !ok {
		return s, errors.New("n is not a number")
	}
	s.N = int(n)
	for i, at := range s.times() {
		if rest == "" || rest[0] != ',' {
			return s, fmt.Errorf("want the fields %s", stampsHeader)
		}
		if *at, rest, ok = cutMicros(rest[1:]); !ok {
			return s, fmt.Errorf("field %d is not a time in microseconds with three decimals", i+2)
		}
	}
	switch {
	case rest != "":
		return s, fmt.Errorf("want the fields %s", stampsHeader)
	case s.Due == NoStamp || s.Sent == NoStamp:
		return s, errors.New("a message without its due time or its sending")
	}
	return s, nil
}

func appendMicros(b []byte, ns int64) []byte {
	if ns == NoStamp {
		return b
	}
	if ns < 0 {
		b, ns = append(b, '-'), -ns
	}
	b = strconv.AppendInt(b, ns/1000, 10)
	ns %= 1000
	return append(b, '.', byte('0'+ns/100), byte('0'+ns/10%10), byte('0'+ns%10))
}

// cutMicros cuts a time as appendMicros writes it from s, or an absent one.
func cutMicros(s string) (ns int64, rest string, ok bool) {
	if s == "" || s[0] == ',' {
		return NoStamp, s, true
	}
	negative := s[0] == '-'
	if negative {
		s = s[1:]
	}
	us, rest, ok := cutNumber(s, math.MaxInt64/1000)
	if !ok || len(rest) < 4 || rest[0] != '.' {
		return 0, s, false
	}
	ns = int64(us)
	for i := 1; i <= 3; i++ {
		digit := rest[i] - '0'
		if digit > 9 {
			return 0, s, false
		}
		ns = 10*ns + int64(digit)
	}
	if ns < 0 { // beyond what an int64 holds
		return 0, s, false
	}
	if negative {
		ns = -ns
	}
	return ns, rest[4:], true
}
