package wire

import (
	"bytes"
	"strconv"
)

// value is what RESP2 and RESP3 are made of. Of long ones only a part is kept.
type value struct {
	kind  byte
	null  bool
	text  bytesOf
	items []*value // those kept; of a map keys and values in turn
	count int      // of all items
}

// What is kept of one value.
const (
	mostOfText = 400
	mostTexts  = 16 << 10
	mostValues = 400
	mostDeep   = 32
	mostLine   = 64 << 10
	mostBulk   = 1 << 30
)

// resp cuts one direction into values.
type resp struct {
	requests bool // of a client, which may also say a command in plain words
	lost     bool

	line  bytesOf // a first line under way
	bulk  *value  // a text under way
	left  int     // its bytes still to come, with the line's end
	stack []*open

	values, texts int // kept of the value under way
}

type open struct {
	value *value
	left  int
}

// feed calls see for each value that is complete. It reports whether the
// protocol was broken just now; from then on nothing is read.
func (r *resp) feed(b []byte, see func(*value)) (broken bool) {
	for len(b) > 0 && !r.lost {
		if r.bulk != nil {
			n := min(r.left, len(b))
			r.take(r.bulk, b[:max(0, min(n, r.left-2))])
			b, r.left = b[n:], r.left-n
			if r.left == 0 {
				v := r.bulk
				r.bulk = nil
				r.done(v, see)
			}
			continue
		}
		i := bytes.IndexByte(b, '\n')
		n := i + 1
		if i < 0 {
			n = len(b)
		}
		r.line.take(b[:n], mostOfText*2)
		b = b[n:]
		if i < 0 || r.line.size > mostLine {
			r.lost = r.line.size > mostLine
			continue
		}
		line := r.line
		r.line = bytesOf{}
		r.begin(line, see)
	}
	if r.lost && r.stack != nil || r.lost && r.line.kept != nil {
		r.stack, r.bulk, r.line = nil, nil, bytesOf{}
	}
	return r.lost
}

func (r *resp) take(v *value, b []byte) {
	was := len(v.text.kept)
	v.text.take(b, min(mostOfText, was+mostTexts-r.texts))
	r.texts += len(v.text.kept) - was
}

// begin reads a value's first line.
func (r *resp) begin(line bytesOf, see func(*value)) {
	if n := len(line.kept); n == line.size { // else its end is not kept
		line.kept = bytes.TrimSuffix(line.kept[:n-1], []byte("\r"))
		line.size = len(line.kept)
	}
	if line.size == 0 {
		r.lost = !r.requests // clients may send empty lines
		return
	}
	r.values++
	v := &value{kind: line.kept[0]}
	rest := line.kept[1:]
	if r.requests && len(r.stack) == 0 && v.kind != '*' {
		v.kind = '*'
		for _, w := range bytes.Fields(line.kept) {
			v.items = append(v.items, &value{kind: '$', text: text(w)})
		}
		v.count = len(v.items)
		r.done(v, see)
		return
	}
	switch v.kind {
	case '+', '-', ':', ',', '(', '#':
		v.text.size = line.size - 1 - len(rest)
		r.take(v, rest)
		r.done(v, see)
	case '_':
		v.null = true
		r.done(v, see)
	case '$', '!', '=', '*', '~', '>', '%', '|':
		n, err := strconv.Atoi(string(rest))
		switch {
		case err != nil || n < -1 || n > mostBulk || len(r.stack) == mostDeep:
			r.lost = true
		case n == -1:
			v.null = true
			r.done(v, see)
		case v.kind == '$' || v.kind == '!' || v.kind == '=':
			r.bulk, r.left = v, n+2
		default:
			v.count = n
			if v.kind == '%' || v.kind == '|' {
				n *= 2
			}
			if n > 0 {
				r.stack = append(r.stack, &open{v, n})
			} else if v.kind != '|' {
				r.done(v, see)
			}
		}
	default:
		r.lost = true
	}
}

// done puts a value where it belongs, and what that completes in turn.
func (r *resp) done(v *value, see func(*value)) {
	for len(r.stack) > 0 {
		top := r.stack[len(r.stack)-1]
		if r.values <= mostValues {
			top.value.items = append(top.value.items, v)
		}
		if top.left--; top.left > 0 {
			return
		}
		r.stack = r.stack[:len(r.stack)-1]
		if v = top.value; v.kind == '|' {
			return // it describes the value that follows
		}
	}
	r.values, r.texts = 0, 0
	see(v)
}
