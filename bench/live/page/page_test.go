package page

import (
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pairs are the dictionary's entries: a key, the English, the Chinese.
var pairs = regexp.MustCompile(`(?:"([\w-]+)"|\b(\w+)): \["((?:[^"\\]|\\.)*)", "((?:[^"\\]|\\.)*)"\]`)

func dictionary(t *testing.T) map[string][2]string {
	t.Helper()
	words := map[string][2]string{}
	for _, m := range pairs.FindAllStringSubmatch(read(t, "words.js"), -1) {
		key := m[1] + m[2]
		if _, twice := words[key]; twice {
			t.Errorf("got the key %q twice in the dictionary", key)
		}
		words[key] = [2]string{m[3], m[4]}
	}
	return words
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := asset(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// code is all scripts but the dictionary, and the frame.
func code(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, name := range scripts() {
		if name != "words" {
			all.WriteString(read(t, name+".js"))
		}
	}
	all.WriteString(read(t, "lab.html"))
	return all.String()
}

func TestNoWordIsMissingInEitherLanguageAndNoneIsLeftOver(t *testing.T) {
	words, text := dictionary(t), code(t)
	if n := strings.Count(read(t, "words.js"), `: ["`); n != len(words) {
		t.Fatalf("got %d entries by their marks and %d that can be read", n, len(words))
	}
	used := map[string]bool{}
	for _, m := range regexp.MustCompile(`\bt\("(\w+)"|data-(?:t|label)="(\w+)"|\? "(\w+)" : "(\w+)"|t\("where_(\w+)"\)`).FindAllStringSubmatch(text, -1) {
		for _, key := range m[1:] {
			if _, there := words[key]; key != "" && (there || m[1]+m[2] != "") {
				used[key] = true
			}
		}
	}
	families := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?:\bt\(|known\(|key = )"(\w+_)" \+`).FindAllStringSubmatch(text, -1) {
		families[m[1]] = true
	}
	for key := range used {
		if _, ok := words[key]; !ok && !families[key] {
			t.Errorf("got no words for %q", key)
		}
	}
	for key, pair := range words {
		family := key[:strings.Index(key+"_", "_")] + "_"
		if !used[key] && !families[family] && !strings.Contains(text, `"`+key+`"`) {
			t.Errorf("got words for %q, which nothing says", key)
		}
		if pair[0] == "" || pair[1] == "" {
			t.Errorf("%s: got %q, want both languages", key, pair)
		}
		holes := regexp.MustCompile(`\{\d\}`)
		if diff := cmp.Diff(set(holes.FindAllString(pair[0], -1)), set(holes.FindAllString(pair[1], -1))); diff != "" {
			t.Errorf("%s: the languages fill in different things (-English +Chinese):\n%s", key, diff)
		}
		if rest, ok := strings.CutPrefix(key, "count_"); ok && words["means_"+rest][0] == "" {
			t.Errorf("got no meaning of the count %q", rest)
		}
	}
}

func set(list []string) []string { return slices.Sorted(maps.Keys(maps.Collect(each(list)))) }

func each(list []string) func(func(string, bool) bool) {
	return func(yield func(string, bool) bool) {
		for _, one := range list {
			if !yield(one, true) {
				return
			}
		}
	}
}

func TestEveryScenarioIsToldInBothLanguages(t *testing.T) {
	told := map[string][]string{}
	name := ""
	for line := range strings.Lines(read(t, "scenarios.js")) {
		if m := regexp.MustCompile(`^  "([\w-]+)": \{`).FindStringSubmatch(line); m != nil {
			name = m[1]
		}
		for _, m := range pairs.FindAllStringSubmatch(line, -1) {
			if m[3] != "" && m[4] != "" && m[3] != m[4] {
				told[name] = append(told[name], m[2])
			}
		}
	}
	want := map[string][]string{}
	for _, name := range []string{"normal", "lag", "back-pressure", "rebalance", "order-by-key", "poison", "at-most-once", "at-least-once", "idempotent", "dual-write", "outbox", "spike"} {
		want[name] = []string{"title", "what", "fault", "see", "point"}
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("the scenarios differ (-want +got):\n%s", diff)
	}
}

func TestEveryModuleIsInThePageAndImportsFromItsOwn(t *testing.T) {
	files, err := fs.Glob(assets, "assets/*.js")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(file, "assets/"), ".js"))
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(scripts())), names); diff != "" {
		t.Errorf("the modules differ (-joined +there):\n%s", diff)
	}
	for at, name := range scripts() {
		text := read(t, name+".js")
		for _, m := range regexp.MustCompile(`(?m)^import \{([^}]*)\} from "(\w+)";$`).FindAllStringSubmatch(text, -1) {
			if i := slices.Index(scripts(), m[2]); i < 0 || i >= at {
				t.Errorf("%s imports from %s, which does not come before it", name, m[2])
				continue
			}
			for one := range strings.SplitSeq(m[1], ",") {
				// Joined, a module has no names of its own: another name would be none.
				one = strings.TrimSpace(one)
				if strings.Contains(one, " as ") || !regexp.MustCompile(`(?m)^export (const|function|class) `+regexp.QuoteMeta(one)+`\W`).MatchString(read(t, m[2]+".js")) {
					t.Errorf("%s imports %q, which %s does not export", name, one, m[2])
				}
			}
		}
	}
	all, err := joined()
	if err != nil {
		t.Fatal(err)
	}
	if left := regexp.MustCompile(`(?m)^(import|export)\b.*$`).FindString(all); left != "" {
		t.Errorf("got %q left in what is joined", left)
	}
}

func TestNothingOfTheDataBecomesMarkup(t *testing.T) {
	for _, no := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser", "srcdoc", "javascript:", "http://", "https://"} {
		text := strings.ReplaceAll(code(t), "http://www.w3.org/2000/svg", "")
		if strings.Contains(text, no) {
			t.Errorf("got %s in the page's sources", no)
		}
	}
	page, err := HTML([]byte(`{"show":{"id":"</script><script>alert(1)</script>"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(page), "<script"); n != 2 {
		t.Errorf("got %d scripts, want 2", n)
	}
	if _, err := HTML([]byte(`{"show":`)); err == nil {
		t.Error("half a recording: got a page, want an error")
	}
}

func TestOnlyAPageWithoutARecordingMayAsk(t *testing.T) {
	live, err := HTML(nil)
	if err != nil {
		t.Fatal(err)
	}
	replay, err := HTML([]byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	for want, page := range map[string][]byte{"connect-src 'self'": live, "connect-src 'none'": replay} {
		if !strings.Contains(string(page), want) {
			t.Errorf("got no %s in the page's policy", want)
		}
		if strings.Contains(string(page), "{{") {
			t.Error("got a hole left in the page")
		}
	}
}
