package wire

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// postgresTalk pairs what the server says with the statements that it answers.
type postgresTalk struct {
	in, out    frames
	startup    bool // the client has begun, and its messages have types
	encrypts   bool // the client has asked for it, which the server answers with one byte
	blind      bool // what is encrypted is not read
	statements map[string]*statement
	portals    map[string]*bound
	asked      []postgresAsked
	behind     bool // more was asked than is kept: answers have no names
	rows       int
	row        string
}

// statement is what Parse named.
type statement struct {
	sql     bytesOf
	in, out []int // type ids, where they were told
}

// bound is a statement with its values.
type bound struct {
	of     *statement
	shown  string
	format []int // of the columns
}

type postgresAsked struct {
	kind             byte // of the message: P, B, D, E, S or Q
	command, subject string
	of               *statement
	format           []int
	secret           bool // it is about passwords
	noise            bool
}

const (
	mostStatements = 64
	mostSQL        = 600
)

func newPostgres() *postgresTalk {
	return &postgresTalk{statements: map[string]*statement{}, portals: map[string]*bound{}}
}

func (t *postgresTalk) client(b []byte) (lines []Line) {
	was := t.in.lost
	if !t.blind {
		t.in.feed(b, t.clientSize, func(kept []byte, total int) {
			if t.blind {
				return
			}
			if !t.startup {
				lines = append(lines, t.start(kept)...)
			} else if l, ok := t.says(kept[0], kept[5:], total); ok {
				lines = append(lines, l)
			}
		})
	}
	if t.in.lost && !was {
		lines = append(lines, notRead("PostgreSQL's protocol", "the client"))
	}
	return lines
}

func (t *postgresTalk) clientSize(b []byte) int {
	if t.startup {
		return typedSize(b)
	}
	if len(b) < 4 {
		return 0
	}
	if n := int(int32(binary.BigEndian.Uint32(b))); n >= 8 && n <= most {
		return n
	}
	return -1
}

func typedSize(b []byte) int {
	if len(b) < 5 {
		return 0
	}
	if n := int(int32(binary.BigEndian.Uint32(b[1:]))); n >= 4 {
		return 1 + n
	}
	return -1
}

func (t *postgresTalk) start(b []byte) []Line {
	l := Line{Command: "startup", Noise: true}
	switch code := binary.BigEndian.Uint32(b[4:]); code {
	case 80877103, 80877104:
		t.encrypts = true
		l.Text = "may it be encrypted?"
	case 80877102:
		l.Command, l.Text, l.Noise = "cancel", "cancel what another connection is doing", false
	default:
		t.startup = true
		l.Text = fmt.Sprintf("startup, protocol %d.%d", code>>16, code&0xffff)
	}
	return []Line{l}
}

func (t *postgresTalk) server(b []byte) (lines []Line) {
	was := t.out.lost
	t.out.feed(b, func(b []byte) int {
		if t.encrypts {
			return 1
		}
		return typedSize(b)
	}, func(kept []byte, total int) {
		if t.encrypts {
			t.encrypts = false
			l := Line{Command: "startup", Text: "-> not encrypted", Noise: true}
			if kept[0] != 'N' {
				t.blind, t.out.lost, was = true, true, true
				l = Line{Command: "startup", Text: "-> encrypted: what is said from here on is not read"}
			}
			lines = append(lines, l)
			return
		}
		if l, ok := t.answers(kept[0], kept[5:], total); ok {
			lines = append(lines, l)
		}
	})
	if t.out.lost && !was {
		lines = append(lines, notRead("PostgreSQL's protocol", "the server"))
	}
	return lines
}

func (t *postgresTalk) ask(a postgresAsked) {
	if t.behind = t.behind || len(t.asked) == mostAsked; !t.behind {
		t.asked = append(t.asked, a)
	}
}

// zero reads a text that ends with a zero byte.
func (c *cursor) zero() string {
	for i, b := range c.rest {
		if b == 0 {
			return string(c.take(i + 1)[:i])
		}
	}
	s := string(c.rest) // the rest was not kept
	c.rest, c.bad = nil, true
	return s
}

