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
	"time"
)

// Stamp is when one message reached each stage, counted from when the first
// message of its file was due; Absent where it did not.
type Stamp struct {
	N         int // counted from 0, in order of Due
	Due       time.Duration
	Sent      time.Duration // the first intent
	Accepted  time.Duration // the first accepted outcome
	Delivered time.Duration // the first delivery
	Effect    time.Duration // the first Effect record
	Acked     time.Duration // the first ack's return
}

// Absent stands in a Stamp for a stage that was not reached.
const Absent = time.Duration(math.MinInt64)

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
	since := func(seen, at int64) time.Duration {
		if seen == 0 {
			return Absent
		}
		return time.Duration(at - start)
	}
	return Stamp{
		N: n, Due: since(1, m.due), Sent: since(1, m.intended), Accepted: since(m.accepted, m.acceptedAt),
		Delivered: since(m.deliveries, m.firstDelivery), Effect: since(m.effectRecords, m.firstEffect), Acked: since(m.acks, m.firstAck),
	}
}

const stampsHeader = "n,due,sent,accepted,delivered,effect,acked"

func (s *Stamp) times() [6]*time.Duration {
	return [...]*time.Duration{&s.Due, &s.Sent, &s.Accepted, &s.Delivered, &s.Effect, &s.Acked}
}

// WriteStamps writes stamps as gzip-compressed CSV: a header, and a line for
// each, with times in microseconds with three decimals, empty where absent. More
// than MaxStamps are an error, and the file is then of no use.
func WriteStamps(w io.Writer, stamps iter.Seq[Stamp]) error {
	packed := gzip.NewWriter(w)
	out := bufio.NewWriter(packed)
	out.WriteString(stampsHeader + "\n")
	line := make([]byte, 0, longestLine)
	written := 0
	for s := range stamps {
		if written++; written > MaxStamps {
			return fmt.Errorf("write stamps: more than %d messages", MaxStamps)
		}
		line = strconv.AppendInt(line[:0], int64(s.N), 10)
		for _, at := range s.times() {
			line = appendMicros(append(line, ','), *at)
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("write stamps: %w", err)
		}
	}
	if err := errors.Join(out.Flush(), packed.Close()); err != nil {
		return fmt.Errorf("write stamps: %w", err)
	}
	return nil
}

// longestLine is more than a line of any seven numbers takes.
const longestLine = 256

// ReadStamps reads what WriteStamps wrote. A file that is truncated, damaged, or
// anything else is an error, and so is one of more than MaxStamps: what it may
// take in memory is bounded, whatever it unpacks to.
func ReadStamps(r io.Reader) ([]Stamp, error) {
	packed, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("read stamps: %w", err)
	}
	lines := bufio.NewScanner(bufio.NewReader(packed))
	lines.Buffer(make([]byte, longestLine), longestLine)
	var stamps []Stamp
	lineless := true
	for n := 0; lines.Scan(); n++ {
		lineless = false
		switch {
		case n == 0 && lines.Text() != stampsHeader:
			return nil, fmt.Errorf("read stamps: the header is not %q", stampsHeader)
		case n == 0:
			continue
		case n > MaxStamps:
			return nil, fmt.Errorf("read stamps: more than %d messages", MaxStamps)
		}
		s, err := parseStamp(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("read stamps: line %d: %w", n+1, err)
		}
		stamps = append(stamps, s)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read stamps: %w", err)
	}
	if lineless {
		return nil, errors.New("read stamps: the file is empty")
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
	case s.Due == Absent || s.Sent == Absent:
		return s, errors.New("a message without its due time or its sending")
	}
	return s, nil
}

func appendMicros(b []byte, d time.Duration) []byte {
	if d == Absent {
		return b
	}
	if d < 0 {
		b, d = append(b, '-'), -d
	}
	b = strconv.AppendInt(b, int64(d/1000), 10)
	ns := d % 1000
	return append(b, '.', byte('0'+ns/100), byte('0'+ns/10%10), byte('0'+ns%10))
}

// cutMicros cuts a time as appendMicros writes it from s, or an absent one.
func cutMicros(s string) (time.Duration, string, bool) {
	if s == "" || s[0] == ',' {
		return Absent, s, true
	}
	negative := s[0] == '-'
	if negative {
		s = s[1:]
	}
	us, rest, ok := cutNumber(s, math.MaxInt64/1000)
	if !ok || len(rest) < 4 || rest[0] != '.' {
		return 0, s, false
	}
	d := time.Duration(us)
	for i := 1; i <= 3; i++ {
		digit := rest[i] - '0'
		if digit > 9 {
			return 0, s, false
		}
		d = 10*d + time.Duration(digit)
	}
	if d < 0 { // beyond what a Duration holds
		return 0, s, false
	}
	if negative {
		d = -d
	}
	return d, rest[4:], true
}
