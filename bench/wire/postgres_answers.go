package wire

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// answered takes what was asked up to and with the first of these kinds.
func (t *postgresTalk) answered(kinds string) (a postgresAsked) {
	i := slices.IndexFunc(t.asked, func(a postgresAsked) bool { return strings.IndexByte(kinds, a.kind) >= 0 })
	if i >= 0 {
		a = t.asked[i]
		t.asked = slices.Delete(t.asked, 0, i+1)
	}
	return a
}

// now is what the server answers at present.
func (t *postgresTalk) now(kinds string) postgresAsked {
	for _, a := range t.asked {
		if strings.IndexByte(kinds, a.kind) >= 0 {
			return a
		}
	}
	return postgresAsked{}
}

func (t *postgresTalk) answers(kind byte, payload []byte, total int) (Line, bool) {
	c := cursor{rest: payload}
	switch kind {
	case 'R':
		return Line{Command: "startup", Text: fmt.Sprintf("-> authentication %d", c.u32()), Noise: true}, true
	case 'Z':
		t.answered("SQ")
		t.rows, t.row = 0, ""
	case '1':
		t.answered("P")
	case '2':
		t.answered("B")
	case 't':
		if a := t.now("D"); a.of != nil {
			a.of.in = nil
			for range min(c.u16(), 256) {
				a.of.in = append(a.of.in, c.u32())
			}
		}
	case 'n':
		t.answered("D")
	case 'T':
		t.described(&c)
	case 'D':
		if t.rows++; t.rows == 1 {
			t.row = t.firstRow(&c)
		}
	case 'C', 's', 'I':
		a := t.now("QE")
		if a.kind == 'E' {
			t.answered("E")
		}
		tag := map[byte]string{'s': "suspended", 'I': "nothing was asked"}[kind]
		if kind == 'C' {
			tag = c.zero()
		}
		l := Line{Command: a.command, Subject: a.subject, Text: "-> " + tag, Noise: a.noise}
		if t.rows > 0 {
			l.Text += fmt.Sprintf(": %d rows, the first %s", t.rows, t.row)
			if t.rows == 1 {
				l.Text = "-> " + tag + ": 1 row " + t.row
			}
		}
		t.rows, t.row = 0, ""
		return l, true
	case 'E', 'N':
		a := t.now("QEPB")
		l := Line{Command: a.command, Subject: a.subject, Text: "-> " + fault(&c, map[byte]string{'E': "error", 'N': "notice"}[kind]), Noise: kind == 'N'}
		return l, true
	case 'A':
		pid, channel := c.u32(), c.zero()
		return Line{Command: "NOTIFY", Subject: channel, Text: fmt.Sprintf("-> notification on %s from %d: %s", text([]byte(channel)).word(60), pid, text([]byte(c.zero())).quote(120))}, true
	case 'G', 'H', 'W':
		a := t.now("QE")
		return Line{Command: a.command, Subject: a.subject, Text: "-> copying begins"}, true
	}
	return Line{}, false
}

// described notes the types of the columns that a statement gives.
func (t *postgresTalk) described(c *cursor) {
	var types, formats []int
	for range min(c.u16(), 256) {
		c.zero()
		c.take(6)
		types = append(types, c.u32())
		c.take(6)
		formats = append(formats, c.u16())
	}
	for i := range t.asked {
		a := &t.asked[i]
		switch {
		case a.kind == 'D':
			if a.of != nil && !c.bad {
				a.of.out = types
			}
			t.answered("D")
			return
		case a.kind == 'Q':
			a.of, a.format = &statement{out: types}, formats
			return
		}
	}
}

func (t *postgresTalk) firstRow(c *cursor) string {
	a := t.now("QE")
	if a.secret {
		return "(" + hidden + ")"
	}
	var values []string
	for i := range min(c.u16(), 50) {
		oid := 0
		if a.of != nil && i < len(a.of.out) {
			oid = a.of.out[i]
		}
		values = append(values, readValue(c, formatOf(a.format, i), oid))
		if c.bad {
			break
		}
	}
	return "(" + clip(strings.Join(values, ", "), 200) + ")"
}

func fault(c *cursor, kind string) string {
	var code, message string
	for !c.bad {
		switch field := c.u8(); field {
		case 0:
			c.bad = true
		case 'C':
			code = c.zero()
		case 'M':
			message = c.zero()
		default:
			c.zero()
		}
	}
	return fmt.Sprintf("%s %s %s", kind, code, message)
}

var (
	sqlSpace    = regexp.MustCompile(`\s+`)
	sqlComment  = regexp.MustCompile(`^(\s*(--[^\n]*(\n|$)|/\*[^*]*\*/))*\s*`)
	sqlTable    = regexp.MustCompile(`(?i)\b(?:into|from|update|table(?: if (?:not )?exists)?|join|copy|listen|notify)\s+(?:only\s+)?([\w".]+)`)
	sqlPassword = regexp.MustCompile(`(?i)(password\s*(?:=|:=)?\s*)(?:'(?:[^']|'')*'?|\$\$.*)`)
)

// sqlAbout is what a statement does, and the table that it is about.
func sqlAbout(sql string) (command, subject string) {
	sql = sql[:min(len(sql), mostSQL)]
	words := strings.Fields(sqlComment.ReplaceAllString(sql, ""))
	if len(words) == 0 {
		return "", ""
	}
	command = strings.ToUpper(strings.Trim(words[0], ";("))
	if m := sqlTable.FindStringSubmatch(sql); m != nil {
		subject = strings.ReplaceAll(m[1], `"`, "")
	}
	return command, subject
}

// oneLine shows a statement of so many bytes, without a password.
func oneLine(sql string, size int) string {
	shown := sqlPassword.ReplaceAllString(sql[:min(len(sql), mostSQL)], "${1}"+hidden)
	shown = strings.TrimSpace(sqlSpace.ReplaceAllString(shown, " "))
	if len(sql) > mostSQL || size > len(sql)+100 {
		shown += "…"
	}
	return shown
}

func sqlSecret(sql string) bool { return strings.Contains(strings.ToLower(sql), "passw") }

func sqlDull(sql string) bool {
	words := strings.Fields(sqlComment.ReplaceAllString(sql[:min(len(sql), mostSQL)], ""))
	return len(words) == 0 || strings.Trim(words[0], ";") == "" || strings.EqualFold(words[0], "SET") || strings.EqualFold(words[0], "SHOW")
}
