package wire

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	mostText = 300 // runes of a line
	hidden   = "xxxxx"
)

// clip makes one printable line of at most so many runes.
func clip(s string, runes int) string {
	var b strings.Builder
	n := 0
	for i, r := range s {
		if n++; n == runes && utf8.RuneCountInString(s[i:]) > 1 {
			b.WriteRune('…')
			break
		}
		switch {
		case r == utf8.RuneError || r == '\n' || r == '\r' || r == '\t':
			b.WriteRune(' ')
		case !unicode.IsPrint(r):
			b.WriteRune('?')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// bytesOf is a string of which only the beginning may have been kept.
type bytesOf struct {
	kept []byte
	size int // of all of it
}

// take adds to what is kept, at most up to a bound.
func (s *bytesOf) take(b []byte, bound int) {
	s.size += len(b)
	s.kept = append(s.kept, b[:max(0, min(len(b), bound-len(s.kept)))]...)
}

// quote shows at most so many of its bytes, and says where there are more.
func (s bytesOf) quote(bound int) string {
	b := whole(s.kept[:min(len(s.kept), bound)], s.size)
	q := strconv.Quote(string(b))
	if plain := strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`); len(plain) < len(q)-2 && !strings.ContainsAny(plain, `\'`) {
		q = "'" + plain + "'" // as JSON is easier to read
	}
	if len(b) < s.size {
		return fmt.Sprintf("%s… (%d bytes)", q, s.size)
	}
	return q
}

// word shows it without quotes where it is a plain word.
func (s bytesOf) word(bound int) string {
	q := s.quote(bound)
	if s.size == 0 || s.size > bound || strings.ContainsAny(q, "\\ '") {
		return q
	}
	return strings.Trim(q, `"`)
}

// whole cuts off a rune of which not all was kept.
func whole(b []byte, size int) []byte {
	if len(b) == size {
		return b
	}
	for i := 1; i <= min(3, len(b)); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

func text(b []byte) bytesOf { return bytesOf{b, len(b)} }

// queue holds what awaits an answer, in order. Past its bound it only counts, so
// that the answers keep their turn.
type queue[T any] struct {
	known   []T
	unknown int
}

const mostAsked = 256

func (q *queue[T]) push(v T) {
	if q.unknown > 0 || len(q.known) == mostAsked {
		q.unknown++
		return
	}
	q.known = append(q.known, v)
}

// pop reports false where nothing is known of what is answered.
func (q *queue[T]) pop() (v T, ok bool) {
	switch {
	case len(q.known) > 0:
		v, q.known = q.known[0], q.known[1:]
		return v, true
	case q.unknown > 0:
		q.unknown--
	}
	return v, false
}
