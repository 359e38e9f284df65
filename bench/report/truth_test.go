package report

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"queuelab/bench/truth"
)

// told are facts of every kind, one of which tries to be more than text.
func told() []truth.Fact {
	var facts []truth.Fact
	for _, e := range truth.All() {
		facts = append(facts, truth.Fact{Name: e.Name, Library: e.Library, LibraryVersion: "v1.2.3", Broker: e.Broker, BrokerVersion: "7.0", Claim: e.Claim, Remedy: e.Remedy,
			Seen: truth.Seen{Holds: true, What: `one call, 2 stored, the error "EOF"`, Numbers: []truth.Number{{Name: "stored", Value: 2}, {Name: "took", Value: 1.5, Unit: "ms"}}}})
	}
	facts[1].Holds = false
	facts[2].Holds, facts[2].Skipped = false, evil
	facts[3].Holds, facts[3].Error = false, "reset"
	return facts
}

func TestThePageOfTruthsHasEveryExperimentAndAsksForNothing(t *testing.T) {
	var b bytes.Buffer
	if err := TruthHTML(&b, told()); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, e := range truth.All() {
		if !strings.Contains(page, `id="`+e.Name+`"`) {
			t.Errorf("no %s", e.Name)
		}
	}
	n := len(truth.All())
	for _, want := range []string{fmt.Sprintf("%d experiments: %d as claimed, 1 not, 2 without an answer.", n, n-3), "调用一次，存下 2 条，错误 “EOF”", "1.5 ms"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	if got := strings.Count(page, "<script"); got != 1 {
		t.Errorf("got %d scripts, want the page's own", got)
	}
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if id, ok := strings.CutPrefix(m[1], "#"); !ok || !strings.Contains(page, ` id="`+id+`"`) {
			t.Errorf("got an address that leads nowhere on this page: %s", m[0])
		}
	}
}

func TestClaimsRemediesAndWhatWasSeenHaveTheirChinese(t *testing.T) {
	check := func(s string) {
		t.Helper()
		if zh := harness(s).Chinese(); zh == s {
			t.Errorf("no Chinese for %q in chineseTruth", s)
		}
	}
	for _, e := range truth.All() {
		check(e.Claim)
		if e.Remedy != "" {
			check(e.Remedy)
		}
	}
	files, err := filepath.Glob("../truth/*.go")
	if err != nil {
		t.Fatal(err)
	}
	verb, seen := regexp.MustCompile(`%[-+.\d]*[a-zA-Z]`), 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			var words []ast.Expr
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "What" {
					words = inside(n.Value)
				}
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "count" || id.Name == "millis") {
					words = n.Args[:1]
				}
			}
			for _, e := range words {
				if s, ok := literal(e); ok && s != "" {
					seen++
					check(verb.ReplaceAllString(s, "7"))
				}
			}
			return true
		})
	}
	if seen < 40 {
		t.Errorf("got %d sentences and names: the test looks at too little", seen)
	}
}

func TestThePageOfTruthsIsRightOnEveryScreen(t *testing.T) {
	ctx, _ := browse(t, hostile())
	var b bytes.Buffer
	if err := TruthHTML(&b, told()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "truth.html")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	do(ctx, t, chromedp.Navigate("file://"+path))
	for _, width := range []int64{360, 1440} {
		do(ctx, t, chromedp.EmulateViewport(width, 900))
		for range 2 {
			do(ctx, t, chromedp.Click("#lang"))
			lang := ask[string](ctx, t, `document.documentElement.lang`)
			if over := ask[int](ctx, t, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
				t.Errorf("%d %s: got a page %d px too wide: %s", width, lang, over, ask[string](ctx, t, wide))
			}
			want := "What the client libraries do"
			if lang != "en" {
				want = "客户端库实际做了什么"
			}
			if got := ask[string](ctx, t, `document.querySelector("h1").innerText + document.title`); got != want+want {
				t.Errorf("%d %s: got the titles %q, want %q", width, lang, got, want)
			}
		}
	}
	do(ctx, t, chromedp.Click("#theme"))
	if got := ask[string](ctx, t, `document.documentElement.dataset.theme`); got != "dark" {
		t.Errorf("got the theme %q, want dark", got)
	}
}
