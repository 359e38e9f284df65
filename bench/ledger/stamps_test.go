package ledger

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func packed(t testing.TB, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, s)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestStampsComeBackAsTheyWere(t *testing.T) {
	want := []Stamp{
		{0, 0, 1, 20, 30, 40, 50},
		{1, 1000, 999, NoStamp, NoStamp, NoStamp, NoStamp},
		{2, 2000, -1, -1001, 1_234_567_891, NoStamp, 0},
		{math.MaxInt, math.MaxInt64, -math.MaxInt64, math.MaxInt64 - 1, 999, 1000, 1001},
	}
	var b bytes.Buffer
	if err := WriteStamps(&b, slices.Values(want)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, must(ReadStamps(&b))(t)); diff != "" {
		t.Errorf("stamps (-want +got):\n%s", diff)
	}
	b.Reset()
	if err := WriteStamps(&b, slices.Values([]Stamp(nil))); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadStamps(&b); len(got) != 0 || err != nil {
		t.Errorf("none: got %v, %v", got, err)
	}
}

func TestStampsAreOfTheMessagesInTheWindowInOrderOfTheirDue(t *testing.T) {
	h := faultless()
	h.drop(6, Accepted, Delivered, Effect, Acked)
	h.find(7, Intent).Due = 8500
	h.add(Record{Event: Delivered, At: 6500, Process: 2}, 99) // nobody sent it
	h.add(Record{Event: Delivered, At: 9999, Process: 2}, 9)  // again: the first one counts
	h.From, h.To = 5000, 9001
	h.account() // sorts
	var b bytes.Buffer
	if err := WriteStamps(&b, StampsOf(h.Input)); err != nil {
		t.Fatal(err)
	}
	text := must(io.ReadAll(must(gzip.NewReader(&b))(t)))(t)
	const want = `n,due,sent,accepted,delivered,effect,acked
0,0.000,0.010,0.020,0.030,0.040,0.050
1,1.000,1.010,,,,
2,3.000,3.010,3.020,3.030,3.040,3.050
3,3.500,2.010,2.020,2.030,2.040,2.050
4,4.000,4.010,4.020,4.030,4.040,4.050
`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
}

func TestReadStampsRefusesWhatWriteStampsDidNotWrite(t *testing.T) {
	const header = stampsHeader + "\n"
	sound := packed(t, header+strings.Repeat("0,0.000,0.001,,,,\n", 1000))
	if n := len(must(ReadStamps(bytes.NewReader(sound)))(t)); n != 1000 {
		t.Fatalf("sound: got %d stamps, want 1000", n)
	}
	spoilt := slices.Clone(sound)
	spoilt[len(spoilt)-6] ^= 1 // of the checksum
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"nothing", nil, "EOF"},
		{"no gzip", []byte(header), "invalid header"},
		{"empty", packed(t, ""), "empty"},
		{"cut", sound[:len(sound)-1], "unexpected EOF"},
		{"cut in the middle", sound[:len(sound)/2], "unexpected EOF"},
		{"a bit is wrong", spoilt, "checksum"},
		{"something follows", append(slices.Clone(sound), "more than a gzip header"...), "invalid header"},
		{"another header", packed(t, "n,due\n"), "the header is not"},
		{"a field too few", packed(t, header+"0,0.000,0.000,,,\n"), "line 2: want the fields"},
		{"a field too many", packed(t, header+"0,0.000,0.000,,,,,\n"), "line 2: want the fields"},
		{"no number", packed(t, header+"x,0.000,0.000,,,,\n"), "line 2: n is not a number"},
		{"a negative number", packed(t, header+"-1,0.000,0.000,,,,\n"), "n is not a number"},
		{"a number beyond all", packed(t, header+"9223372036854775808,0.000,0.000,,,,\n"), "n is not a number"},
		{"no due", packed(t, header+"0,,0.000,,,,\n"), "without its due time"},
		{"not sent", packed(t, header+"0,0.000,,,,,\n"), "without its due time or its sending"},
		{"two decimals", packed(t, header+"0,0.00,0.000,,,,\n"), "field 2 is not a time"},
		{"four decimals", packed(t, header+"0,0.0000,0.000,,,,\n"), "want the fields"},
		{"no decimals", packed(t, header+"0,0.000,7,,,,\n"), "field 3 is not a time"},
		{"words", packed(t, header+"0,0.000,NaN,,,,\n"), "field 3 is not a time"},
		{"a time beyond all", packed(t, header+"0,0.000,9223372036854775.808,,,,\n"), "field 3 is not a time"},
		{"many digits", packed(t, header+"0,0.000,"+strings.Repeat("1", 100)+",,,,\n"), "field 3 is not a time"},
		{"a line without end", packed(t, header+strings.Repeat("1", 1<<20)), "token too long"},
		{"a header without end", packed(t, strings.Repeat("n", 1<<20)), "token too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadStamps(bytes.NewReader(c.file))
			if err == nil || !strings.Contains(err.Error(), c.want) || got != nil {
				t.Errorf("got %d stamps and %v, want no stamps and an error with %q", len(got), err, c.want)
			}
		})
	}
}