func (t *postgresTalk) says(kind byte, payload []byte, total int) (Line, bool) {
	c := cursor{rest: payload}
	switch kind {
	case 'p':
		return Line{Command: "password", Text: "password " + hidden, Noise: true}, true
	case 'Q':
		sql := c.zero()
		command, subject := sqlAbout(sql)
		t.ask(postgresAsked{kind: 'Q', command: command, subject: subject, secret: sqlSecret(sql), noise: sqlDull(sql)})
		return Line{Command: command, Subject: subject, Text: oneLine(sql, total), Noise: sqlDull(sql)}, true
	case 'P':
		name, sql := c.zero(), c.zero()
		s := &statement{sql: bytesOf{[]byte(sql[:min(len(sql), mostSQL)]), len(sql)}}
		for range min(c.u16(), 256) {
			s.in = append(s.in, c.u32())
		}
		put(t.statements, name, s)
		command, subject := sqlAbout(sql)
		t.ask(postgresAsked{kind: 'P', command: command, subject: subject})
		return Line{Command: command, Subject: subject, Text: "Parse " + oneLine(sql, total), Noise: true}, true
	case 'B':
		portal, name := c.zero(), c.zero()
		b := readBind(&c, t.statements[name])
		a := postgresAsked{kind: 'B'}
		if b.of != nil {
			a.command, a.subject = sqlAbout(string(b.of.sql.kept))
		}
		t.ask(a)
		put(t.portals, portal, b)
	case 'D':
		a := postgresAsked{kind: 'D'}
		if what, name := c.u8(), c.zero(); what == 'S' {
			a.of = t.statements[name]
		} else if b := t.portals[name]; b != nil {
			a.of = b.of
		}
		t.ask(a)
	case 'E':
		b := t.portals[c.zero()]
		if b == nil || b.of == nil {
			t.ask(postgresAsked{kind: 'E'})
			return Line{Command: "Execute", Text: "Execute what was prepared before this was read"}, true
		}
		sql := string(b.of.sql.kept)
		command, subject := sqlAbout(sql)
		secret := sqlSecret(sql)
		t.ask(postgresAsked{'E', command, subject, b.of, b.format, secret, sqlDull(sql)})
		shown := b.shown
		if secret && shown != "" {
			shown = " [" + hidden + "]"
		}
		said := oneLine(sql, b.of.sql.size)
		if shown != "" { // there must be room for both
			said = clip(said, mostText/2)
		}
		return Line{Command: command, Subject: subject, Text: said + shown, Noise: sqlDull(sql)}, true
	case 'S':
		t.ask(postgresAsked{kind: 'S'})
	case 'X':
		return Line{Command: "terminate", Text: "terminate", Noise: true}, true
	case 'd':
		return Line{}, false // of a COPY
	case 'F':
		t.ask(postgresAsked{kind: 'Q', command: "function call"})
		return Line{Command: "function call", Text: fmt.Sprintf("function call (%d bytes)", total)}, true
	}
	return Line{}, false
}

func put[T any](m map[string]T, name string, v T) {
	if _, had := m[name]; !had && (len(m) >= mostStatements || len(name) > 100) {
		clear(m) // what is not known is said to be not known
	}
	m[name] = v
}

func readBind(c *cursor, of *statement) *bound {
	b := &bound{of: of}
	formats := numbers(c)
	var values []string
	n := c.u16()
	for i := range min(n, 100) {
		oid := 0
		if of != nil && i < len(of.in) {
			oid = of.in[i]
		}
		values = append(values, fmt.Sprintf("$%d=%s", i+1, readValue(c, formatOf(formats, i), oid)))
		if c.bad {
			break
		}
	}
	if len(values) > 0 {
		b.shown = " [" + clip(strings.Join(values, " "), mostText/2-5) + "]"
	}
	if n <= 100 {
		b.format = numbers(c)
	}
	return b
}

func numbers(c *cursor) (ns []int) {
	for range min(c.u16(), 256) {
		ns = append(ns, c.u16())
	}
	return ns
}

// formatOf is 0 for text and 1 for binary: one for each, one for all, or none.
func formatOf(formats []int, i int) int {
	switch {
	case len(formats) == 1:
		return formats[0]
	case i < len(formats):
		return formats[i]
	}
	return 0
}

// readValue shows a value where its bytes tell what it is: a text, or a number or
// a text of a type that was told.
func readValue(c *cursor, format, oid int) string {
	n := int(int32(c.u32()))
	if n == -1 && !c.bad {
		return "NULL"
	}
	size := n
	b := c.take(min(max(n, 0), len(c.rest)))
	if c.bad || len(b) < size {
		c.bad = true
		return "…"
	}
	if format == 0 {
		return text(b).word(80)
	}
	number := func() int64 {
		v := binary.BigEndian.Uint64(append(make([]byte, 8-size), b...))
		return int64(v<<(64-8*size)) >> (64 - 8*size)
	}
	switch {
	case oid == 16 && size == 1:
		return fmt.Sprint(b[0] != 0)
	case oid == 21 && size == 2, oid == 23 && size == 4, oid == 20 && size == 8:
		return fmt.Sprint(number())
	case oid == 25, oid == 1043, oid == 1042, oid == 114, oid == 17 && utf8.Valid(b): // texts, json, and bytes that are one
		return text(b).word(80)
	case slices.Contains([]int{1001, 1005, 1007, 1009, 1015, 1016, 2951}, oid):
		return readArray(b)
	case oid == 3802 && size > 0: // jsonb, behind its version
		return text(b[1:]).word(80)
	case oid == 2950 && size == 16:
		return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	}
	return fmt.Sprintf("(%d bytes)", size)
}

// readArray shows a list of values that names its type itself.
func readArray(b []byte) string {
	c := cursor{rest: b}
	dimensions, _, oid := c.u32(), c.u32(), c.u32()
	if dimensions != 1 || slices.Contains([]int{1001, 1005, 1007, 1009, 1015, 1016, 2951}, oid) {
		return fmt.Sprintf("(%d bytes)", len(b))
	}
	n := c.u32()
	c.take(4)
	var values []string
	for range min(n, 10) {
		values = append(values, readValue(&c, 1, oid))
		if c.bad {
			break
		}
	}
	if n > len(values) {
		values = append(values, "…")
	}
	return "{" + strings.Join(values, ", ") + "}"
}
