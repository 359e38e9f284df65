package report

import (
	"html/template"
	"slices"
	"strconv"
	"strings"
)

// text is what people read, in English and in Chinese. The terminal and
// Markdown take the English, the page holds both.
type text struct{ en, zh []part }

// part is a piece of a text. The same words serve a table, a page and a chart,
// so a part knows no markup.
type part struct {
	s     string
	fig   *figure // s is how this number of the result is shown
	quote bool    // s stands in the result, and so in no table of pairs
	ref   string  // the place on the page that s leads to
}

// say is an English sentence and its Chinese, which must be in a table of
// pairs. {0} and so on are the arguments: a text, a figure, or a string.
func say(en string, args ...any) text {
	zh, ok := chineseOf(en)
	if !ok {
		zh = en
	}
	return text{fill(en, args, false), fill(zh, args, true)}
}

// many is say for a number of things, which Chinese does not inflect.
func many(n int64, one, more string, args ...any) text {
	if n == 1 {
		return say(one, args...)
	}
	return say(more, args...)
}

// raw is the same in both languages, and no word of either.
func raw(s string) text { p := []part{{s: s}}; return text{p, p} }

// quote is a string of the result, as it stands there.
func quote(s string) text { p := []part{{s: s, quote: true}}; return text{p, p} }

// term is a word of the result that has a Chinese one; others stay quoted.
func term(s string) text {
	if _, ok := chineseOf(s); ok {
		return say(s)
	}
	return quote(s)
}

func (f figure) text() text { p := []part{{s: f.String(), fig: &f}}; return text{p, p} }

// at makes the whole text lead to a place on the page.
func (t text) at(id string) text {
	point := func(ps []part) []part {
		ps = slices.Clone(ps)
		for i := range ps {
			ps[i].ref = id
		}
		return ps
	}
	return text{point(t.en), point(t.zh)}
}

func (t text) Empty() bool { return len(t.en) == 0 || t.String() == "" }

func (t text) String() string { return flat(t.en) }

// Chinese is the other language of String.
func (t text) Chinese() string { return flat(t.zh) }

func flat(ps []part) string {
	var b strings.Builder
	for _, p := range ps {
		b.WriteString(p.s)
	}
	return b.String()
}

func concat(ts ...text) text {
	var out text
	for _, t := range ts {
		out.en, out.zh = append(out.en, t.en...), append(out.zh, t.zh...)
	}
	return out
}

func pair(en, zh string) text { return text{[]part{{s: en}}, []part{{s: zh}}} }

func comma() text     { return pair(", ", "，") }
func semicolon() text { return pair("; ", "；") }
func colon() text     { return pair(": ", "：") }

// join puts sep between the texts that are not empty.
func join(sep text, ts ...text) text {
	var out text
	for _, t := range ts {
		if t.Empty() {
			continue
		}
		if len(out.en) > 0 {
			out = concat(out, sep)
		}
		out = concat(out, t)
	}
	return out
}

// or is the first text that is not empty.
func or(ts ...text) text {
	for _, t := range ts {
		if !t.Empty() {
			return t
		}
	}
	return text{}
}

func fill(pattern string, args []any, chinese bool) []part {
	var out []part
	for pattern != "" {
		open := strings.IndexByte(pattern, '{')
		if open < 0 {
			break
		}
		shut := strings.IndexByte(pattern[open:], '}')
		if shut < 0 {
			break
		}
		n, err := strconv.Atoi(pattern[open+1 : open+shut])
		if err != nil || n < 0 || n >= len(args) {
			break
		}
		if open > 0 {
			out = append(out, part{s: pattern[:open]})
		}
		out = append(out, parts(args[n], chinese)...)
		pattern = pattern[open+shut+1:]
	}
	if pattern != "" {
		out = append(out, part{s: pattern})
	}
	return out
}

func parts(arg any, chinese bool) []part {
	switch a := arg.(type) {
	case text:
		if chinese {
			return a.zh
		}
		return a.en
	case figure:
		return a.text().en
	case string:
		return []part{{s: a, quote: true}}
	case int:
		return []part{{s: strconv.Itoa(a)}}
	}
	return nil
}

// html is the text for the page: one language is hidden by the style.
func (t text) html() template.HTML { return t.markup("span", true) }

// svg is the text for the inside of an SVG text element.
func (t text) svg() template.HTML { return t.markup("tspan", false) }

func (t text) markup(tag string, links bool) template.HTML {
	var b strings.Builder
	if slices.EqualFunc(t.en, t.zh, func(a, b part) bool { return a.s == b.s && a.ref == b.ref }) {
		markup(&b, t.en, tag, links)
	} else {
		b.WriteString("<" + tag + ` class="en" lang="en">`)
		markup(&b, t.en, tag, links)
		b.WriteString("</" + tag + "><" + tag + ` class="zh" lang="zh-Hans">`)
		markup(&b, t.zh, tag, links)
		b.WriteString("</" + tag + ">")
	}
	return template.HTML(b.String()) // every part of it is escaped
}

func markup(b *strings.Builder, ps []part, tag string, links bool) {
	for i, p := range ps {
		if links && p.ref != "" && (i == 0 || ps[i-1].ref != p.ref) {
			b.WriteString(`<a href="#` + template.HTMLEscapeString(p.ref) + `">`)
		}
		switch {
		case p.fig != nil:
			b.WriteString("<" + tag + " " + p.fig.attributes() + ">" + template.HTMLEscapeString(p.s) + "</" + tag + ">")
		case p.quote && !links:
			b.WriteString(template.HTMLEscapeString(plain(p.s)))
		default:
			b.WriteString(template.HTMLEscapeString(p.s))
		}
		if links && p.ref != "" && (i == len(ps)-1 || ps[i+1].ref != p.ref) {
			b.WriteString("</a>")
		}
	}
}

// attr is an attribute in both languages; the page's script exchanges them.
func attr(name string, t text) template.HTMLAttr {
	en, zh := template.HTMLEscapeString(t.String()), template.HTMLEscapeString(t.Chinese())
	if en == zh {
		return template.HTMLAttr(name + `="` + en + `"`)
	}
	return template.HTMLAttr(name + `="` + en + `" data-zh-` + name + `="` + zh + `"`)
}

// swap is the inside of an element that can hold no other, with its Chinese in
// an attribute: <title>, <desc>, <option>.
func swap(t text) template.HTMLAttr {
	return template.HTMLAttr(`data-zh="` + template.HTMLEscapeString(t.Chinese()) + `"`)
}
