package wire

import (
	"fmt"
	"regexp"
	"strings"
)

// show prints an answer as redis-cli does, on one line.
func (v *value) show() string {
	if v.null || !v.many() || v.count == 0 {
		return v.inner()
	}
	if v.kind == '%' {
		return v.inner()
	}
	var b strings.Builder
	for i, item := range v.items {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%d) %s", i+1, item.inner())
	}
	return b.String() + v.missing()
}

func (v *value) many() bool { return strings.IndexByte("*~>%|", v.kind) >= 0 }

func (v *value) missing() string {
	if kept := len(v.items); kept < v.count {
		return fmt.Sprintf(" … (%d in all)", v.count)
	}
	return ""
}

func (v *value) inner() string {
	switch {
	case v.null:
		return "(nil)"
	case v.kind == '%':
		var pairs []string
		for i := 0; i+1 < len(v.items); i += 2 {
			pairs = append(pairs, v.items[i].inner()+": "+v.items[i+1].inner())
		}
		if len(pairs) < v.count {
			pairs = append(pairs, fmt.Sprintf("… (%d in all)", v.count))
		}
		return "{" + strings.Join(pairs, ", ") + "}"
	case v.many():
		var items []string
		for _, item := range v.items {
			items = append(items, item.inner())
		}
		return "[" + strings.Join(items, " ") + v.missing() + "]"
	}
	switch v.kind {
	case '+':
		return clip(string(v.text.kept), mostText)
	case '-', '!':
		return "(error) " + clip(string(v.text.kept), mostText)
	case ':':
		return "(integer) " + clip(string(v.text.kept), 40)
	case '#':
		if string(v.text.kept) == "t" {
			return "(true)"
		}
		return "(false)"
	case ',', '(':
		return "(number) " + clip(string(v.text.kept), 100)
	case '=':
		if len(v.text.kept) >= 4 { // its format, such as txt:
			return bytesOf{v.text.kept[4:], v.text.size - 4}.quote(200)
		}
	}
	return v.text.quote(200)
}

// entryID is what Redis Streams name an entry: milliseconds, then a number.
var entryID = regexp.MustCompile(`^[0-9]{10,20}-[0-9]{1,20}$`)

// entry finds the first entry id in it.
func (v *value) entry() string {
	if v.kind == '$' && v.text.size < 45 && entryID.Match(v.text.kept) {
		return string(v.text.kept)
	}
	for _, item := range v.items {
		if id := item.entry(); id != "" {
			return id
		}
	}
	return ""
}
