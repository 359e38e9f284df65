package report

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// harness is a sentence that the harness wrote: a note, a reason, a claim. It
// stands as it is in the result, and its Chinese is looked up; what has none, such as a
// broker's own error, stays.
func harness(s string) text {
	return text{[]part{{s: s, quote: true}}, []part{{s: inChinese(s), quote: true}}}
}

// pattern is a sentence with places, as a table has it.
type pattern struct {
	begin string
	form  *regexp.Regexp
	zh    string
	order []int // of the places, as they stand in the English
}

// fewLetters around its places make a sentence so common that only numbers may
// stand in them.
const fewLetters = 12

// patterns are made of the tables once, the most literal first.
var patterns = sync.OnceValue(func() []pattern {
	place := regexp.MustCompile(`\{(\d)\}`)
	var all []string
	for _, table := range writtenTables() {
		all = slices.AppendSeq(all, maps.Keys(table))
	}
	bare := func(s string) int { return len(place.ReplaceAllString(s, "")) }
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(bare(b), bare(a)), strings.Compare(a, b)) })
	var out []pattern
	for _, en := range all {
		p := pattern{begin: en[:strings.IndexByte(en+"{", '{')]}
		p.zh, _ = writtenOf(en)
		form, any := "(?s)^", "(.+?)"
		if bare(en) < fewLetters {
			any = `([-+\d.,]+)`
		}
		for i, literal := range place.Split(en, -1) {
			if i > 0 {
				form += any
			}
			form += regexp.QuoteMeta(literal)
		}
		p.form = regexp.MustCompile(form + "$")
		for _, m := range place.FindAllStringSubmatch(en, -1) {
			p.order = append(p.order, int(m[1][0]-'0'))
		}
		out = append(out, p)
	}
	return out
})

func writtenOf(en string) (string, bool) {
	for _, table := range writtenTables() {
		if zh, ok := table[en]; ok {
			return zh, true
		}
	}
	return "", false
}

func writtenTables() []map[string]string {
	return []map[string]string{chineseNotes, chineseTruth}
}

// inChinese goes by whole sentences, then by those that a semicolon joins; what
// stands in a sentence's places is looked up in its turn.
func inChinese(s string) string {
	if zh, ok := writtenOf(s); ok {
		return zh
	}
	if zh, ok := chineseOf(s); ok {
		return zh
	}
	for _, p := range patterns() {
		if len(p.order) == 0 || !strings.HasPrefix(s, p.begin) {
			continue
		}
		m := p.form.FindStringSubmatch(s)
		if m == nil {
			continue
		}
		var pairs []string
		for i, n := range p.order {
			pairs = append(pairs, "{"+string(rune('0'+n))+"}", inChinese(m[1+i]))
		}
		return strings.NewReplacer(pairs...).Replace(p.zh)
	}
	if parts := strings.Split(s, "; "); len(parts) > 1 {
		for i := range parts {
			parts[i] = inChinese(parts[i])
		}
		return strings.Join(parts, "；")
	}
	return s
}
