package wire_test

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/wire"
)

var kinds = []string{"redis", "rabbitmq", "kafka", "postgres", "http"}

// cutBy cuts each piece where chance has it.
func cutBy(r *rand.Rand, said []piece) (cut []piece) {
	for _, p := range said {
		for b := p.bytes; len(b) > 0; {
			n := 1 + r.IntN(len(b))
			if r.IntN(2) == 0 {
				n = min(len(b), 1+r.IntN(8))
			}
			cut = append(cut, piece{p.client, b[:n]})
			b = b[n:]
		}
	}
	return cut
}

func TestLinesDoNotDependOnHowTheyAreCut(t *testing.T) {
	for _, c := range conversations() {
		want := read(t, c.kind, c.said)
		for seed := range uint64(20) {
			if diff := cmp.Diff(want, read(t, c.kind, cutBy(rand.New(rand.NewPCG(seed, 1)), c.said))); diff != "" {
				t.Errorf("%s, %s, seed %d (-whole +cut):\n%s", c.kind, c.name, seed, diff)
			}
		}
		checkLines(t, want)
	}
}

// What is broken in one byte is no conversation of anybody's, and is read the
// same however it is cut.
func TestBrokenConversationsAreReadTheSameHoweverTheyAreCut(t *testing.T) {
	for i, c := range conversations() {
		for seed := range uint64(30) {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			said := slices.Clone(c.said)
			for range 1 + r.IntN(3) {
				n := r.IntN(len(said))
				p := &said[n]
				p.bytes = slices.Clone(p.bytes)
				p.bytes[r.IntN(min(len(p.bytes), 300))] = byte(r.IntN(256))
			}
			want := read(t, c.kind, said)
			if diff := cmp.Diff(want, read(t, c.kind, cutBy(r, said))); diff != "" {
				t.Fatalf("%s, %s, seed %d (-whole +cut):\n%s", c.kind, c.name, seed, diff)
			}
			checkLines(t, want)
		}
	}
}

// checkLines finds what no line may be.
func checkLines(t testing.TB, lines []wire.Line) {
	t.Helper()
	for _, l := range lines {
		for _, s := range []string{l.Text, l.Command, l.Subject, l.ID} {
			if n := utf8.RuneCountInString(s); n > 300 || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("got %q of %d runes, want at most 300 printable ones", s, n)
			}
		}
		if l.Text == "" {
			t.Errorf("got %+v, want a text", l)
		}
	}
}

func TestADecoderKeepsLittle(t *testing.T) {
	const times = 4
	mb := bytes.Repeat([]byte("x"), 1<<20)
	for _, c := range []struct {
		name, kind, begin string
		again             []byte
	}{
		{"a text of a gigabyte", "redis", "*2\r\n$3\r\nSET\r\n$1000000000\r\n", mb},
		{"a line without an end", "redis", "+", mb},
		{"an array without an end", "redis", "*1000000000\r\n", bytes.Repeat([]byte("$4\r\nabcd\r\n"), 20<<10)},
		{"commands that nobody answers", "redis", "", bytes.Repeat([]byte(resp("EVAL", strings.Repeat("s", 50), "1", strings.Repeat("k", 200), "v")), 1000)},
		{"a frame of a gigabyte", "kafka", "\x30\x00\x00\x00\x00\x00\x00\x07", mb},
		{"requests that nobody answers", "kafka", "", bytes.Repeat([]byte("\x00\x00\x00\x0c\x00\x03\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00"), 4<<10)},
		{"messages that are never whole", "rabbitmq", "", anyChannels()},
		{"statements that nobody closes", "postgres", "\x00\x00\x00\x08\x00\x03\x00\x00", anyStatements()},
		{"a query of a gigabyte", "postgres", "\x00\x00\x00\x08\x00\x03\x00\x00Q\x3f\x00\x00\x00", mb},
		{"a body of a gigabyte", "http", "POST / HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n", mb},
		{"a head without an end", "http", "GET / HTTP/1.1\r\n", mb},
		{"requests that nobody answers", "http", "", bytes.Repeat([]byte("GET /"+strings.Repeat("x", 100)+" HTTP/1.1\r\n\r\n"), 1500)},
	} {
		t.Run(c.kind+": "+c.name, func(t *testing.T) {
			d, err := wire.New(c.kind)
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for _, said := range []func([]byte) []wire.Line{d.Client, d.Server} {
				said([]byte(c.begin))
				for range times {
					said(c.again)
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 512<<10 {
				t.Errorf("got %d KB kept, want at most 512", kept>>10)
			}
			runtime.KeepAlive(d)
		})
	}
}

// anyChannels begins a message on every channel there can be.
func anyChannels() []byte {
	var b strings.Builder
	for n := range 1 << 10 {
		b.WriteString(call(uint16(n), 20, 10, ""))
		b.WriteString(call(uint16(n), 60, 40, uint16(0), strings.Repeat("x", 100), "k", byte(0)))
	}
	return []byte(b.String())
}

func anyStatements() []byte {
	var b []byte
	for n := range 1 << 10 {
		name := strings.Repeat("s", 1+n%90) + string(rune('a'+n%26))
		body := name + "\x00SELECT " + strings.Repeat("x", 300) + "\x00\x00\x00"
		b = append(b, 'P', 0, 0, byte((len(body)+4)>>8), byte(len(body)+4))
		b = append(b, body...)
	}
	return b
}

// fuzz reads any bytes, of which each says who says them and where to cut.
func fuzz(f *testing.F, kind string) {
	for _, c := range conversations() {
		if c.kind == kind {
			for _, p := range c.said {
				f.Add(p.bytes[:min(len(p.bytes), 4<<10)], p.bytes[:0], uint64(1))
			}
			for i := 1; i < len(c.said); i++ {
				f.Add(c.said[i-1].bytes[:min(len(c.said[i-1].bytes), 4<<10)], c.said[i].bytes[:min(len(c.said[i].bytes), 4<<10)], uint64(i))
			}
		}
	}
	f.Fuzz(func(t *testing.T, client, server []byte, seed uint64) {
		said := []piece{{true, client}, {false, server}, {true, server}, {false, client}}
		want := read(t, kind, said)
		checkLines(t, want)
		if diff := cmp.Diff(want, read(t, kind, cutBy(rand.New(rand.NewPCG(seed, 2)), said))); diff != "" {
			t.Errorf("(-whole +cut):\n%s", diff)
		}
	})
}

func FuzzRedis(f *testing.F)    { fuzz(f, "redis") }
func FuzzRabbitMQ(f *testing.F) { fuzz(f, "rabbitmq") }
func FuzzKafka(f *testing.F)    { fuzz(f, "kafka") }
func FuzzPostgres(f *testing.F) { fuzz(f, "postgres") }
func FuzzHTTP(f *testing.F)     { fuzz(f, "http") }

func TestAnUnknownKindIsAnErrorThatNamesTheKnown(t *testing.T) {
	_, err := wire.New("nats")
	for _, want := range append(kinds, "nats") {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %s", err, want)
		}
	}
}
