package load

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Content is what the bodies of messages are made of: a broker that compresses
// is flattered by some of it.
type Content string

// The contents.
const (
	Zeros  Content = "zeros"  // one byte, over and over
	Text   Content = "text"   // words: compressible, as text is
	Random Content = "random" // incompressible, also between neighbours
	JSON   Content = "json"   // an order
)

// Contents lists them.
func Contents() []Content { return []Content{Zeros, Text, Random, JSON} }

// ParseContent reads a content's name; "" is Zeros. The error lists the names.
func ParseContent(name string) (Content, error) {
	c := Content(strings.TrimSpace(name))
	if c == "" {
		return Zeros, nil
	}
	if !slices.Contains(Contents(), c) {
		return "", fmt.Errorf("payload content %q: unknown; the contents are %v", name, Contents())
	}
	return c, nil
}

// ringBytes and ringMost bound the bodies that messages share. Together they
// are as long as a large batch, so that one that is compressed as a whole has
// no random body twice.
const (
	ringBytes = 1 << 20
	ringMost  = 1 << 14
)

// bodies returns those that messages take turns with, each of so many bytes.
func bodies(c Content, size int, seed uint64) [][]byte {
	if size == 0 {
		return [][]byte{nil}
	}
	r := rand.New(rand.NewPCG(mix(seed), mix(uint64(size))))
	ring := make([][]byte, 1)
	if c == Text || c == Random || c == JSON {
		ring = make([][]byte, min(max(2, ringBytes/size), ringMost))
	}
	for i := range ring {
		switch c {
		case Text:
			ring[i] = text(r, make([]byte, 0, size+16), size)
		case Random:
			ring[i] = random(r, size)
		case JSON:
			ring[i] = order(r, size)
		default:
			ring[i] = make([]byte, size)
		}
	}
	return ring
}

func random(r *rand.Rand, size int) []byte {
	b := make([]byte, size)
	for i := 0; i < size; i += 8 {
		for j, v := i, r.Uint64(); j < min(i+8, size); j++ {
			b[j], v = byte(v), v>>8
		}
	}
	return b
}

// text appends words to b until it is size bytes long.
func text(r *rand.Rand, b []byte, size int) []byte {
	words := [...]string{"the", "sale", "opens", "at", "noon", "and", "every", "buyer", "wants", "one", "voucher",
		"of", "a", "stock", "that", "is", "gone", "before", "most", "have", "seen", "page", "load", "in", "queue", "they", "wait", "for", "an", "answer"}
	for len(b) < size {
		b = append(append(b, words[r.IntN(len(words))]...), ' ')
	}
	return b[:size:size]
}

// order returns a document like those of the shop, of exactly size bytes: as
// many items as there is room for, and a note that takes the rest. One that is
// too short for an order is a string.
func order(r *rand.Rand, size int) []byte {
	const end = `],"note":""}`
	b := make([]byte, 0, size+64)
	b = fmt.Appendf(b, `{"order":"%012d","user":%d,"voucher":%d,"at":%d,"items":[`,
		r.Uint64N(1e12), 1e6+r.Uint64N(9e6), 1+r.Uint64N(9), 1.7e12+r.Uint64N(1e11))
	if len(b)+len(end) > size {
		return jsonString(r, size)
	}
	for {
		item := fmt.Sprintf(`{"sku":"%08x","quantity":%d,"cents":%d}`, r.Uint32(), 1+r.IntN(5), 100+r.IntN(99900))
		if last := b[len(b)-1]; last != '[' {
			item = "," + item
		}
		if len(b)+len(item)+len(end) > size {
			break
		}
		b = append(b, item...)
	}
	b = append(b, end[:len(end)-2]...)
	return append(text(r, b, size-2), `"}`...)
}

func jsonString(r *rand.Rand, size int) []byte {
	if size < 2 {
		return []byte(strconv.Itoa(r.IntN(10)))
	}
	b := append(make([]byte, 0, size+16), '"')
	return append(text(r, b, size-1), '"')
}