// A file of a few kilobytes may unpack to gigabytes: what is read of it is
// bounded by the number of stamps, and what is written is bounded alike.
func TestStampsAreBounded(t *testing.T) {
	const most = 100
	var b bytes.Buffer
	if err := writeStamps(&b, slices.Values(make([]Stamp, most)), most); err != nil {
		t.Errorf("writing the most: got %v, want nil", err)
	}
	if got, err := readStamps(&b, most); len(got) != most || err != nil {
		t.Errorf("reading the most: got %d, %v, want %d", len(got), err, most)
	}
	if err := writeStamps(io.Discard, slices.Values(make([]Stamp, most+1)), most); errString(err) != "more than 100 messages" {
		t.Errorf("writing one more: got %v, want an error", err)
	}

	// A file without an end is given up once it has one stamp too many.
	r, w := io.Pipe()
	stopped := make(chan error, 1)
	go func() {
		z := gzip.NewWriter(w)
		_, err := io.WriteString(z, stampsHeader+"\n")
		for err == nil {
			_, err = io.WriteString(z, "0,0.000,0.000,,,,\n")
		}
		stopped <- err
	}()
	_, err := readStamps(r, most)
	r.Close()
	if errString(err) != "more than 100 messages" {
		t.Errorf("reading one more: got %v, want an error", err)
	}
	if err := <-stopped; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the writer: got %v, want io.ErrClosedPipe", err)
	}
}

func TestWriteStampsSaysWhenThereIsNoRoom(t *testing.T) {
	full := errors.New("no space left")
	r, w := io.Pipe()
	r.CloseWithError(full)
	if err := WriteStamps(w, slices.Values(make([]Stamp, 10))); !errors.Is(err, full) {
		t.Errorf("got %v, want %v", err, full)
	}
}

func FuzzReadStamps(f *testing.F) {
	f.Add([]byte(stampsHeader + "\n0,0.000,0.001,,,,\n1,1.500,-2.000,3.000,4.000,5.000,6.000\n"))
	f.Add([]byte(stampsHeader))
	f.Add([]byte(stampsHeader + "\n0,9223372036854775.807,-9223372036854775.807,,,,"))
	f.Add([]byte("n,due\n\n,,,"))
	f.Fuzz(func(t *testing.T, text []byte) {
		// As it is, and packed, since hardly any bytes are gzip.
		if _, err := ReadStamps(bytes.NewReader(text)); err == nil && len(text) < 18 {
			t.Errorf("%d bytes were read, fewer than gzip's frame has", len(text))
		}
		got, err := ReadStamps(bytes.NewReader(packed(t, string(text))))
		if err != nil {
			return
		}
		if lines := bytes.Count(text, []byte("\n")) + 1; len(got) >= lines {
			t.Errorf("got %d stamps from %d lines", len(got), lines)
		}
		var b bytes.Buffer
		if err := WriteStamps(&b, slices.Values(got)); err != nil {
			t.Fatal(err)
		}
		again, err := ReadStamps(&b)
		if diff := cmp.Diff(fmt.Sprint(got), fmt.Sprint(again)); diff != "" || err != nil {
			t.Errorf("read again: %v (-first +second):\n%s", err, diff)
		}
	})
}
